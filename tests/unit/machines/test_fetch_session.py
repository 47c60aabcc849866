"""Incremental fetch sessions: epochs, what belongs in a response, and which session is evicted from a full cache."""

import random

import pytest

from barnabas.errors import ErrorCode
from barnabas.machines.fetch_context import FetchContext, FetchPartition, PartitionKey
from barnabas.machines.fetch_session import FINAL_EPOCH, MAX_INT, FetchSessionCache, next_epoch

TOPIC_ID = b"0123456789abcdef"
EVICTION_MS = 1000


def make_cache(max_slots: int = 10) -> FetchSessionCache:
    return FetchSessionCache(max_slots, EVICTION_MS, random.Random(7))


def wanted(*partitions: int, topic: str | bytes = "t", offset: int = 0) -> list[FetchPartition]:
    return [FetchPartition(topic, partition, offset, 1_000_000) for partition in partitions]


def open_context(
    cache: FetchSessionCache,
    session_id: int,
    epoch: int,
    partitions: list[FetchPartition],
    forgotten: list[PartitionKey] | None = None,
    now_ms: int = 0,
    uses_topic_ids: bool = False,
    follower: bool = False,
) -> FetchContext:
    return cache.open(
        session_id,
        epoch,
        partitions,
        forgotten or [],
        uses_topic_ids=uses_topic_ids,
        follower=follower,
        now_ms=now_ms,
    )


def included_in_response(
    context: FetchContext, with_records: tuple[int, ...] = (), now_ms: int = 0, high_watermark: int = 10
) -> list[int]:
    """Give every partition the same result; return which were included."""
    included = [
        wanted.partition
        for wanted in context.partitions
        if context.include(wanted, 0, high_watermark, 0, 100 if wanted.partition in with_records else 0)
    ]
    error, _ = context.finish(now_ms)
    assert error is ErrorCode.NONE
    return included


def create(
    cache: FetchSessionCache,
    partition_count: int = 1,
    now_ms: int = 0,
    follower: bool = False,
    high_watermark: int = 10,
) -> int:
    """A full fetch; the id of the session it got, or 0."""
    context = open_context(cache, 0, 0, wanted(*range(partition_count)), now_ms=now_ms, follower=follower)
    for partition in context.partitions:
        assert context.include(partition, 0, high_watermark, 0, 0)
    error, session_id = context.finish(now_ms)
    assert error is ErrorCode.NONE
    return session_id


def test_epochs_go_round_to_one() -> None:
    assert [next_epoch(epoch) for epoch in (0, 1, MAX_INT, FINAL_EPOCH)] == [1, 2, 1, FINAL_EPOCH]


def test_without_a_session_everything_gets_a_response_and_nothing_is_kept() -> None:
    cache = make_cache()
    context = open_context(cache, 0, FINAL_EPOCH, wanted(0, 1))
    assert [context.include(partition, 0, 5, 0, 0) for partition in context.partitions] == [True, True]
    assert context.finish(0) == (ErrorCode.NONE, 0)
    assert len(cache) == 0


def test_an_incremental_fetch_reads_the_whole_session_and_responds_what_changed() -> None:
    cache = make_cache()
    session_id = create(cache, 3)
    assert session_id > 0
    context = open_context(cache, session_id, 1, [])
    assert [partition.partition for partition in context.partitions] == [0, 1, 2]
    assert included_in_response(context) == []
    assert included_in_response(open_context(cache, session_id, 2, []), with_records=(1,)) == [1]
    assert included_in_response(open_context(cache, session_id, 3, []), high_watermark=11) == [0, 2, 1]
    assert included_in_response(open_context(cache, session_id, 4, []), high_watermark=11) == []


def test_what_belongs_in_a_response() -> None:
    cache = make_cache()
    session_id = create(cache, 1)

    def is_included(epoch: int, *result: int, redirects: bool = False) -> bool:
        context = open_context(cache, session_id, epoch, [])
        (partition,) = context.partitions
        included = context.include(partition, *result, redirects=redirects)
        assert context.finish(0) == (ErrorCode.NONE, session_id)
        return included

    offset_out_of_range = int(ErrorCode.OFFSET_OUT_OF_RANGE)
    assert not is_included(1, 0, 10, 0, 0)
    assert is_included(2, 0, 10, 4, 0), "log start moved"
    assert not is_included(3, 0, 10, 4, 0)
    assert is_included(4, 0, 10, 4, 0, redirects=True), "preferred replica or diverging epoch"
    assert is_included(5, offset_out_of_range, 10, 4, 0)
    assert is_included(6, offset_out_of_range, 10, 4, 0), "errors are always sent"
    assert is_included(7, 0, 10, 4, 0), "the error is gone"
    assert not is_included(8, 0, 10, 4, 0)


def test_in_another_leader_epoch_a_partition_is_told_again() -> None:
    """What was sent in the epoch before may have come too late to count."""
    cache = make_cache()
    session_id = create(cache, 2)
    assert included_in_response(open_context(cache, session_id, 1, [])) == []
    later = FetchPartition("t", 1, 0, 1_000_000, current_leader_epoch=5)
    assert included_in_response(open_context(cache, session_id, 2, [*wanted(0), later])) == [1]


def test_partitions_with_records_go_to_the_end() -> None:
    cache = make_cache()
    session_id = create(cache, 4)
    included_in_response(open_context(cache, session_id, 1, []), with_records=(0, 2))
    context = open_context(cache, session_id, 2, [])
    assert [partition.partition for partition in context.partitions] == [1, 3, 0, 2]


def test_a_request_adds_changes_and_forgets_partitions() -> None:
    cache = make_cache()
    session_id = create(cache, 3)
    context = open_context(cache, session_id, 1, wanted(1, 7, offset=42), forgotten=[("t", 0), ("t", 99)])
    assert [(p.partition, p.fetch_offset) for p in context.partitions] == [(1, 42), (2, 0), (7, 42)]
    assert cache.partition_count == 3
    assert included_in_response(context) == [7], "a changed offset alone is not included; a new partition is"


def test_forgetting_the_last_partition_ends_the_session() -> None:
    cache = make_cache()
    session_id = create(cache, 1)
    context = open_context(cache, session_id, 1, [], forgotten=[("t", 0)])
    assert context.finish(0) == (ErrorCode.NONE, 0)
    assert (len(cache), cache.partition_count) == (0, 0)


def test_session_errors() -> None:
    cache = make_cache()
    session_id = create(cache)
    for unknown_id, epoch, uses_topic_ids, error in (
        (session_id + 1, 1, False, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        (session_id, 2, False, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
        (session_id, 1, True, ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR),
    ):
        context = open_context(cache, unknown_id, epoch, wanted(5), uses_topic_ids=uses_topic_ids)
        assert list(context.partitions) == []
        assert context.finish(0) == (error, 0)
        assert context.finish_throttled() == (error, 0)
    session = cache.get(session_id)
    assert session is not None
    assert (session.epoch, list(session.partitions)) == (1, [("t", 0)]), "a refused request changes nothing"


def test_topic_ids_and_names_are_different_keys() -> None:
    cache = make_cache()
    context = open_context(cache, 0, 0, wanted(0, topic=TOPIC_ID), uses_topic_ids=True)
    _, session_id = context.finish(0)
    context = open_context(cache, session_id, 1, [], forgotten=[(TOPIC_ID, 0)], uses_topic_ids=True)
    assert context.finish(0) == (ErrorCode.NONE, 0)
    assert open_context(cache, session_id, 2, [], uses_topic_ids=True).error is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


@pytest.mark.parametrize("epoch", [0, FINAL_EPOCH])
def test_a_full_fetch_closes_the_session_it_names(epoch: int) -> None:
    cache = make_cache()
    session_id = create(cache)
    context = open_context(cache, session_id, epoch, wanted(0))
    assert cache.get(session_id) is None
    _, new_id = context.finish(0)
    assert new_id != session_id
    assert (new_id == 0) == (epoch == FINAL_EPOCH)


def test_a_parked_fetch_that_was_overtaken_is_refused_and_changes_nothing() -> None:
    cache = make_cache()
    session_id = create(cache, 2)
    parked = open_context(cache, session_id, 1, [])
    overtaking = open_context(cache, session_id, 2, [])
    for partition in list(parked.partitions):
        assert not parked.include(partition, 0, 99, 0, 100)
    assert parked.finish(0) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, session_id)
    assert parked.finish_throttled() == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, session_id)
    assert [partition.partition for partition in overtaking.partitions] == [0, 1]
    assert included_in_response(overtaking) == []


def test_a_throttled_response_keeps_the_session() -> None:
    cache = make_cache()
    session_id = create(cache)
    assert open_context(cache, session_id, 1, []).finish_throttled() == (ErrorCode.NONE, session_id)
    assert open_context(cache, session_id, 2, []).error is ErrorCode.NONE
    assert open_context(cache, 0, 0, wanted(0)).finish_throttled() == (ErrorCode.NONE, 0)


def test_no_slots_no_sessions() -> None:
    cache = make_cache(max_slots=0)
    assert create(cache, 3, follower=True) == 0


def test_a_full_cache_gives_up_the_session_unused_for_longest() -> None:
    cache = make_cache(max_slots=2)
    first, second = create(cache, 5), create(cache, 5)
    open_context(cache, first, 1, [], now_ms=600)
    assert create(cache, 1, now_ms=EVICTION_MS) == 0, "nobody was unused for longer than the limit"
    third = create(cache, 1, now_ms=EVICTION_MS + 1)
    assert third
    assert [cache.get(session_id) is not None for session_id in (first, second, third)] == [True, False, True]
    assert (cache.eviction_count, cache.partition_count) == (1, 6)


def test_a_larger_session_takes_the_place_of_a_smaller_one_that_is_old_enough() -> None:
    cache = make_cache(max_slots=2)
    small, large = create(cache, 2), create(cache, 4)
    assert create(cache, 9, now_ms=10) == 0, "both are too new"
    for session_id in (small, large):
        included_in_response(open_context(cache, session_id, 1, [], now_ms=900))
        included_in_response(open_context(cache, session_id, 2, [], now_ms=1800))
    assert create(cache, 2, now_ms=1900) == 0, "of equals, the one that is there stays"
    assert create(cache, 3, now_ms=1900)
    assert cache.get(small) is None
    assert cache.get(large) is not None


def test_a_follower_takes_the_place_of_any_client() -> None:
    cache = make_cache(max_slots=2)
    client, other = create(cache, 50), create(cache, 60)
    follower = create(cache, 1, now_ms=1, follower=True)
    assert follower
    assert cache.get(client) is None, "the smaller of the two"
    assert create(cache, 1, now_ms=2, follower=True)
    assert cache.get(other) is None
    assert create(cache, 100, now_ms=3) == 0, "a client never takes a follower's"
    assert create(cache, 100, now_ms=3, follower=True) == 0, "nor a follower that of another, while it is new"


def test_sizes_in_the_eviction_order_follow_the_session() -> None:
    cache = make_cache(max_slots=2)
    grown, stays = create(cache, 1), create(cache, 2)
    included_in_response(open_context(cache, grown, 1, wanted(*range(10)), now_ms=1))
    assert create(cache, 3, now_ms=2, follower=True)
    assert cache.get(grown) is not None
    assert cache.get(stays) is None
    assert cache.partition_count == 13


def test_session_ids_are_unique_and_positive() -> None:
    class Repeating(random.Random):
        numbers = iter([5, 5, 5, 6])

        def randrange(self, *arguments: int) -> int:  # type: ignore[override]
            return next(self.numbers)

    cache = FetchSessionCache(10, EVICTION_MS, Repeating())
    assert [create(cache), create(cache)] == [5, 6]
