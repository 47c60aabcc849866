"""Responses grow while they come quickly, and shrink when they do not."""

from typing import Any

from barnabas.client.consumer.fetch_request import (
    FIRST_BYTES,
    LARGEST_BYTES,
    QUICK_MS,
    SLOW_MS,
    ResponseSize,
)
from barnabas.client.options import ConsumerOptions

MEGABYTE = 1 << 20


def size_of(**options: Any) -> ResponseSize:
    return ResponseSize(ConsumerOptions.of("fake:9092", **options))


def after(size: ResponseSize, *took_ms: int) -> list[int]:
    """What is asked for of a single partition, each response being as large as it may."""
    asked = []
    for each in took_ms:
        size.on_response(size.per_partition(1), each)
        asked.append(size.per_partition(1))
    return asked


def test_quick_responses_grow_up_to_a_bound() -> None:
    size = size_of()
    assert size.per_partition(1) == FIRST_BYTES
    grown = after(size, *[QUICK_MS] * 6)
    assert grown[:2] == [2 * FIRST_BYTES, 4 * FIRST_BYTES]
    assert grown[-1] == LARGEST_BYTES


def test_slow_responses_shrink_to_what_kafka_would_ask_for() -> None:
    size = size_of()
    after(size, *[QUICK_MS] * 2)
    assert after(size, SLOW_MS, SLOW_MS, SLOW_MS, SLOW_MS, SLOW_MS) == [4 << 20, 2 << 20, *[MEGABYTE] * 3]
    assert after(size, *[QUICK_MS] * 8)[-1] == LARGEST_BYTES, "and grow again"
    size.shrink()
    assert size.per_partition(1) == LARGEST_BYTES // 2


def test_neither_quick_nor_slow_or_not_full() -> None:
    size = size_of()
    assert after(size, QUICK_MS + 1, SLOW_MS - 1) == [FIRST_BYTES] * 2
    size.on_response(FIRST_BYTES // 2, 0)
    size.on_response(FIRST_BYTES // 2, SLOW_MS)
    assert size.per_partition(1) == FIRST_BYTES


def test_partitions_share_a_response_but_none_gets_less_than_its_due() -> None:
    size = size_of()
    after(size, *[0] * 3)
    assert [size.per_partition(count) for count in (1, 2, 8, 99)] == [8 << 20, 4 << 20, 1 << 20, 1 << 20]


def test_what_the_user_said_counts() -> None:
    size = size_of(max_partition_fetch_bytes=5000)
    assert after(size, 0, 0, SLOW_MS) == [5000] * 3
