"""Rows that are cut off between two Arrow batches look like rows that have ended."""

from __future__ import annotations

import io
import os
import socket
import struct
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import pyarrow as pa
import pytest

from barnabas.spark.task_input import CutOffError, whole

BATCH = pa.record_batch([pa.array(["a", "b", "c"])], names=["value"])
END_OF_STREAM = struct.pack("!i", -4)


def main(infile: Any, outfile: Any) -> list[int]:
    """In the place of Spark's worker: reads as its serializer does, and calls a sink."""
    return [batch.num_rows for batch in whole(iter(pa.ipc.open_stream(infile)))]


as_worker: Callable[[Any, Any], list[int]] = FunctionType(
    main.__code__, {**globals(), "__name__": "pyspark.worker"}, "main"
)


@pytest.fixture
def jvm() -> Iterator[Callable[[bytes], Any]]:
    """Sends what it is given to a worker, whose file it returns, and closes the connection if that is wanted."""
    opened: list[Any] = []

    def send(data: bytes, *, close: bool = True) -> Any:
        here, there = socket.socketpair()
        here.sendall(data)
        if close:
            here.shutdown(socket.SHUT_WR)
        opened.extend((here, there, os.fdopen(os.dup(there.fileno()), "rb", 65536)))
        return opened[-1]

    yield send
    for each in opened:
        each.close()


def stream(*, ended: bool) -> bytes:
    """Two batches as the JVM writes them."""
    out = io.BytesIO()
    writer = pa.RecordBatchStreamWriter(out, BATCH.schema)
    writer.write_batch(BATCH)
    writer.write_batch(BATCH)
    if ended:
        writer.close()
        out.write(END_OF_STREAM)
    return out.getvalue()


@pytest.mark.parametrize("close", [False, True], ids=["worker is used again", "worker is not used again"])
def test_rows_that_are_complete(jvm: Any, close: bool) -> None:
    infile = jvm(stream(ended=True), close=close)
    assert as_worker(infile, None) == [3, 3]
    assert infile.read(4) == END_OF_STREAM, "it is the worker's to read"


def test_rows_that_are_cut_off_are_no_rows(jvm: Any) -> None:
    with pytest.raises(CutOffError, match="gave up this task"):
        as_worker(jvm(stream(ended=False)), None)


def test_rows_that_end_without_their_mark(jvm: Any) -> None:
    with pytest.raises(CutOffError):
        as_worker(jvm(stream(ended=True)[: -len(END_OF_STREAM)]), None)


def test_outside_of_a_worker_rows_are_what_they_are() -> None:
    assert list(whole(iter([BATCH]))) == [BATCH]
