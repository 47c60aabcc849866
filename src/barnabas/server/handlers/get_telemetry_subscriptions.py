"""GetTelemetrySubscriptions (key 71), v0: which of its own metrics a client is to push, and how often (KIP-714).

Open to every client, as in Kafka. Without `metrics.listener` it is not offered, as in a Kafka without a plugin for it.
"""

from barnabas.errors import ErrorCode
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from barnabas.records.compression import CompressionType
from barnabas.server.dispatch import Handler
from barnabas.server.request import RequestContext

ACCEPTED = (CompressionType.ZSTD, CompressionType.LZ4, CompressionType.GZIP, CompressionType.SNAPPY)
"""The best first; none is always allowed."""


def handle_get_telemetry_subscriptions(
    context: RequestContext, request: GetTelemetrySubscriptionsRequest
) -> GetTelemetrySubscriptionsResponse:
    metrics = context.broker.client_metrics
    if not metrics.is_served:
        return fail_get_telemetry_subscriptions(context, request, ErrorCode.UNSUPPORTED_VERSION)
    error, client = metrics.ask(context, request.client_instance_id)
    if error is not ErrorCode.NONE:
        return fail_get_telemetry_subscriptions(context, request, error)
    wanted = client.wanted
    return GetTelemetrySubscriptionsResponse(
        error_code=ErrorCode.NONE,
        client_instance_id=client.instance_id,
        subscription_id=wanted.subscription_id,
        accepted_compression_types=[int(each) for each in ACCEPTED],
        push_interval_ms=wanted.interval_ms,
        telemetry_max_bytes=metrics.max_bytes,
        delta_temporality=True,
        requested_metrics=list(wanted.metrics),
    )


def fail_get_telemetry_subscriptions(
    context: RequestContext, request: GetTelemetrySubscriptionsRequest, error: ErrorCode
) -> GetTelemetrySubscriptionsResponse:
    return GetTelemetrySubscriptionsResponse(error_code=error, accepted_compression_types=[], requested_metrics=[])


HANDLER = Handler(
    api_key=ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
    min_version=0,
    max_version=0,
    request=GetTelemetrySubscriptionsRequest,
    handle=handle_get_telemetry_subscriptions,
    fail=fail_get_telemetry_subscriptions,
    needs_metrics=True,
    checks_access=True,  # everybody may ask
)
