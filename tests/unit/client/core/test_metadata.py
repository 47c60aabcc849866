"""What is taken over from responses and hints, and what is not: epochs never go back within one topic id."""

from __future__ import annotations

import pytest

from barnabas.client.metadata import MetadataCache, Node, NodeAndEpoch
from barnabas.errors import ErrorCode, ProtocolError
from barnabas.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from barnabas.types import TopicPartition

ID, OTHER_ID = b"a" * 16, b"b" * 16
T0 = TopicPartition("t", 0)


def response(*topics: MetadataResponseTopic, brokers: int = 2) -> MetadataResponse:
    nodes = [MetadataResponseBroker(node_id=number, host=f"h{number}", port=9092) for number in range(brokers)]
    return MetadataResponse(brokers=nodes, cluster_id="c", controller_id=1, topics=list(topics))


def topic(
    *leaders: tuple[int, int], name: str | None = "t", topic_id: bytes = ID, error: int = 0
) -> MetadataResponseTopic:
    partitions = [
        MetadataResponsePartition(partition_index=number, leader_id=leader, leader_epoch=epoch)
        for number, (leader, epoch) in enumerate(leaders)
    ]
    return MetadataResponseTopic(name=name, topic_id=topic_id, partitions=partitions, error_code=error)


@pytest.fixture
def cache() -> MetadataCache:
    made = MetadataCache()
    made.update(response(topic((0, 5), (1, 5))), all_topics=False)
    return made


def test_a_response_is_taken_over(cache: MetadataCache) -> None:
    assert cache.brokers[1] == Node(1, "h1", 9092)
    assert (cache.cluster_id, cache.controller_id, cache.names) == ("c", 1, {ID: "t"})
    assert cache.leader(T0) == NodeAndEpoch(0, 5)
    assert cache.leader(TopicPartition("t", 2)) is None
    assert cache.leader(TopicPartition("t", -1)) is None
    assert cache.leader(TopicPartition("u", 0)) is None


def test_an_older_leader_epoch_is_not_believed(cache: MetadataCache) -> None:
    cache.update(response(topic((1, 4), (0, 6))), all_topics=False)
    assert cache.leader(T0) == NodeAndEpoch(0, 5)
    assert cache.leader(TopicPartition("t", 1)) == NodeAndEpoch(0, 6)


def test_a_broker_that_knows_no_epochs_is_believed(cache: MetadataCache) -> None:
    cache.update(response(topic((1, -1), (0, -1))), all_topics=False)
    assert cache.leader(T0) == NodeAndEpoch(1, -1)


def test_a_topic_that_was_made_again_begins_again(cache: MetadataCache) -> None:
    cache.update(response(topic((1, 0), topic_id=OTHER_ID)), all_topics=False)
    assert cache.leader(T0) == NodeAndEpoch(1, 0)
    assert cache.names == {OTHER_ID: "t"}
    assert cache.topics["t"].partition_count == 1


def test_partitions_that_were_added(cache: MetadataCache) -> None:
    cache.update(response(topic((0, 5), (1, 5), (0, 0))), all_topics=False)
    assert cache.topics["t"].partition_count == 3


def test_a_part_leaves_the_rest_and_all_topics_do_not(cache: MetadataCache) -> None:
    cache.update(response(topic((0, 1), name="u", topic_id=OTHER_ID)), all_topics=False)
    assert set(cache.topics) == {"t", "u"}
    cache.update(response(topic((0, 1), name="u", topic_id=OTHER_ID)), all_topics=True)
    assert set(cache.topics) == {"u"}


def test_errors_of_topics(cache: MetadataCache) -> None:
    cache.update(response(topic(error=int(ErrorCode.LEADER_NOT_AVAILABLE))), all_topics=False)
    assert cache.leader(T0) == NodeAndEpoch(0, 5), "an election does not make a topic unknown"
    cache.update(response(topic(error=int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))), all_topics=False)
    assert "t" not in cache.topics
    assert cache.invalid_topics == {"t": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    cache.update(response(topic((0, 0), topic_id=OTHER_ID)), all_topics=False)
    assert not cache.invalid_topics


def test_a_topic_by_its_id_alone(cache: MetadataCache) -> None:
    cache.update(response(topic((1, 7), (1, 7), name=None)), all_topics=False)
    assert cache.leader(T0) == NodeAndEpoch(1, 7)
    cache.update(response(topic((1, 7), name=None, topic_id=OTHER_ID)), all_topics=False)
    assert set(cache.topics) == {"t"}


def test_a_leader_without_an_address_is_none(cache: MetadataCache) -> None:
    cache.update(response(topic((9, 6), (-1, 6))), all_topics=False)
    assert cache.leader(T0) is None
    cache.add_nodes([Node(9, "h9", 1)])
    assert cache.leader(T0) == NodeAndEpoch(9, 6)


def test_hints_count_only_if_they_are_newer(cache: MetadataCache) -> None:
    assert not cache.update_leader(T0, 1, 5)
    assert not cache.update_leader(T0, 1, 4)
    assert not cache.update_leader(T0, 9, 6), "nobody knows where node 9 is"
    assert not cache.update_leader(TopicPartition("t", 5), 1, 6)
    version = cache.version
    assert cache.update_leader(T0, 1, 6)
    assert cache.leader(T0) == NodeAndEpoch(1, 6)
    assert cache.version == version + 1


def test_readers_keep_what_they_have(cache: MetadataCache) -> None:
    """Other threads read while the loop writes: what they hold must not change under them."""
    topics, brokers = cache.topics, cache.brokers
    cache.update(response(brokers=1), all_topics=True)
    assert list(topics) == ["t"] and len(brokers) == 2
    with pytest.raises(TypeError):
        cache.topics["x"] = topics["t"]  # type: ignore[index]


def test_topics_that_nobody_uses_are_forgotten(cache: MetadataCache) -> None:
    cache.forget(["t"])
    assert not cache.topics and not cache.names


def test_impossible_partition_numbers_take_no_memory(cache: MetadataCache) -> None:
    bad = topic((0, 0))
    for number in (2_000_000_000, -1):
        bad.partitions[0].partition_index = number
        with pytest.raises(ProtocolError):
            cache.update(response(bad), all_topics=False)


def test_racks_of_replicas_as_far_as_they_are_known(cache: MetadataCache) -> None:
    assert cache.replica_racks() == {}
    placed = topic((0, 6), (1, 6))
    placed.partitions[0].replica_nodes = [0, 1]
    placed.partitions[1].replica_nodes = [1, 2]
    answer = response(placed, brokers=3)
    answer.brokers[0].rack, answer.brokers[1].rack = "r0", "r1"
    cache.update(answer, all_topics=False)
    assert cache.replica_racks() == {"t": [frozenset({"r0", "r1"}), frozenset({"r1"})]}
