"""AlterClientQuotas (key 49), v0-v1: sets and removes quotas of users, client ids and IP addresses (KIP-546).

All changes of an entity are made, or none of them. v1 flexible. Differs from Kafka: an IP address is written out, host
names are refused.
"""

from functools import partial

from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.controller.commands import AlterQuotas, QuotaChange, QuotaResult
from barnabas.metadata.image import EntityPart, QuotaEntity
from barnabas.net.deferred import Deferred, then
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    ResponseEntryData,
)
from barnabas.server.dispatch import Handler
from barnabas.server.request import CLUSTER, Operation, RequestContext
from barnabas.server.steps import MAX_CONTROLLER_ITEMS, fail_in_steps


def handle_alter_client_quotas(
    context: RequestContext, request: AlterClientQuotasRequest
) -> AlterClientQuotasResponse | Deferred[AlterClientQuotasResponse]:
    if not context.may(Operation.ALTER_CONFIGS, CLUSTER):
        return fail_alter_client_quotas(context, request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if len(request.entries) > MAX_CONTROLLER_ITEMS:
        return then(context.in_slices(fail_in_steps(len(request.entries), partial(_too_many, context, request))), _of)
    return context.run(_alter_client_quotas(context, request))


def _too_many(
    context: RequestContext, request: AlterClientQuotasRequest, start: int, end: int
) -> list[ResponseEntryData]:
    """Kafka refuses what its controller would not write at once."""
    some = AlterClientQuotasRequest(entries=request.entries[start:end])
    return fail_alter_client_quotas(context, some, ErrorCode.POLICY_VIOLATION).entries


def _of(entries: list[ResponseEntryData]) -> AlterClientQuotasResponse:
    return AlterClientQuotasResponse(entries=entries)


async def _alter_client_quotas(context: RequestContext, request: AlterClientQuotasRequest) -> AlterClientQuotasResponse:
    wanted = AlterQuotas(
        tuple((_entity(entry), _changes(entry)) for entry in request.entries), validate_only=request.validate_only
    )
    try:
        results = await context.broker.controller.alter_quotas(wanted)
    except KafkaError as error:
        return fail_alter_client_quotas(context, request, error.code)
    return AlterClientQuotasResponse(entries=[_response(result) for result in results])


def _entity(entry: EntryData) -> QuotaEntity:
    return tuple(EntityPart(part.entity_type, part.entity_name) for part in entry.entity)


def _changes(entry: EntryData) -> tuple[QuotaChange, ...]:
    return tuple(QuotaChange(change.key, None if change.remove else change.value) for change in entry.ops)


def _response(result: QuotaResult) -> ResponseEntryData:
    entity = [EntityData(entity_type=part.type, entity_name=part.name) for part in result.entity]
    return ResponseEntryData(error_code=result.error, error_message=result.message, entity=entity)


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
    forwards=True,
    checks_access=True,
)
