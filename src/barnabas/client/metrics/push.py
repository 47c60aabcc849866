"""Pushes a client's metrics to a broker, as often and as much as the broker asks for (KIP-714). On the I/O thread.

It begins when the client has a connection of its own, and never opens one: a client that does nothing stays silent. The
broker that was asked is pushed to for as long as there is a connection to it, and then another one; a cluster without
the API is asked again after five minutes. What a push that failed held is in the next one.
"""

import asyncio
import contextlib
import logging
import math
from collections.abc import Callable
from typing import Final

from barnabas.client.background import Background
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.environment import environment
from barnabas.client.errors import UnsupportedVersionError, error_code
from barnabas.client.metadata import MetadataCache
from barnabas.client.metrics.values import MetricName, Metrics
from barnabas.client.options.common import CommonOptions
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.api import ApiKey
from barnabas.protocol.compiler import encode
from barnabas.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from barnabas.protocol.messages.push_telemetry import PushTelemetryRequest
from barnabas.protocol.otlp_metrics import Point, PointKind, encode_metrics
from barnabas.records.compression import CompressionType, compress

logger = logging.getLogger(__name__)

NO_ID: Final = bytes(16)
RETRY_S: Final = 300.0
"""Kafka's interval where no broker names one."""
LAST_PUSH_MS: Final = 1_000
ASK_AGAIN: Final = (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
GIVE_UP: Final = (ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_RECORD)


class MetricsPush:
    """`resource` is what the client says of itself, with its metrics."""

    def __init__(
        self, cluster: ClusterClient, options: CommonOptions, collect: Callable[[], Metrics], **resource: str
    ) -> None:
        self._cluster = cluster
        self._collect = collect
        self._resource = {name: value for name, value in resource.items() if value}
        self._background = Background()
        self._random = environment().new_random()
        self._task: asyncio.Task[None] | None = None
        self._instance_id = NO_ID
        self._node_id: int | None = None
        self._wanted: GetTelemetrySubscriptionsResponse | None = None
        self._pushed: dict[MetricName, float] = {}
        """Totals that brokers have."""
        self._clock = environment().clock
        self._since_ns = self._clock.now_ms() * 1_000_000
        if options.enable_metrics_push:
            cluster.on_metadata(self._on_metadata)

    async def close(self, *, last: bool = True, wait: bool = True) -> None:
        """Pushes for the last time, if the connection is there, and if the broker has asked for anything.

        Without `wait` nobody reads the response, so nothing else may be sent on the connection afterwards.
        """
        running, self._task = self._task, None
        await self._background.close()
        node_id = self._node_id
        if last and running is not None and self._wants_metrics() and node_id is not None:
            with contextlib.suppress(KafkaError):
                await self._push_last(node_id, wait)

    def _on_metadata(self, _metadata: MetadataCache) -> None:
        if self._task is None:
            self._task = self._background.start("pushing metrics", self._run(), self._on_failure)

    def _on_failure(self, error: KafkaError) -> None:
        logger.info("no metrics are pushed any more: %s", error)

    async def _run(self) -> None:
        while True:
            try:
                pause_s = await self._turn()
                if pause_s is None:
                    return
            except UnsupportedVersionError:
                self._forget_node()
                pause_s = RETRY_S
            except KafkaError as error:
                logger.debug("metrics could not be pushed: %s", error)
                self._forget_node()
                pause_s = self._interval_s()
            await asyncio.sleep(pause_s)

    async def _turn(self) -> float | None:
        """Asks or pushes; how long to wait then. None if the brokers want no more of it."""
        node_id = self._connected_node()
        if node_id is None:
            return min(1.0, self._interval_s())
        self._node_id = node_id
        if not self._wants_metrics():
            await self._ask(node_id)
            return self._interval_s() * (0.5 + self._random.random())  # not everybody's first at the same moment
        code = await self._push(node_id)
        if code in ASK_AGAIN:
            self._wanted = None
            return 0.0
        if code in GIVE_UP:
            logger.warning("a broker cannot read the metrics of this client (%s): they are not pushed", code.text)
            self._wanted = None
            return None
        return self._interval_s()

    async def _ask(self, node_id: int) -> None:
        response = await self._cluster.send(
            node_id, GetTelemetrySubscriptionsRequest(client_instance_id=self._instance_id)
        )
        if response.error_code:
            raise KafkaError(error_code(response.error_code))
        self._instance_id = response.client_instance_id
        self._wanted = response

    async def _push(self, node_id: int) -> ErrorCode:
        request, totals, now_ns = self._request(terminating=False)
        if request is None:
            return ErrorCode.TELEMETRY_TOO_LARGE
        # At once: a push that `close` interrupts has left, and must not be in the last one again.
        before = self._pushed, self._since_ns
        self._pushed, self._since_ns = totals, now_ns
        try:
            code = error_code((await self._cluster.send(node_id, request)).error_code)
        except KafkaError:
            self._pushed, self._since_ns = before
            raise
        if code is not ErrorCode.NONE:
            self._pushed, self._since_ns = before
        return code

    async def _push_last(self, node_id: int, wait: bool) -> None:
        request, _, _ = self._request(terminating=True)
        if request is None or not self._cluster.is_ready(node_id):
            return
        api_key = ApiKey.PUSH_TELEMETRY
        version = self._cluster.ready_version(node_id, api_key)
        parts = [encode(request, version)]
        await self._cluster.post_frame(node_id, api_key, version, parts, timeout_ms=LAST_PUSH_MS, expect_response=wait)

    def _request(self, *, terminating: bool) -> tuple[PushTelemetryRequest | None, dict[MetricName, float], int]:
        """The request, the totals in it, and its time. None if it would be too large."""
        wanted = self._wanted
        assert wanted is not None
        totals, points = self._points(tuple(wanted.requested_metrics))
        now_ns = self._clock.now_ms() * 1_000_000
        data = encode_metrics(self._resource, points, self._since_ns, now_ns)
        codec = _best_of(wanted.accepted_compression_types)
        data = compress(codec, data)
        if len(data) > wanted.telemetry_max_bytes:
            logger.info("%d bytes of metrics are more than the broker takes", len(data))
            return None, totals, now_ns
        request = PushTelemetryRequest(
            client_instance_id=self._instance_id,
            subscription_id=wanted.subscription_id,
            terminating=terminating,
            compression_type=codec,
            metrics=data,
        )
        return request, totals, now_ns

    def _points(self, prefixes: tuple[str, ...]) -> tuple[dict[MetricName, float], list[Point]]:
        """The totals as they are now, and what to push."""
        totals: dict[MetricName, float] = {}
        points = []
        takes_all = prefixes in (("*",), ("",))
        for key, value in self._collect().items():
            name = key.telemetry_name
            if math.isnan(value) or not (takes_all or name.startswith(prefixes)):
                continue
            kind = PointKind.GAUGE
            if key.is_total:
                kind, totals[key] = PointKind.INCREMENT, value
                value -= self._pushed.get(key, 0)
            tags = {tag.replace("-", "_"): text for tag, text in key.tags}
            points.append(Point(name, kind, tags, value))
        return totals, points

    def _wants_metrics(self) -> bool:
        return self._wanted is not None and bool(self._wanted.requested_metrics)

    def _interval_s(self) -> float:
        return RETRY_S if self._wanted is None else self._wanted.push_interval_ms / 1000

    def _connected_node(self) -> int | None:
        if self._node_id is not None and self._cluster.is_ready(self._node_id):
            return self._node_id
        return self._cluster.connected_node()

    def _forget_node(self) -> None:
        """The next one to ask may be another."""
        self._node_id = None


def _best_of(accepted: list[int]) -> CompressionType:
    """The first that we know: the broker's favourite."""
    return next((CompressionType(each) for each in accepted if each in tuple(CompressionType)), CompressionType.NONE)
