"""Reading a range of offsets in a task, as Arrow batches. Runs on executors.

A worker process keeps one consumer per set of options, because Spark runs many short tasks in it, and connecting for
each would cost more than most of them read. This cache is the only state that outlives a call.
"""

import bisect
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from barnabas.client.consumer.consumer import Consumer
from barnabas.errors import KafkaError
from barnabas.spark.data_loss import explain_loss, explain_silence
from barnabas.spark.options import SourceOptions
from barnabas.spark.planning import OffsetRange
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    import pyarrow

_KEPT_CONSUMERS: Final = 4
_FIRST_WAIT_S: Final = 0.02
"""A range may end in transaction markers, after which no row follows: only the position shows it, so check it early."""
_LONGEST_WAIT_S: Final = 0.5
_SILENCE_S: Final = 1.0
"""After this long without a record, check whether the topic still exists."""
_DEFAULTS: Final = {"fetch.max.wait.ms": "5", "max.partition.fetch.bytes": str(8 * 1024 * 1024)}
"""The records of a task exist already: a fetch that waits for more would delay the next task, which reads elsewhere.
Large responses become large Arrow batches, each of which has a fixed cost in Spark."""
_TASK_SETTINGS: Final = {"enable.auto.commit": "false", "auto.offset.reset": "none"}

_consumers: dict[tuple[tuple[str, str], ...], Consumer] = {}


def read_ranges(
    ranges: list[OffsetRange], options: SourceOptions, topic_ids: Mapping[str, str]
) -> "Iterator[pyarrow.RecordBatch]":
    """One range after the other; no batch has records of two."""
    for each in ranges:
        yield from read_range(each, options, topic_ids.get(each.topic, ""))


def read_range(wanted: OffsetRange, options: SourceOptions, topic_id: str) -> "Iterator[pyarrow.RecordBatch]":
    """The records of the range, with the columns of the source. Raises DataLossError if some were deleted."""
    consumer = _consumer(options.client)
    try:
        yield from _read(consumer, wanted, options, topic_id)
    except BaseException:
        # The next task must not inherit its state.
        _forget(consumer)
        raise


def _read(
    consumer: Consumer, wanted: OffsetRange, options: SourceOptions, topic_id: str
) -> "Iterator[pyarrow.RecordBatch]":
    tp = TopicPartition(wanted.topic, wanted.partition)
    consumer.assign([tp])
    position = wanted.start
    consumer.seek(tp, position)
    waited, wait_s = 0.0, _FIRST_WAIT_S
    while position < wanted.end:
        try:
            rows = consumer.poll_arrow(wait_s)
        except KafkaError as error:
            position = explain_loss(consumer, tp, position, wanted, topic_id, error, options.fail_on_data_loss)
            consumer.seek(tp, position)
            continue
        before, position = position, consumer.position(tp)
        if rows.num_rows:
            yield _columns(_below(rows, wanted.end), options.include_headers)
        if position > before:
            waited, wait_s = 0.0, _FIRST_WAIT_S
            continue
        waited, wait_s = waited + wait_s, min(wait_s * 2, _LONGEST_WAIT_S)
        if waited >= _SILENCE_S:
            position = explain_silence(consumer, tp, position, wanted, topic_id, options.fail_on_data_loss)
        if waited * 1000 >= options.poll_timeout_ms:
            raise TimeoutError(
                f"{tp}: no record at offset {position} within {options.poll_timeout_ms} ms"
                f" (kafkaConsumer.pollTimeoutMs) although the range goes to {wanted.end}"
            )
    consumer.assign([])


def _below(rows: "pyarrow.RecordBatch", end: int) -> "pyarrow.RecordBatch":
    """Drops what was fetched beyond the end. Offsets ascend, so this is a search and a slice."""
    offsets = rows.column("offset")
    if offsets[-1].as_py() < end:
        return rows
    return rows.slice(0, bisect.bisect_left(range(rows.num_rows), end, key=lambda row: offsets[row].as_py()))


def _columns(rows: "pyarrow.RecordBatch", include_headers: bool) -> "pyarrow.RecordBatch":
    """The official connector's columns in its order; Spark's timestamps are microseconds."""
    import pyarrow

    names = ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType"]
    if include_headers:
        names.append("headers")
    arrays: list[Any] = [rows.column(name) for name in names]
    arrays[5] = arrays[5].cast(pyarrow.timestamp("us", "UTC"))
    return pyarrow.RecordBatch.from_arrays(arrays, names=names)


def _consumer(client: Mapping[str, str]) -> Consumer:
    key = tuple(sorted(client.items()))
    consumer = _consumers.pop(key, None)
    if consumer is None:
        while len(_consumers) >= _KEPT_CONSUMERS:
            _consumers.pop(next(iter(_consumers))).close()
        consumer = Consumer.from_config({**_DEFAULTS, **client, **_TASK_SETTINGS})
    _consumers[key] = consumer  # most recently used, evicted last
    return consumer


def _forget(consumer: Consumer) -> None:
    for key, kept in list(_consumers.items()):
        if kept is consumer:
            del _consumers[key]
    consumer.close()
