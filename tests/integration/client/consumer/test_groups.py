"""Subscriptions, commits, rebalances."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from confluent import make_topic
from confluent_kafka.admin import AdminClient
from consuming import poll_until, read

from barnabas import Consumer, TopicPartition
from barnabas.client.consumer import OffsetAndMetadata, RebalanceListener, SubscriptionPattern
from barnabas.client.errors import CommitFailedError, IllegalStateError, RebalanceInProgressError
from barnabas.errors import KafkaError

NewConsumer = Callable[..., Consumer]
PROTOCOLS = ["classic", "consumer"]


class Diary(RebalanceListener):
    def __init__(self) -> None:
        self.told: list[tuple[str, tuple[int, ...]]] = []
        self.threads: set[int] = set()

    def _tell(self, what: str, partitions: Sequence[TopicPartition]) -> None:
        self.told.append((what, tuple(sorted(entry.partition for entry in partitions))))
        self.threads.add(threading.get_ident())

    def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        self._tell("revoked", partitions)

    def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        self._tell("assigned", partitions)

    def on_lost(self, partitions: Sequence[TopicPartition]) -> None:
        self._tell("lost", partitions)


@pytest.fixture
def member(new_consumer: NewConsumer, name: str) -> NewConsumer:
    """A consumer of the group of this test; classic or not."""

    def make(protocol: str = "classic", **options: Any) -> Consumer:
        options = {"auto_offset_reset": "earliest", "enable_auto_commit": False, **options}
        if protocol == "classic":
            options.setdefault("heartbeat_interval_ms", 100)
        return new_consumer(group_id=name, group_protocol=protocol, **options)

    return make


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_subscribe_read_commit_and_go_on(member: NewConsumer, topic: str, fill: Any, protocol: str) -> None:
    values = fill(topic, 100)
    consumer = member(protocol)
    consumer.subscribe([topic])
    assert consumer.subscription() == {topic}
    assert [record.value for record in read(consumer, 60, max_records=60)] == values[:60]
    assert consumer.assignment() == {TopicPartition(topic, 0), TopicPartition(topic, 1)}
    assert consumer.group_metadata().group_id
    consumer.commit()
    assert consumer.committed()[TopicPartition(topic, 0)] == OffsetAndMetadata(60, "", 0)
    consumer.close()
    successor = member(protocol)
    successor.subscribe([topic])
    assert [record.value for record in read(successor, 40)] == values[60:]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_pattern_finds_topics_that_come_later(
    member: NewConsumer, name: str, judge: AdminClient, fill: Any, protocol: str
) -> None:
    first = make_topic(judge, f"{name}.first")
    fill(first, [b"1"])
    consumer = member(protocol, metadata_max_age_ms=300)
    consumer.subscribe(re.compile(re.escape(name) + r"\.\w+"))
    assert read(consumer, 1)[0].topic == first
    consumer.commit()
    second = make_topic(judge, f"{name}.second")
    make_topic(judge, f"x{name}.third")
    fill(second, [b"2"])
    assert read(consumer, 1)[0].topic == second
    assert consumer.subscription() == {first, second}


def test_a_pattern_of_the_broker(member: NewConsumer, name: str, judge: AdminClient, fill: Any) -> None:
    first = make_topic(judge, f"{name}.first")
    fill(first, [b"1"])
    consumer = member("consumer")
    consumer.subscribe(SubscriptionPattern(re.escape(name) + r"\..*"))
    assert read(consumer, 1)[0].topic == first
    with pytest.raises(IllegalStateError, match="group_protocol"):
        member("classic").subscribe(SubscriptionPattern("a.*"))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_two_members_share_and_the_listener_hears_of_it(
    member: NewConsumer, topic: str, fill: Any, protocol: str
) -> None:
    diaries = [Diary(), Diary()]
    consumers = [member(protocol), member(protocol)]
    consumers[0].subscribe([topic], diaries[0])
    poll_until(consumers[0], lambda: len(consumers[0].assignment()) == 2)
    consumers[1].subscribe([topic], diaries[1])

    def shared() -> bool:
        consumers[1].poll(0.05)
        return all(len(consumer.assignment()) == 1 for consumer in consumers)

    poll_until(consumers[0], shared)
    assert consumers[0].assignment().isdisjoint(consumers[1].assignment())
    assert next(entry for entry in diaries[0].told if entry[1]) == ("assigned", (0, 1))
    assert "revoked" in [what for what, _ in diaries[0].told]
    assert diaries[1].told[-1][0] == "assigned"
    assert diaries[0].threads == {threading.get_ident()}
    consumers[1].close()
    assert diaries[1].told[-1][0] == "revoked"
    poll_until(consumers[0], lambda: len(consumers[0].assignment()) == 2)
    consumers[0].unsubscribe()
    assert diaries[0].told[-1][0] == "revoked"
    assert consumers[0].assignment() == frozenset()
    consumers[0].subscribe([topic], diaries[0])
    fill(topic, 3)
    read(consumers[0], 3)


def test_the_listener_may_seek_and_commit(member: NewConsumer, topic: str, fill: Any) -> None:
    values = fill(topic, 20)
    consumer = member()

    class Elsewhere(RebalanceListener):
        def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
            consumer.seek((topic, 0), 15)
            assert consumer.position((topic, 1)) == 0

        def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
            consumer.commit({(topic, 0): 17})

    consumer.subscribe([topic], Elsewhere())
    assert [record.value for record in read(consumer, 5)] == values[15:]
    consumer.unsubscribe()
    assert consumer.committed([(topic, 0)]) == {TopicPartition(topic, 0): OffsetAndMetadata(17)}


def test_what_a_listener_raises_is_raised_by_poll(member: NewConsumer, topic: str, fill: Any) -> None:
    class Broken(RebalanceListener):
        def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
            raise LookupError("no")

    fill(topic, 1)
    consumer = member()
    consumer.subscribe([topic], Broken())
    with pytest.raises(LookupError):
        read(consumer, 1)
    assert len(read(consumer, 1)) == 1


def test_commits_of_single_partitions_with_metadata(member: NewConsumer, topic: str) -> None:
    consumer = member()
    consumer.assign([(topic, 0), (topic, 1)])
    consumer.commit({(topic, 0): 5, TopicPartition(topic, 1): OffsetAndMetadata(7, "note", 0)})
    assert consumer.committed() == {
        TopicPartition(topic, 0): OffsetAndMetadata(5),
        TopicPartition(topic, 1): OffsetAndMetadata(7, "note", 0),
    }
    assert consumer.committed([(topic, 1)]) == {TopicPartition(topic, 1): OffsetAndMetadata(7, "note", 0)}


def test_commits_without_waiting(member: NewConsumer, topic: str, fill: Any) -> None:
    seen: list[tuple[Mapping[TopicPartition, OffsetAndMetadata], KafkaError | None]] = []
    intercepted: list[int] = []

    class Watch:
        def on_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], error: KafkaError | None) -> None:
            intercepted.append(offsets[TopicPartition(topic, 0)].offset)

    fill(topic, 10)
    consumer = member(interceptor_classes=[Watch()])
    consumer.subscribe([topic])
    read(consumer, 10)
    consumer.commit_async({(topic, 0): 3}, lambda offsets, error: seen.append((offsets, error)))
    consumer.commit_async(callback=lambda offsets, error: seen.append((offsets, error)))
    poll_until(consumer, lambda: len(seen) == 2)
    assert [error for _, error in seen] == [None, None]
    assert [offsets[TopicPartition(topic, 0)].offset for offsets, _ in seen] == [3, 10]
    consumer.commit_async(callback=lambda offsets, error: seen.append((offsets, error)))
    consumer.close()
    assert len(seen) == 3
    assert intercepted == [3, 10, 10]


def test_automatic_commits_by_time_and_at_the_end(member: NewConsumer, topic: str, fill: Any) -> None:
    zero = TopicPartition(topic, 0)
    fill(topic, 100)
    consumer = member(enable_auto_commit=True, auto_commit_interval_ms=100)
    consumer.subscribe([topic])
    read(consumer, 30, max_records=30)

    def committed() -> bool:
        offset = consumer.committed([zero])[zero]
        return offset is not None and offset.offset == 30

    consumer.pause([zero])
    poll_until(consumer, committed)
    consumer.resume([zero])
    read(consumer, 20, max_records=20)
    consumer.close()
    judge = member()
    assert judge.committed([zero]) == {zero: OffsetAndMetadata(50, "", 0)}


def test_a_failed_block_does_not_count_what_was_in_hand(
    bootstrap: str, topic: str, name: str, fill: Any, member: NewConsumer
) -> None:
    zero = TopicPartition(topic, 0)
    fill(topic, 10)

    def work(break_it: bool) -> None:
        with Consumer(bootstrap, group_id=name, auto_offset_reset="earliest") as consumer:
            consumer.subscribe([topic])
            for number, _ in enumerate(consumer):
                if number == 4 and break_it:
                    raise LookupError("the work failed")
                if number == 4:
                    break

    with pytest.raises(LookupError):
        work(True)
    judge = member()
    assert judge.committed([zero]) == {zero: None}
    work(False)
    assert judge.committed([zero]) == {zero: OffsetAndMetadata(5, "", 0)}


def test_a_commit_after_losing_the_partition_is_refused(member: NewConsumer, topic: str, fill: Any) -> None:
    fill(topic, 10)
    slow = member(max_poll_interval_ms=300, session_timeout_ms=6000)
    slow.subscribe([topic])
    read(slow, 10)
    other = member()
    other.subscribe([topic])
    poll_until(other, lambda: len(other.assignment()) == 2)
    with pytest.raises((CommitFailedError, RebalanceInProgressError)) as raised:
        slow.commit()
    assert "poll" in str(raised.value)


def test_a_rebalance_on_request(member: NewConsumer, topic: str) -> None:
    diary = Diary()
    consumer = member()
    consumer.subscribe([topic], diary)
    poll_until(consumer, lambda: diary.told)
    generation = consumer.group_metadata().generation_id
    consumer.enforce_rebalance("because")
    poll_until(consumer, lambda: consumer.group_metadata().generation_id > generation)
    assert consumer.group_metadata().member_id


def test_ways_to_choose_exclude_each_other(member: NewConsumer, topic: str) -> None:
    consumer = member()
    consumer.subscribe([topic])
    with pytest.raises(IllegalStateError, match="exclude each other"):
        consumer.assign([(topic, 0)])
    with pytest.raises(IllegalStateError, match="exclude each other"):
        consumer.subscribe(re.compile("a"))
    with pytest.raises(TypeError, match="list"):
        consumer.subscribe(topic)
    consumer.unsubscribe()
    consumer.assign([(topic, 0)])
    with pytest.raises(IllegalStateError, match="no group to rebalance"):
        consumer.enforce_rebalance()


@pytest.mark.parametrize(
    "options",
    [
        {"partition_assignment_strategy": ["range"]},
        {"partition_assignment_strategy": ["cooperative-sticky"]},
        {"protocol": "consumer"},
    ],
)
def test_a_rebalance_loses_nothing_and_repeats_nothing(
    member: NewConsumer, topic: str, fill: Any, options: dict[str, Any]
) -> None:
    """With automatic commits: what was read of a partition is committed before it is given up."""
    fill(topic, 2000, 0)
    fill(topic, 2000, 1)
    about: dict[str, Any] = {"enable_auto_commit": True, "auto_commit_interval_ms": 60_000, "max_poll_records": 50}
    members = [member(**options, **about)]
    members[0].subscribe([topic])
    seen = [(record.partition, record.offset) for record in read(members[0], 300, max_records=50)]
    members.append(member(**options, **about))
    members[1].subscribe([topic])
    deadline = time.monotonic() + 30
    while len(seen) < 4000 and time.monotonic() < deadline:
        for consumer in members:
            seen += [(record.partition, record.offset) for record in consumer.poll(0.02)]
    assert sorted(seen) == [(partition, offset) for partition in (0, 1) for offset in range(2000)]
    members.pop(0).close()
    fill(topic, 10, 0)
    fill(topic, 10, 1)
    rest = [(record.partition, record.offset) for record in read(members[0], 20)]
    assert sorted(rest) == [(partition, offset) for partition in (0, 1) for offset in range(2000, 2010)]
