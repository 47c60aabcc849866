"""UnregisterBroker (key 64), v0: forgets a broker that is gone for good (KIP-500).

It no longer counts as somebody who may come back with the records that others lack. One that runs is refused; Kafka
would take it away from under its clients, until its next start.
"""

from barnabas.errors import ErrorCode, KafkaError
from barnabas.net.deferred import Deferred
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from barnabas.server.dispatch import Handler
from barnabas.server.request import CLUSTER, Operation, RequestContext


def handle_unregister_broker(
    context: RequestContext, request: UnregisterBrokerRequest
) -> UnregisterBrokerResponse | Deferred[UnregisterBrokerResponse]:
    if not context.may(Operation.ALTER, CLUSTER):
        return fail_unregister_broker(context, request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return context.run(_unregister(context, request))


async def _unregister(context: RequestContext, request: UnregisterBrokerRequest) -> UnregisterBrokerResponse:
    try:
        await context.broker.controller.unregister_broker(request.broker_id)
    except KafkaError as error:
        return UnregisterBrokerResponse(error_code=error.code, error_message=error.message)
    return UnregisterBrokerResponse(error_code=ErrorCode.NONE)


def fail_unregister_broker(
    context: RequestContext, request: UnregisterBrokerRequest, error: ErrorCode
) -> UnregisterBrokerResponse:
    return UnregisterBrokerResponse(error_code=error, error_message=error.text)


HANDLER = Handler(
    api_key=ApiKey.UNREGISTER_BROKER,
    min_version=0,
    max_version=0,
    request=UnregisterBrokerRequest,
    handle=handle_unregister_broker,
    fail=fail_unregister_broker,
    forwards=True,
    checks_access=True,
)
