"""The Fetch request: the partitions that are new to the fetch session or have changed, and how many bytes of each."""

from typing import Final

from barnabas.client.consumer.fetch_session import FetchPlan, SessionPartition
from barnabas.client.consumer.partition_state import PartitionState
from barnabas.client.options import ConsumerOptions
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic

FIRST_BYTES: Final = 2 << 20
LARGEST_BYTES: Final = 8 << 20
"""Larger responses have left the CPU cache before their records are read."""
QUICK_MS: Final = 50
SLOW_MS: Final = 500


def session_partition(state: PartitionState, max_bytes: int) -> SessionPartition:
    return SessionPartition(state.topic_id, state.fetch_offset, state.leader_epoch, max_bytes)


def fetch_request(plan: FetchPlan, version: int, options: ConsumerOptions) -> FetchRequest:
    topics: dict[str, FetchTopic] = {}
    for (topic, partition), entry in plan.send.items():
        of_topic = topics.get(topic)
        if of_topic is None:
            of_topic = topics[topic] = FetchTopic(topic=topic, topic_id=entry.topic_id, partitions=[])
        of_topic.partitions.append(
            FetchPartition(
                partition=partition,
                current_leader_epoch=entry.current_leader_epoch,
                fetch_offset=entry.fetch_offset,
                partition_max_bytes=entry.max_bytes,
            )
        )
    return FetchRequest(
        max_wait_ms=options.fetch_max_wait_ms,
        min_bytes=options.fetch_min_bytes,
        max_bytes=options.fetch_max_bytes,
        isolation_level=int(options.isolation_level == "read_committed"),
        session_id=plan.session_id,
        session_epoch=plan.epoch,
        topics=list(topics.values()),
        forgotten_topics_data=_forgotten(plan) if version >= 7 else [],
        rack_id=options.client_rack or "",
    )


def _forgotten(plan: FetchPlan) -> list[ForgottenTopic]:
    topics: dict[tuple[bytes, str], ForgottenTopic] = {}
    for topic_id, topic, partition in plan.forget:
        entry = topics.setdefault((topic_id, topic), ForgottenTopic(topic=topic, topic_id=topic_id, partitions=[]))
        entry.partitions.append(partition)
    return list(topics.values())


class ResponseSize:
    """How much to request from a broker per Fetch, unless the user has set max_partition_fetch_bytes. One per broker.

    With few partitions each may fill more of a response than its default: a response is worth its round trip only if it
    is large. But over a slow line the first records should come soon, and not a time-out. So responses grow as long as
    they arrive quickly, and shrink when they take long.
    """

    __slots__ = ("_bytes", "_fixed", "_partition_bytes")

    def __init__(self, options: ConsumerOptions) -> None:
        self._partition_bytes = options.max_partition_fetch_bytes
        self._fixed = "max_partition_fetch_bytes" in options.given
        self._bytes = FIRST_BYTES

    def per_partition(self, partitions: int) -> int:
        """How many bytes to request of each of so many partitions."""
        if self._fixed:
            return self._partition_bytes
        return max(self._partition_bytes, self._bytes // partitions)

    def on_response(self, size: int, took_ms: int) -> None:
        if 4 * size < 3 * self._bytes:
            return  # the broker had no more
        if took_ms <= QUICK_MS:
            self._bytes = min(2 * self._bytes, LARGEST_BYTES)
        elif took_ms >= SLOW_MS:
            self.shrink()

    def shrink(self) -> None:
        """Also after a failed request: its response may have taken too long."""
        self._bytes = max(self._bytes // 2, 1)
