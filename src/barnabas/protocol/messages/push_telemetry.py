"""PushTelemetry (key 72), v0: a client's own metrics, as MetricsData of OpenTelemetry (KIP-714)."""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import BOOL, BYTES, INT8, INT16, INT32, UUID, field, message


@message(api_key=ApiKey.PUSH_TELEMETRY, versions=(0, 0), flexible=0)
class PushTelemetryRequest:
    client_instance_id: bytes = field(UUID)
    subscription_id: int = field(INT32)
    terminating: bool = field(BOOL)
    compression_type: int = field(INT8)
    metrics: bytes = field(BYTES)


@message(api_key=ApiKey.PUSH_TELEMETRY, versions=(0, 0), flexible=0)
class PushTelemetryResponse:
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
