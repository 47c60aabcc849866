"""GetTelemetrySubscriptions (key 71), v0: which of its own metrics a client is to push, and how often (KIP-714)."""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import BOOL, INT8, INT16, INT32, STRING, UUID, array, field, message


@message(api_key=ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, versions=(0, 0), flexible=0)
class GetTelemetrySubscriptionsRequest:
    client_instance_id: bytes = field(UUID)


@message(api_key=ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, versions=(0, 0), flexible=0)
class GetTelemetrySubscriptionsResponse:
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    client_instance_id: bytes = field(UUID)
    subscription_id: int = field(INT32)
    accepted_compression_types: list[int] = field(array(INT8))
    push_interval_ms: int = field(INT32)
    telemetry_max_bytes: int = field(INT32)
    delta_temporality: bool = field(BOOL)
    requested_metrics: list[str] = field(array(STRING))
