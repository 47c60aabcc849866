"""Checks that a task received all of its rows. Runs on executors, in the worker process that writes.

Spark passes rows to Python as a stream of Arrow batches. When a task fails upstream, is cancelled, or its JVM is
killed, that stream is cut off, usually between two batches, which looks like a normal end to Arrow's reader. A sink
that relied on it would commit part of a batch as the whole. Only a complete stream is followed by Spark's own end mark.
"""

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import pyarrow

_WORKER: Final = ("pyspark.worker", "__main__")
"""The module of Spark's worker; the second if it was not forked by Spark's daemon."""


class CutOffError(RuntimeError):
    """Spark gave up the task; its rows are not complete."""


def whole(rows: "Iterator[pyarrow.RecordBatch]") -> "Iterator[pyarrow.RecordBatch]":
    """The rows; raises CutOffError if they end too early."""
    yield from rows
    connection = _from_spark()
    # May block until the mark arrives: the JVM sends it after the rows, or closes the connection.
    if connection is not None and not connection.peek(1):
        raise CutOffError("Spark gave up this task before all of its rows arrived: nothing of it is committed")


def _from_spark() -> Any:
    """The buffered file through which Spark's worker reads from the JVM; None outside of a worker.

    Spark does not pass it on, so it is taken from the worker's main function, further up the stack.
    """
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
        if frame.f_code.co_name == "main" and frame.f_globals.get("__name__") in _WORKER:
            found = frame.f_locals.get("infile")
            if hasattr(found, "peek"):
                return found
    return None
