"""InitProducerId (key 22), v0-v5: a producer id and epoch, plain or for a transactional id.

A plain id comes from a block of 1,000 of the metadata store, so that no two producers of a cluster ever share one. With
a transactional id the transaction coordinator responds: the epoch goes up, and the holder of the last one is fenced. v3
may name the current id and epoch (KIP-360); v4 PRODUCER_FENCED.
"""

from functools import partial

from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.txn.commands import InitProducerId
from barnabas.net.deferred import Deferred
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.server.dispatch import Handler
from barnabas.server.request import CLUSTER, Operation, RequestContext, Resource, SecuredType


def handle_init_producer_id(
    context: RequestContext, request: InitProducerIdRequest
) -> InitProducerIdResponse | Deferred[InitProducerIdResponse]:
    if request.transactional_id is not None:
        if not context.may(Operation.WRITE, Resource.transactional_id(request.transactional_id)):
            return fail_init_producer_id(context, request, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    elif not _may_write_idempotently(context):
        return fail_init_producer_id(context, request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return context.run(_init_producer_id(context, request))


def _may_write_idempotently(context: RequestContext) -> bool:
    """Whoever may write to any topic may do so without duplicates (KIP-679)."""
    return context.may(Operation.IDEMPOTENT_WRITE, CLUSTER, log_denied=False) or context.may_any(
        Operation.WRITE, SecuredType.TOPIC
    )


async def _init_producer_id(context: RequestContext, request: InitProducerIdRequest) -> InitProducerIdResponse:
    if (request.producer_id < 0) != (request.producer_epoch < 0):
        return fail_init_producer_id(context, request, ErrorCode.INVALID_REQUEST)
    producer_ids = context.broker.producer_ids
    try:
        if request.transactional_id is None:
            producer_id = await producer_ids.next_id()
            return InitProducerIdResponse(error_code=ErrorCode.NONE, producer_id=producer_id, producer_epoch=0)
        await producer_ids.ready()
    except KafkaError:
        return fail_init_producer_id(context, request, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    response = context.broker.transactions.submit(
        request.transactional_id,
        InitProducerId(request, context.version),
        partial(fail_init_producer_id, context, request),
    )
    return await response if isinstance(response, Deferred) else response


def fail_init_producer_id(
    context: RequestContext, request: InitProducerIdRequest, error: ErrorCode
) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=error, producer_id=-1, producer_epoch=-1)


HANDLER = Handler(
    api_key=ApiKey.INIT_PRODUCER_ID,
    min_version=0,
    max_version=5,
    request=InitProducerIdRequest,
    handle=handle_init_producer_id,
    fail=fail_init_producer_id,
    checks_access=True,
)
