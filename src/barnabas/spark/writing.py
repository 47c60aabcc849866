"""Writing the rows of one task. Runs on executors.

Exactly once: the rows of a task and a note "batch B is done" go into one transaction. The note is an offset of a
group per query and task (topic of the first row, partition 0, offset B + 1), so that it is committed with the rows or
not at all. A task that finds its note writes nothing. The transactional id also depends on query and task, so a second
attempt fences the first one. All of it works on any Kafka. The group is named like the transactional id, with a prefix
by which `barnabas group list` hides it.

It requires that a replayed batch is split into the same tasks, which is true for this source and all that follows it
without a shuffle. The note has the number of rows and bytes of the task; a replay with others is rejected.

A worker process keeps its clients across tasks: most tasks are too short to connect each time.
"""

import contextlib
import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.client.admin.admin import Admin
from barnabas.client.consumer.offsets import OffsetAndMetadata
from barnabas.client.producer.producer import Producer
from barnabas.errors import KafkaError
from barnabas.spark import SINK_GROUP_PREFIX
from barnabas.spark.options import SinkOptions
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    import pyarrow

    from barnabas.client.options.producer import ProducerOptions

logger = logging.getLogger(__name__)
_KEPT_WRITERS: Final = 64
_RECORD_COLUMNS: Final = ("key", "value", "headers", "topic", "partition")
_SETTINGS: Final = {"linger.ms": "5"}
"""No batch.size: without one a batch goes on filling while the sender is busy, which takes a fifth less CPU."""
_TRANSACTION_SETTINGS: Final = {"transaction.timeout.ms": "900000"}
"""The default maximum of brokers: a task is one transaction, and may take longer than a minute."""


class Written(NamedTuple):
    rows: int
    bytes: int
    replayed: bool = False


class ReplayError(RuntimeError):
    """A written batch is replayed with other rows in its tasks, or after a later one."""


@dataclass(frozen=True, slots=True)
class SinkGroup:
    """The group whose offsets are the notes; it has no members."""

    group_id: str
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None


class TaskWriter:
    """Producer and admin client of one transactional id; see above for why they outlive a task."""

    def __init__(self, name: str, options: SinkOptions) -> None:
        self.group = SinkGroup(SINK_GROUP_PREFIX + name)
        self.producer = Producer.from_config(_producer_options(options, name))
        self._admin = Admin.from_config(_admin_options(options.client))

    def begin(self) -> tuple[int, str]:
        """(newest batch that is written, its note); -1 if there is none.

        Always requests a new epoch, although a cached producer has one: that fences any other worker that wrote for
        this task, and waits until its transaction has ended. Then the note is final.
        """
        self.producer.init_transactions()
        notes = self._admin.list_group_offsets(self.group.group_id, require_stable=True)
        newest = max((note for note in notes.values() if note is not None), key=_offset, default=None)
        return (-1, "") if newest is None else (newest.offset - 1, newest.metadata or "")

    def close(self) -> None:
        with contextlib.suppress(KafkaError):
            self.producer.close(timeout=0)
        with contextlib.suppress(KafkaError):
            self._admin.close()


WriterKey = tuple[str, tuple[tuple[str, str], ...]]
_writers: dict[WriterKey, TaskWriter] = {}
"""By transactional id and options."""
_plain: dict[tuple[tuple[str, str], ...], Producer] = {}


def write_task(
    rows: "Iterator[pyarrow.RecordBatch]", options: SinkOptions, query: str, batch: int, task: int
) -> Written:
    rows = (_of_a_record(each, options) for each in rows if each.num_rows)
    if not options.exactly_once:
        return _write_plainly(rows, options)
    first = next(rows, None)
    if first is None:
        return Written(0, 0)
    key = (f"{options.transactional_id_prefix}-{query}-{task}", tuple(sorted(options.client.items())))
    writer = _writers.pop(key, None) or TaskWriter(key[0], options)
    try:
        newest, note = writer.begin()
        if batch < newest:
            raise ReplayError(
                f"batch {batch} of {key[0]} arrived although batch {newest} is written: the checkpoint is older than"
                " what was written with it (restored from a copy, or edited); use a new checkpoint, or set"
                " delivery to at-least-once"
            )
        if batch == newest:
            written = _replay(first, rows, key[0], batch, note)
        else:
            written = _write(first, rows, options, writer, batch)
    except BaseException:
        writer.close()
        raise
    _keep(key, writer)
    return written


def _write(
    first: "pyarrow.RecordBatch",
    rows: "Iterator[pyarrow.RecordBatch]",
    options: SinkOptions,
    writer: TaskWriter,
    batch: int,
) -> Written:
    producer = writer.producer
    with producer.transaction():
        marker = TopicPartition(_topic_of(first, options), 0)
        count, size = _send(producer, first, options)
        for more in rows:
            sent = _send(producer, more, options)
            count, size = count + sent[0], size + sent[1]
        producer.send_offsets({marker: OffsetAndMetadata(batch + 1, _note(count, size))}, writer.group)
    return Written(count, size)


def _replay(
    first: "pyarrow.RecordBatch", rows: "Iterator[pyarrow.RecordBatch]", name: str, batch: int, note: str
) -> Written:
    """Nothing is written; but different rows than the first time would mean silent loss or duplicates."""
    count, size = first.num_rows, _payload(first)
    for more in rows:
        count, size = count + more.num_rows, size + _payload(more)
    if note != _note(count, size):
        raise ReplayError(
            f"batch {batch} of {name} was written with {note}, and now has {_note(count, size)}: the query splits a"
            " replayed batch differently (a shuffle, another number of partitions, changed code); use a new"
            " checkpoint, or set delivery to at-least-once"
        )
    logger.info("batch %d of %s is already written: nothing to do", batch, name)
    return Written(count, size, replayed=True)


def _write_plainly(rows: "Iterator[pyarrow.RecordBatch]", options: SinkOptions) -> Written:
    key = tuple(sorted(options.client.items()))
    producer = _plain.get(key)
    if producer is None:
        producer = _plain[key] = Producer.from_config(_producer_options(options))
    count = size = 0
    try:
        deliveries = []
        for batch in rows:
            deliveries.append(producer.send_arrow(batch, topic=options.topic))
            count, size = count + batch.num_rows, size + _payload(batch)
        producer.flush()
        for delivery in deliveries:
            delivery.result()
    except BaseException:
        _plain.pop(key, None)
        with contextlib.suppress(KafkaError):
            producer.close(timeout=0)
        raise
    return Written(count, size)


def _send(producer: Producer, batch: "pyarrow.RecordBatch", options: SinkOptions) -> tuple[int, int]:
    producer.send_arrow(batch, topic=options.topic)
    return batch.num_rows, _payload(batch)


def _of_a_record(batch: "pyarrow.RecordBatch", options: SinkOptions) -> "pyarrow.RecordBatch":
    return batch.select(written_columns(batch.schema.names, options))


def written_columns(names: Iterable[str], options: SinkOptions) -> list[str]:
    """The columns of a record; others are ignored, and so are those that an option replaces."""
    ignored = {"topic"} if options.topic is not None else set()
    if not options.include_headers:
        ignored.add("headers")
    return [name for name in names if name in _RECORD_COLUMNS and name not in ignored]


def _payload(batch: "pyarrow.RecordBatch") -> int:
    """Bytes of the values: the same for the same rows, however they are divided into batches."""
    import pyarrow.compute as compute

    lengths = compute.binary_length(batch.column("value"))
    return compute.sum(lengths).as_py() or 0


def _topic_of(batch: "pyarrow.RecordBatch", options: SinkOptions) -> str:
    if options.topic is not None:
        return options.topic
    topic: str = batch.column("topic")[0].as_py()
    return topic


def _note(count: int, size: int) -> str:
    return f"{count} rows, {size} bytes"


def check_client(options: SinkOptions) -> None:
    """On the driver: raises ConfigError for what a task's producer would reject."""
    producer_options(options)


def producer_options(options: SinkOptions) -> "ProducerOptions":
    """As the producer of a task reads them. Raises ConfigError."""
    from barnabas.client.options.producer import ProducerOptions

    return ProducerOptions.from_config(_producer_options(options, options.transactional_id_prefix))


def _producer_options(options: SinkOptions, transactional_id: str = "") -> dict[str, str]:
    if not options.exactly_once:
        return {**_SETTINGS, **options.client}
    return {**_SETTINGS, **_TRANSACTION_SETTINGS, **options.client, "transactional.id": transactional_id}


def _admin_options(client: dict[str, str]) -> dict[str, str]:
    """Options that both producer and admin have; the rest is for producers."""
    from barnabas.client.options import AdminOptions

    return {name: value for name, value in client.items() if name in AdminOptions.settings}


def _offset(note: OffsetAndMetadata) -> int:
    return note.offset


def _keep(key: WriterKey, writer: TaskWriter) -> None:
    while len(_writers) >= _KEPT_WRITERS:
        _writers.pop(next(iter(_writers))).close()
    _writers[key] = writer
