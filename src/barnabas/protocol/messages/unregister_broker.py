"""UnregisterBroker (key 64), v0: remove a broker permanently (KIP-631). Flexible."""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import INT16, INT32, TEXT, field, message


@message(api_key=ApiKey.UNREGISTER_BROKER, versions=(0, 0), flexible=0)
class UnregisterBrokerRequest:
    broker_id: int = field(INT32)


@message(api_key=ApiKey.UNREGISTER_BROKER, versions=(0, 0), flexible=0)
class UnregisterBrokerResponse:
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(TEXT, nullable=0)
