"""Metrics that clients push to this broker (KIP-714), for `/metrics`: only where a broker serves that.

Kafka offers the two APIs if a plugin takes the metrics; here it is `/metrics` that takes them. Subscriptions are
settings of the cluster; what a client pushes is known to the one broker that it has chosen.
"""

import logging

from barnabas.clock import Clock, Random
from barnabas.config.faults import ConfigFaults
from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.client_metrics.clients import NO_ID, RESERVED_IDS, Client, Clients
from barnabas.machines.client_metrics.series import SERIES_PER_CLIENT
from barnabas.machines.client_metrics.subscription import Subscription
from barnabas.metadata.image import ClusterImage, Delta, ResourceType
from barnabas.net.connection import Connection
from barnabas.net.deferred import Deferred
from barnabas.protocol.otlp_metrics import OtlpError, decode_metrics
from barnabas.records.compression import CompressionType, OutputLimitError, decompress
from barnabas.server.record_work import RecordWork, held
from barnabas.server.request import RequestContext
from barnabas.server.settings import Settings
from barnabas.types import topic_id_text

logger = logging.getLogger(__name__)

UNPACKED_RATIO = 8
"""What a push may decompress to, in multiples of telemetry.max.bytes."""
POINTS = 2 * SERIES_PER_CLIENT
"""Of one push: the rest is not looked at."""


class ClientMetrics:
    def __init__(self, settings: Settings, clock: Clock, random: Random, record_work: RecordWork) -> None:
        self._settings = settings
        self._clock = clock
        self._random = random
        self._record_work = record_work
        self.clients = Clients(topic_id_text)

    @property
    def is_served(self) -> bool:
        """Whether clients are offered to push at all."""
        return self._settings.static.monitoring.address is not None

    @property
    def max_bytes(self) -> int:
        return self._settings.config.telemetry_max_bytes

    def on_delta(self, delta: Delta) -> None:
        if any(resource.type is ResourceType.CLIENT_METRICS for resource in delta.configs_changed):
            self.clients.subscribe(_subscriptions(delta.image))

    def on_closed(self, connection: Connection) -> None:
        self.clients.on_closed(connection)

    def current_clients(self) -> Clients:
        """Without those that have not been heard of for long."""
        self.clients.expire(self._clock.monotonic_ms())
        return self.clients

    def ask(self, context: RequestContext, instance_id: bytes) -> tuple[ErrorCode, Client]:
        """A client wants to know what it is to push. One without an id gets one."""
        if instance_id == NO_ID:
            instance_id = self._random.randbytes(16)
        client, now_ms = self._client(context, instance_id), self._clock.monotonic_ms()
        may_ask = self.clients.may_ask(client, now_ms)
        return ErrorCode.NONE if may_ask else ErrorCode.THROTTLING_QUOTA_EXCEEDED, client

    def push(
        self,
        context: RequestContext,
        instance_id: bytes,
        subscription_id: int,
        compression: int,
        metrics: bytes,
        *,
        terminating: bool,
    ) -> ErrorCode | Deferred[ErrorCode]:
        if instance_id in RESERVED_IDS:
            return ErrorCode.INVALID_REQUEST
        client, now_ms = self._client(context, instance_id), self._clock.monotonic_ms()
        error = self.clients.check_push(client, subscription_id, compression, terminating, now_ms)
        if error is not ErrorCode.NONE:
            return error
        if len(metrics) > self.max_bytes:
            return self.clients.fail(client, ErrorCode.TELEMETRY_TOO_LARGE)
        if not metrics:
            return error
        return context.run(self._take(context, client, CompressionType(compression), metrics))

    async def _take(self, context: RequestContext, client: Client, codec: CompressionType, metrics: bytes) -> ErrorCode:
        try:
            if codec is not CompressionType.NONE:
                with held(context.connection):
                    limit = UNPACKED_RATIO * self.max_bytes
                    metrics = await self._record_work.run(decompress, codec, metrics, limit)
            decoded = context.in_slices(decode_metrics(metrics, POINTS))
            pushed = await decoded if isinstance(decoded, Deferred) else decoded
        except OutputLimitError:
            return self.clients.fail(client, ErrorCode.TELEMETRY_TOO_LARGE)
        except (OtlpError, KafkaError) as fault:
            logger.debug("%r: pushed metrics that cannot be read: %s", context.connection, fault)
            return self.clients.fail(client, ErrorCode.INVALID_RECORD)
        self.clients.take(client, pushed, self._clock.monotonic_ms())
        return ErrorCode.NONE

    def _client(self, context: RequestContext, instance_id: bytes) -> Client:
        connection = context.connection
        name, version = connection.software
        attributes = {
            "client_id": context.client_id,
            "client_software_name": name,
            "client_software_version": version,
            "client_source_address": connection.peer_host,
            "client_source_port": str(connection.peer_port),
        }
        now_ms = self._clock.monotonic_ms()
        return self.clients.client(instance_id, connection, attributes, str(context.principal), now_ms)


def _subscriptions(image: ClusterImage) -> list[Subscription]:
    found = []
    for resource, config in image.configs.items():
        if resource.type is ResourceType.CLIENT_METRICS:
            try:
                found.append(Subscription.of(config))
            except ConfigFaults as faults:
                logger.error("the client metrics subscription %s is not valid: %s", resource.name, faults)
    return found
