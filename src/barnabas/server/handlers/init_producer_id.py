"""InitProducerId (key 22), v0-v5: a fresh producer id for an idempotent producer.

Ids come in blocks of 1,000 from the metadata store, so that no two producers of a cluster ever share one. With a
transactional id the transaction coordinator answers. v3 may name the current id and epoch (KIP-360).
"""

from barnabas.errors import ErrorCode
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.server.dispatch import Handler, RequestContext


async def handle_init_producer_id(context: RequestContext, request: InitProducerIdRequest) -> InitProducerIdResponse:
    if request.transactional_id is not None:
        return fail_init_producer_id(context, request, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    producer_id = await context.broker.producer_ids.next_id()
    return InitProducerIdResponse(error_code=ErrorCode.NONE, producer_id=producer_id, producer_epoch=0)


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
)
