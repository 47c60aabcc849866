"""PushTelemetry (key 72), v0: a client's own metrics, kept for `/metrics` (KIP-714).

Open to every client, as in Kafka. Differs from Kafka: what decompresses to over eight times telemetry.max.bytes
is too large.
"""

from barnabas.errors import ErrorCode
from barnabas.net.deferred import Deferred, then
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse
from barnabas.server.dispatch import Handler
from barnabas.server.request import RequestContext


def handle_push_telemetry(
    context: RequestContext, request: PushTelemetryRequest
) -> PushTelemetryResponse | Deferred[PushTelemetryResponse]:
    metrics = context.broker.client_metrics
    if not metrics.is_served:
        return fail_push_telemetry(context, request, ErrorCode.UNSUPPORTED_VERSION)
    pushed = metrics.push(
        context,
        request.client_instance_id,
        request.subscription_id,
        request.compression_type,
        request.metrics,
        terminating=request.terminating,
    )
    return then(pushed, _respond)


def _respond(error: ErrorCode) -> PushTelemetryResponse:
    return PushTelemetryResponse(error_code=error)


def fail_push_telemetry(
    context: RequestContext, request: PushTelemetryRequest, error: ErrorCode
) -> PushTelemetryResponse:
    return PushTelemetryResponse(error_code=error)


HANDLER = Handler(
    api_key=ApiKey.PUSH_TELEMETRY,
    min_version=0,
    max_version=0,
    request=PushTelemetryRequest,
    handle=handle_push_telemetry,
    fail=fail_push_telemetry,
    needs_metrics=True,
    checks_access=True,  # everybody may push
)
