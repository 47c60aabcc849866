"""The planner of `cluster balance` and `broker drain`: little moves, everything ends up even, racks are kept apart."""

import random

import pytest

from barnabas.client.balancing import (
    EVEN_ENOUGH,
    REPLICA_WEIGHT_BYTES,
    PlacedPartition,
    TooFewBrokersError,
    loads,
    moved_bytes,
    plan_moves,
)
from barnabas.types import TopicPartition

MB = 1 << 20


def topic(*replicas: tuple[int, ...], size: int = 0, name: str = "t") -> dict[TopicPartition, PlacedPartition]:
    return {TopicPartition(name, number): PlacedPartition(each, size) for number, each in enumerate(replicas)}


def racks(*brokers: int) -> dict[int, str | None]:
    return dict.fromkeys(brokers)


def test_what_is_even_stays() -> None:
    assert plan_moves(topic((1, 2), (2, 3), (3, 1)), racks(1, 2, 3)) == {}


def test_a_new_broker_gets_its_share_and_no_more_is_moved() -> None:
    partitions = topic(*[(1,), (2,)] * 6, size=100 * MB)
    plan = plan_moves(partitions, racks(1, 2, 3))
    assert {broker: load.replicas for broker, load in loads(partitions, [1, 2, 3], plan).items()} == {1: 4, 2: 4, 3: 4}
    assert all(holders == (3,) for holders in plan.values())
    assert moved_bytes(partitions, plan) == 4 * 100 * MB


def test_size_counts_more_than_number() -> None:
    partitions = topic((1,), (1,), (1,), size=MB) | topic((2,), size=1000 * MB, name="big")
    assert plan_moves(partitions, racks(1, 2)) == {}


def test_a_leaving_broker_is_emptied_and_nothing_else_moves() -> None:
    partitions = topic((1, 2), (2, 3), (3, 1), (1, 4), (1, 2), (1, 2))
    plan = plan_moves(partitions, racks(1, 2, 3, 4), leaving=[4], only_leaving=True)
    assert set(plan) == {TopicPartition("t", 3)}
    assert loads(partitions, [1, 2, 3, 4], plan)[4].replicas == 0


def test_replicas_that_share_a_rack_are_parted() -> None:
    placed = {1: "a", 2: "a", 3: "b"}
    plan = plan_moves(topic((1, 2)), placed)
    ((holders),) = plan.values()
    assert sorted(placed[each] for each in holders) == ["a", "b"]


def test_balancing_never_puts_replicas_into_one_rack() -> None:
    placed: dict[int, str | None] = {1: "a", 2: "a", 3: "b"}
    partitions = topic(*[(1, 3)] * 8, size=10 * MB)
    plan = plan_moves(partitions, placed)
    for key, each in partitions.items():
        assert {placed[broker] for broker in plan.get(key, each.replicas)} == {"a", "b"}
    after = loads(partitions, [1, 2, 3], plan)
    assert after[1].replicas == after[2].replicas == 4


def test_leaders_are_spread_without_moving_data() -> None:
    partitions = topic(*[(1, 2, 3)] * 6, size=MB)
    plan = plan_moves(partitions, racks(1, 2, 3))
    assert [load.leaders for load in loads(partitions, [1, 2, 3], plan).values()] == [2, 2, 2]
    assert moved_bytes(partitions, plan) == 0


def test_more_replicas_than_brokers() -> None:
    with pytest.raises(TooFewBrokersError, match="t-0 has 2 replicas, but only 1 broker"):
        plan_moves(topic((1, 2)), racks(1, 2), leaving=[2])


@pytest.mark.parametrize("seed", range(40))
def test_any_cluster_ends_up_even(seed: int) -> None:
    chance = random.Random(seed)
    names = [str(each) for each in range(chance.randint(1, 3))]
    placed: dict[int, str | None] = {each: chance.choice(names) for each in range(chance.randint(3, 7))}
    leaving = [chance.choice(list(placed))] if chance.random() < 0.5 and len(placed) > 3 else []
    factor = chance.randint(1, 3)
    partitions = {
        TopicPartition(f"t{number % 5}", number): PlacedPartition(
            tuple(chance.sample(list(placed), factor)), chance.randint(0, 50) * MB
        )
        for number in range(chance.randint(1, 80))
    }
    plan = plan_moves(partitions, placed, leaving=leaving)
    staying = {broker: rack for broker, rack in placed.items() if broker not in leaving}
    for key, each in partitions.items():
        holders = plan.get(key, each.replicas)
        assert len(set(holders)) == factor and set(holders) <= set(staying), (seed, key)
        possible = min(factor, len(set(staying.values())))
        assert len({staying[broker] for broker in holders}) == possible, (seed, key, holders)
    if len(set(staying.values())) == 1:
        weights = {
            broker: load.size + load.replicas * REPLICA_WEIGHT_BYTES
            for broker, load in loads(partitions, staying, plan).items()
        }
        largest = max(each.size for each in partitions.values()) + REPLICA_WEIGHT_BYTES
        average = sum(weights.values()) / len(weights)
        assert max(weights.values()) - min(weights.values()) <= max(largest, EVEN_ENOUGH * average), (seed, weights)
