"""Placement of replicas: even, distinct, rack aware, and the same for the same seed."""

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.placement import place_replicas


class Fixed(Random):
    """Starts where Kafka's documentation of the algorithm starts: first broker, no shift."""

    def randrange(self, *_: object) -> int:  # type: ignore[override]
        return 0


def test_leaders_go_round_and_followers_shift() -> None:
    placed = place_replicas(dict.fromkeys(range(5)), 10, 3, Fixed())
    assert placed == [
        (0, 1, 2),
        (1, 2, 3),
        (2, 3, 4),
        (3, 4, 0),
        (4, 0, 1),
        (0, 2, 3),
        (1, 3, 4),
        (2, 4, 0),
        (3, 0, 1),
        (4, 1, 2),
    ]


def test_racks_alternate() -> None:
    racks = {0: "rack1", 1: "rack3", 2: "rack3", 3: "rack2", 4: "rack2", 5: "rack1"}
    placed = place_replicas(racks, 6, 3, Fixed())
    assert placed == [(0, 3, 1), (3, 1, 5), (1, 5, 4), (5, 4, 2), (4, 2, 0), (2, 0, 3)]
    for replicas in placed:
        assert len({racks[each] for each in replicas}) == 3


def test_racks_count_only_if_every_broker_has_one() -> None:
    assert place_replicas({0: "a", 1: "a", 2: None}, 1, 2, Fixed()) == [(0, 1)]


def test_new_partitions_go_on_where_the_old_ones_ended() -> None:
    brokers = dict.fromkeys(range(3))
    assert place_replicas(brokers, 2, 1, Fixed(), first_partition=2) == [(2,), (0,)]


def test_too_few_brokers() -> None:
    with pytest.raises(KafkaError, match="only 2 broker") as caught:
        place_replicas(dict.fromkeys(range(2)), 1, 3, Random(1))
    assert caught.value.code is ErrorCode.INVALID_REPLICATION_FACTOR


@given(
    seed=st.integers(0, 2**32),
    brokers=st.integers(1, 12),
    rack_count=st.integers(0, 4),
    partitions=st.integers(1, 60),
    data=st.data(),
)
def test_any_cluster(seed: int, brokers: int, rack_count: int, partitions: int, data: st.DataObject) -> None:
    factor = data.draw(st.integers(1, brokers))
    racks = {each: f"r{each % rack_count}" if rack_count else None for each in range(brokers)}
    placed = place_replicas(racks, partitions, factor, Random(seed))
    assert placed == place_replicas(racks, partitions, factor, Random(seed))
    assert len(placed) == partitions
    for replicas in placed:
        assert len(set(replicas)) == len(replicas) == factor
        if rack_count:
            assert len({racks[each] for each in replicas}) == min(factor, len(set(racks.values())))
    leaders = Counter(replicas[0] for replicas in placed)
    assert max(leaders.values()) - min(leaders.get(each, 0) for each in racks) <= 1
