"""UnregisterBroker (key 64), v0: forgets a broker that is gone for good (KIP-500).

A broker is registered exactly while it runs, so there is nothing to forget: BROKER_ID_NOT_REGISTERED, as in Kafka. One
that runs is refused; Kafka would take it away from under its clients.
"""

from barnabas.errors import ErrorCode
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse
from barnabas.server.dispatch import Handler
from barnabas.server.request import RequestContext


def handle_unregister_broker(context: RequestContext, request: UnregisterBrokerRequest) -> UnregisterBrokerResponse:
    broker_id = request.broker_id
    if broker_id not in context.broker.cluster.image.brokers:
        message = f"Broker ID {broker_id} is not currently registered"
        return UnregisterBrokerResponse(error_code=ErrorCode.BROKER_ID_NOT_REGISTERED, error_message=message)
    message = f"Broker {broker_id} is running: it is unregistered when it stops."
    return UnregisterBrokerResponse(error_code=ErrorCode.INVALID_REQUEST, error_message=message)


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
)
