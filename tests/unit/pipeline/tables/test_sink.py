"""The sink of the tables in a worker whose task was given up."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet
from table_tasks import SPECS, record_batch, row

from barnabas.pipeline.tables import sink
from barnabas.pipeline.tables.place import Place
from barnabas.pipeline.tables.sink import TablesWriter
from barnabas.spark.task_input import CutOffError

DIMENSION = "dim_user_info"


class Context:
    """Of a task, as far as it is asked."""

    @staticmethod
    def get() -> Any:
        return Context()

    def getLocalProperty(self, name: str) -> str:
        return "7"


def main(infile: Any, writer: TablesWriter) -> None:
    """In the place of Spark's worker."""
    writer.write(iter(pyarrow.ipc.open_stream(infile)))


as_worker: Callable[[Any, TablesWriter], None] = FunctionType(
    main.__code__, {**globals(), "__name__": "pyspark.worker"}, "main"
)


def stream(*batches: pyarrow.RecordBatch, ended: bool) -> io.BufferedReader:
    out = io.BytesIO()
    writer = pyarrow.RecordBatchStreamWriter(out, batches[0].schema)
    for batch in batches:
        writer.write_batch(batch)
    if ended:
        writer.close()
        out.write(b"\xff\xff\xff\xfc")
    return io.BufferedReader(io.BytesIO(out.getvalue()))


def test_an_attempt_that_was_given_up_does_not_replace_a_whole_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sink, "TaskContext", Context)
    first = record_batch(DIMENSION, (b"1", row(id=1)), (b"2", row(id=2)))
    second = record_batch(DIMENSION, (b"3", row(id=3)), first=2)
    writer = TablesWriter(Place("parquet", str(tmp_path)), SPECS)
    as_worker(stream(first, second, ended=True), writer)
    with pytest.raises(CutOffError):
        as_worker(stream(first, ended=False), writer)
    [file] = (tmp_path / DIMENSION).iterdir()
    assert parquet.read_table(file).column("id").to_pylist() == ["1", "2", "3"]
