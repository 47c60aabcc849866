"""The writers of `format("barnabas")`: checks on the driver, `writing` in the tasks.

Columns as in the official connector: value (binary or string), and optionally key, headers, topic, partition. Others
are ignored. The topic comes from its column or from the option, which wins.
"""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.sql.types import ArrayType, BinaryType, DataType, IntegerType, StringType, StructType

from barnabas.client.errors import ConfigError
from barnabas.spark.options import SinkOptions
from barnabas.spark.task_input import whole
from barnabas.spark.writing import Written, check_client, write_task, written_columns

if TYPE_CHECKING:
    import pyarrow

_QUERY_ID = "sql.streaming.queryId"
_BATCH_ID = "streaming.sql.batchId"


@dataclass(frozen=True, slots=True)
class Done(WriterCommitMessage):
    """What a task reports to the driver."""

    written: Written


class BatchWriter(DataSourceArrowWriter):
    """A batch write: each task's rows exactly once, however often Spark retries the task."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options
        self._job = uuid.uuid4().hex

    def write(self, iterator: "Iterator[pyarrow.RecordBatch]") -> WriterCommitMessage:
        return Done(write_task(whole(iterator), self._options, self._job, 0, _context().partitionId()))


class StreamWriter(DataSourceStreamArrowWriter):
    """A streaming query: each task of each micro-batch exactly once, whatever is killed at any time."""

    def __init__(self, options: SinkOptions) -> None:
        self._options = options

    def write(self, iterator: "Iterator[pyarrow.RecordBatch]") -> "Done":
        context = _context()
        query, batch = context.getLocalProperty(_QUERY_ID), context.getLocalProperty(_BATCH_ID)
        if query is None or batch is None:
            raise RuntimeError("Spark did not report the query and batch of this task; use Spark 4.1 or later")
        rows = self.rows(whole(iterator), int(batch))
        return Done(write_task(rows, self._options, query, int(batch), context.partitionId()))

    def rows(self, rows: "Iterator[pyarrow.RecordBatch]", batch: int) -> "Iterator[pyarrow.RecordBatch]":
        """The rows to write: those of the task. A subclass may return others.

        Consumed while the transaction is open, and completely before it is committed; also if a replay finds its
        batch already written, and nothing is written.
        """
        return rows


def check_columns(schema: StructType, options: SinkOptions) -> None:
    """Raises ConfigError with every fault, before anything is written."""
    faults = []
    written = written_columns(schema.names, options)
    for field in schema.fields:
        allowed = _COLUMNS.get(field.name, ())
        if field.name in written and not any(_is(field.dataType, kind) for kind in allowed):
            wanted = " or ".join(kind.simpleString() for kind in allowed)
            faults.append(f"column {field.name}: is {field.dataType.simpleString()}, must be {wanted}")
    if "value" not in written:
        faults.append("column value: is missing")
    if "topic" not in written and options.topic is None:
        faults.append("topic: set the option topic, or add a column of that name")
    faults += [
        f"column {name}: is duplicated" for name in sorted({each for each in written if written.count(each) > 1})
    ]
    if faults:
        raise ConfigError(faults)
    check_client(options)


def _context() -> TaskContext:
    context = TaskContext.get()
    assert context is not None, "a writer runs in a task"
    return context


def _is(given: DataType, wanted: DataType) -> bool:
    """Equal except for nullability."""
    return given.simpleString() == wanted.simpleString()


_HEADERS = ArrayType(StructType().add("key", StringType()).add("value", BinaryType()))
_COLUMNS: dict[str, tuple[DataType, ...]] = {
    "key": (BinaryType(), StringType()),
    "value": (BinaryType(), StringType()),
    "topic": (StringType(),),
    "partition": (IntegerType(),),
    "headers": (_HEADERS,),
}
