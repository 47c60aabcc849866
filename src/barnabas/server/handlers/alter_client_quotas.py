"""AlterClientQuotas (key 49), v0-v1: sets and removes quotas of clients and users (KIP-546).

Quotas are not enforced yet, and one that was kept without effect would be a false promise: setting one is
UNSUPPORTED_VERSION. Removing succeeds, as it does in Kafka where there is nothing to remove.
"""

from barnabas.errors import ErrorCode
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntryData,
    ResponseEntryData,
)
from barnabas.server.dispatch import Handler
from barnabas.server.request import RequestContext

NOT_ENFORCED = "Client quotas are not enforced by this broker."


def handle_alter_client_quotas(context: RequestContext, request: AlterClientQuotasRequest) -> AlterClientQuotasResponse:
    return AlterClientQuotasResponse(entries=[_result(entry) for entry in request.entries])


def _result(entry: EntryData) -> ResponseEntryData:
    if all(change.remove for change in entry.ops):
        return ResponseEntryData(error_code=ErrorCode.NONE, error_message=None, entity=entry.entity)
    return ResponseEntryData(error_code=ErrorCode.UNSUPPORTED_VERSION, error_message=NOT_ENFORCED, entity=entry.entity)


def fail_alter_client_quotas(
    context: RequestContext, request: AlterClientQuotasRequest, error: ErrorCode
) -> AlterClientQuotasResponse:
    return AlterClientQuotasResponse(
        entries=[
            ResponseEntryData(error_code=error, error_message=error.text, entity=entry.entity)
            for entry in request.entries
        ]
    )


HANDLER = Handler(
    api_key=ApiKey.ALTER_CLIENT_QUOTAS,
    min_version=0,
    max_version=1,
    request=AlterClientQuotasRequest,
    handle=handle_alter_client_quotas,
    fail=fail_alter_client_quotas,
)
