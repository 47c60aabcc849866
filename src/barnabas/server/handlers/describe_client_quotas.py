"""DescribeClientQuotas (key 48), v0-v1: the quotas of clients and users that match a filter (KIP-546).

There are none, because AlterClientQuotas takes none: an empty list for every filter that Kafka would accept.
"""

from barnabas.errors import ErrorCode
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.describe_client_quotas import DescribeClientQuotasRequest, DescribeClientQuotasResponse
from barnabas.server.dispatch import Handler
from barnabas.server.request import RequestContext

ENTITY_TYPES = ("user", "client-id", "ip")
EXACT, DEFAULT, SPECIFIED = 0, 1, 2


def handle_describe_client_quotas(
    context: RequestContext, request: DescribeClientQuotasRequest
) -> DescribeClientQuotasResponse:
    for index, component in enumerate(request.components):
        kind = component.entity_type
        if kind not in ENTITY_TYPES:
            return _refuse(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {kind}")
        if component.match_type not in (EXACT, DEFAULT, SPECIFIED):
            return _refuse(ErrorCode.INVALID_REQUEST, f"Unexpected match type {component.match_type}")
        if (component.match is None) == (component.match_type == EXACT):
            return _refuse(ErrorCode.INVALID_REQUEST, f"The match of entity type {kind} does not fit its match type")
        if kind in [other.entity_type for other in request.components[:index]]:
            return _refuse(ErrorCode.INVALID_REQUEST, f"Entity type {kind} is specified more than once")
    return DescribeClientQuotasResponse(error_code=ErrorCode.NONE, error_message=None)


def _refuse(error: ErrorCode, message: str) -> DescribeClientQuotasResponse:
    return DescribeClientQuotasResponse(error_code=error, error_message=message, entries=None)


def fail_describe_client_quotas(
    context: RequestContext, request: DescribeClientQuotasRequest, error: ErrorCode
) -> DescribeClientQuotasResponse:
    return _refuse(error, error.text)


HANDLER = Handler(
    api_key=ApiKey.DESCRIBE_CLIENT_QUOTAS,
    min_version=0,
    max_version=1,
    request=DescribeClientQuotasRequest,
    handle=handle_describe_client_quotas,
    fail=fail_describe_client_quotas,
)
