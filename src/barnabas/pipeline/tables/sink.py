"""`format("barnabas-tables")`: the sink that the query for tables writes to. Options: `url`, `tables`.

A task has all that a batch takes from its partitions, one after the other, because nothing between source and sink
shuffles; so rows of a key come in their order. What it writes is named by batch and partition, so tasks need not be the
same in a replay. `url` is called that because Spark then keeps it out of its
plans and logs: it may hold a password.
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
"""A worker process keeps its connection from task to task; Spark has no other place that outlives one."""


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
            raise RuntimeError("Spark did not say which query and batch this is; use Spark 4.1 or later")
        # An attempt that was given up may end after the one that took its place: it must not replace it by less.
        for task in read_tasks(whole(iterator), self._specs):
            if self._place not in _opened:
                _opened[self._place] = self._place.open()
            _opened[self._place].write(task, query, int(batch))
        return WriterCommitMessage()


def specs_as_text(specs: Mapping[str, TableSpec]) -> str:
    return json.dumps(specs)


def specs_of(text: str) -> dict[str, TableSpec]:
    return {topic: TableSpec(kind, tuple(key), topic_id) for topic, (kind, key, topic_id) in json.loads(text).items()}
