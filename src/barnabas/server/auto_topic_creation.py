"""Topics that come into being because a client asked about them (auto.create.topics.enable).

As in Kafka 4.1 the first answer is UNKNOWN_TOPIC_OR_PARTITION: the topic is made in the background, and the client
finds it when it asks again. A name that is being made already is not asked for twice.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence

from barnabas.config.broker import BrokerConfig
from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.controller.commands import NewTopic, TopicResult

logger = logging.getLogger(__name__)

GROUP_METADATA_TOPIC = "__consumer_offsets"
TRANSACTION_STATE_TOPIC = "__transaction_state"


class AutoTopicCreation:
    def __init__(self, create_topics: Callable[[Sequence[NewTopic]], Awaitable[tuple[TopicResult, ...]]]) -> None:
        self._create_topics = create_topics
        self._in_flight: dict[str, None] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def request(self, topics: Iterable[NewTopic]) -> None:
        wanted = [topic for topic in topics if topic.name not in self._in_flight]
        if not wanted:
            return
        self._in_flight |= {topic.name: None for topic in wanted}
        task = asyncio.get_running_loop().create_task(self._create(wanted))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _create(self, topics: list[NewTopic]) -> None:
        try:
            for result in await self._create_topics(topics):
                if result.error not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                    logger.warning("topic %s could not be created: %s", result.name, result.message)
        except KafkaError as error:
            logger.warning("topics could not be created on demand: %s", error)
        finally:
            for topic in topics:
                del self._in_flight[topic.name]


def topic_on_demand(name: str, config: BrokerConfig) -> NewTopic:
    """A topic as it is created when nobody said how; the coordinators' own topics have settings of their own."""
    if name == GROUP_METADATA_TOPIC:
        return NewTopic(
            name,
            config.offsets_topic_num_partitions,
            config.offsets_topic_replication_factor,
            configs=(
                ("cleanup.policy", "compact"),
                ("compression.type", "producer"),
                ("segment.bytes", str(config.offsets_topic_segment_bytes)),
            ),
        )
    if name == TRANSACTION_STATE_TOPIC:
        return NewTopic(
            name,
            config.transaction_state_log_num_partitions,
            config.transaction_state_log_replication_factor,
            configs=(
                ("cleanup.policy", "compact"),
                ("compression.type", "uncompressed"),
                ("min.insync.replicas", str(config.transaction_state_log_min_isr)),
                ("segment.bytes", str(config.transaction_state_log_segment_bytes)),
                ("unclean.leader.election.enable", "false"),
            ),
        )
    return NewTopic(name)
