"""DescribeClientQuotas (key 48), v0-v1: the quotas of clients and users that match a filter (KIP-546).

Answered by any broker from its image. A filter names types; `strict` wants entities of just these.
"""

from collections.abc import Mapping

from barnabas.errors import ErrorCode
from barnabas.metadata.image import QuotaEntity
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.describe_client_quotas import (
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)
from barnabas.server.dispatch import Handler
from barnabas.server.request import CLUSTER, Operation, RequestContext

ENTITY_TYPES = ("user", "client-id", "ip")
EXACT, DEFAULT, SPECIFIED = 0, 1, 2


def handle_describe_client_quotas(
    context: RequestContext, request: DescribeClientQuotasRequest
) -> DescribeClientQuotasResponse:
    if not context.may(Operation.DESCRIBE_CONFIGS, CLUSTER):
        return fail_describe_client_quotas(context, request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
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
    kinds = [component.entity_type for component in request.components]
    if "ip" in kinds and len(kinds) > 1:
        return _refuse(ErrorCode.INVALID_REQUEST, "An IP address cannot be combined with a user or client id")
    quotas = context.broker.cluster.image.client_quotas
    return DescribeClientQuotasResponse(
        error_code=ErrorCode.NONE,
        error_message=None,
        entries=[_entry(entity, quotas[entity]) for entity in quotas if _matches(entity, request)],
    )


def _matches(entity: QuotaEntity, request: DescribeClientQuotasRequest) -> bool:
    names = dict(entity)
    if request.strict and len(names) != len(request.components):
        return False
    return all(
        each.entity_type in names and (each.match_type == SPECIFIED or names[each.entity_type] == each.match)
        for each in request.components
    )


def _entry(entity: QuotaEntity, values: Mapping[str, float]) -> EntryData:
    return EntryData(
        entity=[EntityData(entity_type=part.type, entity_name=part.name) for part in entity],
        values=[ValueData(key=key, value=value) for key, value in values.items()],
    )


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
    checks_access=True,
)
