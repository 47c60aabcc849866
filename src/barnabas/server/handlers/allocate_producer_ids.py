"""AllocateProducerIds (key 67), v0: a broker gets its next block of producer ids from the controller (KIP-730)."""

from barnabas.errors import ErrorCode, KafkaError
from barnabas.net.deferred import Deferred
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from barnabas.server.dispatch import Handler
from barnabas.server.request import RequestContext
from barnabas.types import NodeId


def handle_allocate_producer_ids(
    context: RequestContext, request: AllocateProducerIdsRequest
) -> AllocateProducerIdsResponse | Deferred[AllocateProducerIdsResponse]:
    if not context.may_act_as_broker():
        return fail_allocate_producer_ids(context, request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if not context.broker.cluster.is_controller:
        return fail_allocate_producer_ids(context, request, ErrorCode.NOT_CONTROLLER)
    return context.run(_allocate(context, request))


async def _allocate(context: RequestContext, request: AllocateProducerIdsRequest) -> AllocateProducerIdsResponse:
    """A broker that was fenced meanwhile (its epoch is another) gets no more ids, as in Kafka."""
    known = context.broker.cluster.image.brokers.get(request.broker_id)
    if known is None:
        return fail_allocate_producer_ids(context, request, ErrorCode.BROKER_ID_NOT_REGISTERED)
    if known.epoch != request.broker_epoch:
        return fail_allocate_producer_ids(context, request, ErrorCode.STALE_BROKER_EPOCH)
    try:
        block = await context.broker.controller.allocate_producer_id_block(NodeId(request.broker_id))
    except KafkaError as error:
        return fail_allocate_producer_ids(context, request, error.code)
    return AllocateProducerIdsResponse(
        error_code=ErrorCode.NONE, producer_id_start=block.start, producer_id_len=len(block)
    )


def fail_allocate_producer_ids(
    context: RequestContext, request: AllocateProducerIdsRequest, error: ErrorCode
) -> AllocateProducerIdsResponse:
    return AllocateProducerIdsResponse(error_code=error)


HANDLER = Handler(
    api_key=ApiKey.ALLOCATE_PRODUCER_IDS,
    min_version=0,
    max_version=0,
    request=AllocateProducerIdsRequest,
    handle=handle_allocate_producer_ids,
    fail=fail_allocate_producer_ids,
    is_advertised=False,
    checks_access=True,
)
