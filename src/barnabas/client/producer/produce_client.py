"""The producer's requests: Produce, and what its responses say about leaders. On the I/O thread."""

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple

from barnabas.client.background import Background
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.metadata import MetadataCache, Node
from barnabas.client.options.producer import ProducerOptions
from barnabas.client.producer.batch import ProducerBatch
from barnabas.client.producer.batch_queues import NEVER_MS
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol import ApiKey
from barnabas.protocol.messages.produce import PartitionProduceResponse, ProduceResponse
from barnabas.protocol.produce_request import (
    FIRST_TOPIC_ID_VERSION,
    LAST_BEFORE_TRANSACTIONS_V2,
    TopicBatches,
    encode_produce,
)
from barnabas.protocol.produce_response import decode_produce_response
from barnabas.records.compression import CompressionType
from barnabas.types import NO_TOPIC_ID, TopicId, TopicPartition

logger = logging.getLogger(__name__)


class Posted(NamedTuple):
    """A request that was sent."""

    node_id: int
    version: int
    size: int
    names: dict[TopicId, str]
    response: "asyncio.Future[memoryview]"


class Produced(NamedTuple):
    """The response to a Produce request, by partition; None with acks=0."""

    size: int
    response: ProduceResponse | None
    partitions: dict[TopicPartition, PartitionProduceResponse]


class ProduceClient:
    """Sends Produce requests and decodes their responses."""

    def __init__(self, options: ProducerOptions, cluster: ClusterClient) -> None:
        self._options = options
        self._cluster = cluster
        self._codec, self._level = _codec(options)
        self.transactions_v2 = False

    @property
    def metadata(self) -> MetadataCache:
        return self._cluster.metadata

    def is_ready(self, node_id: int) -> bool:
        return self._cluster.is_ready(node_id)

    async def connect(self, node_id: int) -> None:
        await self._cluster.version_of(node_id, ApiKey.PRODUCE, max_version=self._max_version())

    def post(self, node_id: int, batches: Sequence[ProducerBatch]) -> Posted:
        """Sends the batches, one per partition, on the connection that is there: calls and requests have one order.

        Raises UnreachableError if there is none any more.
        """
        version = self._cluster.ready_version(node_id, ApiKey.PRODUCE, max_version=self._max_version())
        topics = self._topics(batches)
        if any(topic.topic_id == NO_TOPIC_ID for topic in topics.values()):
            # The broker that described the topic is older than its leader.
            version = min(version, FIRST_TOPIC_ID_VERSION - 1)
        self._cluster.touch(topics)
        parts = encode_produce(
            version, self._options.transactional_id, self._options.acks, self._options.request_timeout_ms, topics
        )
        response = self._cluster.post_frame(
            node_id,
            ApiKey.PRODUCE,
            version,
            parts,
            timeout_ms=self._options.request_timeout_ms,
            expect_response=self._options.acks != 0,
        )
        # By the ids that were sent: a topic may have been created again meanwhile, under another id.
        names = {topic.topic_id: name for name, topic in topics.items()}
        return Posted(node_id, version, sum(map(len, parts)), names, response)

    async def response_to(self, posted: Posted) -> Produced:
        """With acks=0 there is no response."""
        body = await posted.response
        if self._options.acks == 0:
            return Produced(posted.size, None, {})
        response, partitions = decode_produce_response(body, posted.version, posted.names)
        self._cluster.throttle(posted.node_id, response.throttle_time_ms)
        return Produced(posted.size, response, partitions)

    def take_hint(self, tp: TopicPartition, leader: int, leader_epoch: int, nodes: Sequence[Node]) -> bool:
        """The new leader that a response named (KIP-951); True if it was not known."""
        if leader < 0:
            return False
        if nodes:
            self._cluster.metadata.add_nodes(nodes)
        return self._cluster.metadata.update_leader(tp, leader, leader_epoch)

    async def refresh_metadata(self, topics: Collection[str]) -> None:
        await self._cluster.refresh_metadata(topics, allow_auto_topic_creation=True)

    def _max_version(self) -> int | None:
        limited = self._options.transactional_id is not None and not self.transactions_v2
        return LAST_BEFORE_TRANSACTIONS_V2 if limited else None

    def _topics(self, batches: Sequence[ProducerBatch]) -> dict[str, TopicBatches]:
        by_topic: dict[str, list[tuple[int, memoryview]]] = {}
        transactional = self._options.transactional_id is not None
        for batch in batches:
            wire = batch.encode(self._codec, self._level, transactional)
            by_topic.setdefault(batch.tp.topic, []).append((batch.tp.partition, wire))
        found = {}
        for name, partitions in by_topic.items():
            known = self._cluster.metadata.topic(name)
            if known is None:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {name} is not known any more")
            found[name] = TopicBatches(known.topic_id or NO_TOPIC_ID, partitions)
        return found


class WantedMetadata:
    """Topics whose leaders the sender needs: refreshed, at most every retry.backoff.ms."""

    def __init__(
        self,
        options: ProducerOptions,
        client: ProduceClient,
        background: Background,
        *,
        on_done: Callable[[], None],
    ) -> None:
        """`on_done` is called after every response, good or not."""
        self._pause_ms = max(1, options.retry_backoff_ms)
        self._client = client
        self._background = background
        self._on_done = on_done
        self._topics: set[str] = set()
        self._not_before_ms = 0
        self.last_error = ""
        """Why the last attempt failed, if it did."""

    def want(self, topics: Iterable[str]) -> None:
        self._topics.update(topics)

    def next_check_ms(self) -> int:
        return self._not_before_ms if self._topics else NEVER_MS

    def maybe_refresh(self, now_ms: int) -> None:
        if self._topics and now_ms >= self._not_before_ms:
            topics, self._topics = self._topics, set()
            self._not_before_ms = now_ms + self._pause_ms
            self._background.start("refreshing metadata", self._refresh(topics), self._on_failure)

    async def _refresh(self, topics: set[str]) -> None:
        try:
            await self._client.refresh_metadata(topics)
            self.last_error = ""
        except KafkaError as error:
            logger.info("metadata of %s: %s", ", ".join(sorted(topics)), error.message)
            self.last_error = error.message
        self._on_done()

    def _on_failure(self, error: KafkaError) -> None:
        """The next turn of the sender asks again, after a pause."""
        self.last_error = error.message
        self._on_done()


def _codec(options: ProducerOptions) -> tuple[CompressionType, int | None]:
    levels = {
        "gzip": options.compression_gzip_level,
        "lz4": options.compression_lz4_level,
        "zstd": options.compression_zstd_level,
    }
    return CompressionType[options.compression_type.upper()], levels.get(options.compression_type)
