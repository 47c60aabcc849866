"""`format("barnabas-tables")`: the sink of the query for tables. Options: `url`, `tables`.

A task has all records that a batch has of its partitions, one after the other, because nothing between source and sink
shuffles; so the rows of a key are in order. Its output is identified by batch and partition, so tasks may differ in a
replay. The option is called `url` because Spark redacts that name in plans and logs: it may contain a password.
"""

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSource,
    DataSourceStreamArrowWriter,
    DataSourceStreamWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from barnabas.pipeline.tables.place import Place, Tables, parse_place
from barnabas.pipeline.tables.rows import TableSpec, read_tasks
from barnabas.spark.task_input import whole

if TYPE_CHECKING:
    import pyarrow

FORMAT: Final = "barnabas-tables"
_QUERY_ID: Final = "sql.streaming.queryId"
_BATCH_ID: Final = "streaming.sql.batchId"

_opened: dict[Place, Tables] = {}
"""A worker process keeps its connection across tasks."""


class TablesDataSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return FORMAT

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        return TablesWriter(parse_place(self.options["url"]), specs_of(self.options["tables"]))


class TablesWriter(DataSourceStreamArrowWriter):
    def __init__(self, place: Place, specs: Mapping[str, TableSpec]) -> None:
        self._place = place
        self._specs = specs

    def write(self, iterator: "Iterator[pyarrow.RecordBatch]") -> WriterCommitMessage:
        context = TaskContext.get()
        assert context is not None, "a writer runs in a task"
        query, batch = context.getLocalProperty(_QUERY_ID), context.getLocalProperty(_BATCH_ID)
        if query is None or batch is None:
            raise RuntimeError("Spark did not report the query and batch; use Spark 4.1 or later")
        # An abandoned attempt may end after the one that replaced it, and must not overwrite it with less.
        for task in read_tasks(whole(iterator), self._specs):
            if self._place not in _opened:
                _opened[self._place] = self._place.open()
            _opened[self._place].write(task, query, int(batch))
        return WriterCommitMessage()


def specs_as_text(specs: Mapping[str, TableSpec]) -> str:
    return json.dumps(specs)


def specs_of(text: str) -> dict[str, TableSpec]:
    return {topic: TableSpec(kind, tuple(key), topic_id) for topic, (kind, key, topic_id) in json.loads(text).items()}
