"""Sizes of the newest records of a topic, from columns. Runs in a thread, with a consumer of its own."""

import time
from dataclasses import dataclass, field
from typing import Any

from barnabas.client.consumer.consumer import Consumer
from barnabas.types import TopicPartition

MOST_BYTES = 64 << 20
MOST_SECONDS = 5.0
QUANTILES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}


@dataclass(frozen=True, slots=True)
class Sample:
    """Sizes are {"min", "mean", "p50", "p95", "p99", "max"} in bytes; None without such records."""

    count: int
    key: dict[str, float] | None = None
    value: dict[str, float] | None = None
    headers: float = 0.0
    """Per record."""
    null_keys: int = 0
    null_values: int = 0
    distinct_keys: int = 0
    oldest_ms: int | None = None
    newest_ms: int | None = None
    payload_per_record: float | None = None
    histogram: list[dict[str, int]] = field(default_factory=list)
    """Values by size: up to `below` bytes, powers of two."""


def sample_records(consumer: Consumer, topic: str, partition_count: int, count: int) -> Sample:
    """About `count` records, the same number from the end of every partition."""
    partitions = [TopicPartition(topic, number) for number in range(partition_count)]
    consumer.assign(partitions)
    starts, ends = consumer.beginning_offsets(partitions), consumer.end_offsets(partitions)
    share = max(1, count // partition_count)
    left = {each: ends[each] for each in partitions if ends[each] > starts[each]}
    if not left:
        return Sample(0)
    consumer.assign(list(left))
    for each in left:
        consumer.seek(each, max(starts[each], ends[each] - share))
    batches: list[Any] = []
    size, until = 0, time.monotonic() + MOST_SECONDS
    while left and size < MOST_BYTES and time.monotonic() < until:
        rows = consumer.poll_arrow(0.2, max_bytes=8 << 20)
        if rows.num_rows:
            size += rows.nbytes
            batches.append(_sizes(rows))
        left = {each: end for each, end in left.items() if consumer.position(each) < end}
    return _sample(batches)


def _sizes(rows: Any) -> Any:
    """Numbers only, so that the records themselves are not kept; a key by its hash."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return pa.record_batch(
        {
            "key": pc.binary_length(rows.column("key")).cast(pa.int64()),
            "value": pc.binary_length(rows.column("value")).cast(pa.int64()),
            "headers": pc.fill_null(pc.list_value_length(rows.column("headers")), 0).cast(pa.int64()),
            "hash": pa.array([None if each is None else hash(each) for each in rows.column("key").to_pylist()]).cast(
                pa.int64()
            ),
            "timestamp": rows.column("timestamp").cast(pa.int64()),
        }
    )


def _sample(batches: list[Any]) -> Sample:
    import pyarrow as pa
    import pyarrow.compute as pc

    if not batches:
        return Sample(0)
    table = pa.Table.from_batches(batches)
    keys, values, times = table["key"], table["value"], table["timestamp"]
    payload = (pc.sum(keys).as_py() or 0) + (pc.sum(values).as_py() or 0)
    return Sample(
        count=table.num_rows,
        key=_spread(keys),
        value=_spread(values),
        headers=pc.mean(table["headers"]).as_py(),
        null_keys=keys.null_count,
        null_values=values.null_count,
        distinct_keys=pc.count_distinct(table["hash"]).as_py(),
        oldest_ms=pc.min(times).as_py(),
        newest_ms=pc.max(times).as_py(),
        payload_per_record=payload / table.num_rows,
        histogram=_histogram(values.drop_null().to_pylist()),
    )


def _spread(sizes: Any) -> dict[str, float] | None:
    import pyarrow.compute as pc

    if sizes.null_count == len(sizes):
        return None
    found = pc.quantile(sizes, q=list(QUANTILES.values()), interpolation="nearest").to_pylist()
    ends = pc.min_max(sizes).as_py()
    return {"min": ends["min"], "mean": pc.mean(sizes).as_py(), **dict(zip(QUANTILES, found)), "max": ends["max"]}


def _histogram(sizes: list[int]) -> list[dict[str, int]]:
    counts: dict[int, int] = {}
    for size in sizes:
        power = max(4, size.bit_length())
        counts[power] = counts.get(power, 0) + 1
    if not counts:
        return []
    return [{"below": 1 << power, "records": counts.get(power, 0)} for power in range(min(counts), max(counts) + 1)]
