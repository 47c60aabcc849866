"""Topics that are created because a client requested their metadata (auto.create.topics.enable).

As in Kafka 4.1 the first response is UNKNOWN_TOPIC_OR_PARTITION: the topic is made in the background, and the client
finds it with its next request. A name that is being created already is not requested twice.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence

from barnabas.config.broker import BrokerConfig
from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.controller.commands import NewTopic
from barnabas.metadata.image import ClusterImage

logger = logging.getLogger(__name__)

GROUP_METADATA_TOPIC = "__consumer_offsets"
TRANSACTION_STATE_TOPIC = "__transaction_state"

CreateTopics = Callable[[Sequence[NewTopic]], Awaitable[Sequence[tuple[str, ErrorCode, str]]]]
"""Topics -> (name, error, message) of each, from the controller, wherever it is."""


class AutoTopicCreation:
    def __init__(self, create_topics: CreateTopics) -> None:
        self._create_topics = create_topics
        self._in_flight: dict[str, asyncio.Task[None]] = {}

    def request(self, topics: Iterable[NewTopic]) -> None:
        wanted = [topic for topic in topics if topic.name not in self._in_flight]
        if not wanted:
            return
        task = asyncio.get_running_loop().create_task(self._create(wanted))
        self._in_flight |= {topic.name: task for topic in wanted}

    async def create(self, topic: NewTopic) -> None:
        """The same, and waits until it is made, or could not be."""
        self.request((topic,))
        await asyncio.shield(self._in_flight[topic.name])

    async def stop(self) -> None:
        tasks = list(self._in_flight.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _create(self, topics: list[NewTopic]) -> None:
        try:
            for name, error, message in await self._create_topics(topics):
                if error not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                    logger.warning("topic %s could not be created: %s", name, message)
        except KafkaError as error:
            logger.warning("topics could not be created on demand: %s", error)
        finally:
            for topic in topics:
                del self._in_flight[topic.name]


def topic_on_demand(name: str, config: BrokerConfig, image: ClusterImage) -> NewTopic:
    """A topic as it is created when nobody said how; the coordinators' own topics have settings of their own.

    Those are made with as many replicas as the cluster has brokers, if that is fewer than the settings say: a lone
    broker started with Kafka's defaults (3 replicas, 2 in sync) coordinates groups and transactions all the same, and
    the controller adds replicas when more brokers come. Brokers that are known but away count: who waits for them has
    the replicas from the start.
    """
    configs = settings_on_demand(name, config)
    if name == GROUP_METADATA_TOPIC:
        factor = _possible(name, config.offsets_topic_replication_factor, image)
        return NewTopic(name, config.offsets_topic_num_partitions, factor, configs=configs)
    if name == TRANSACTION_STATE_TOPIC:
        factor = _possible(name, config.transaction_state_log_replication_factor, image)
        return NewTopic(name, config.transaction_state_log_num_partitions, factor, configs=configs)
    return NewTopic(name)


def settings_on_demand(name: str, config: BrokerConfig) -> tuple[tuple[str, str | None], ...]:
    """Of the coordinators' topics; any other has none."""
    if name == GROUP_METADATA_TOPIC:
        return (
            ("cleanup.policy", "compact"),
            ("compression.type", "producer"),
            ("segment.bytes", str(config.offsets_topic_segment_bytes)),
        )
    if name == TRANSACTION_STATE_TOPIC:
        return (
            ("cleanup.policy", "compact"),
            ("compression.type", "uncompressed"),
            ("min.insync.replicas", str(config.transaction_state_log_min_isr)),
            ("segment.bytes", str(config.transaction_state_log_segment_bytes)),
            ("unclean.leader.election.enable", "false"),
        )
    return ()


def _possible(name: str, replication_factor: int, image: ClusterImage) -> int:
    known_count = len(image.brokers) + len(image.fenced_brokers)
    if replication_factor > known_count:
        logger.info("%s is created with replication factor %d instead of %d", name, known_count, replication_factor)
    return min(replication_factor, known_count)
