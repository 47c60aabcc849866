"""Whether a task was given all of its rows. Runs on executors, in the worker process that writes.

Spark hands rows to Python as a stream of Arrow batches. When a task fails upstream, is cancelled, or its JVM is killed,
that stream is cut off, nearly always between two batches, and to Arrow's reader a stream that is cut off there has
ended like any other. A sink that believed it would commit the first part of a batch as the whole. What tells the two
apart comes after the stream: Spark's own mark of the end, or nothing.
"""

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import pyarrow

_WORKER: Final = ("pyspark.worker", "__main__")
"""The module of Spark's worker; the second if it was not forked by Spark's daemon."""


class CutOffError(RuntimeError):
    """Spark gave the task up; whatever became of it, its rows are not complete."""


def whole(rows: "Iterator[pyarrow.RecordBatch]") -> "Iterator[pyarrow.RecordBatch]":
    """The rows; raises CutOffError where they end if that is not their end."""
    yield from rows
    connection = _from_spark()
    # Waits, if need be, for the mark: the JVM sends it with the end of the rows, or closes the connection.
    if connection is not None and not connection.peek(1):
        raise CutOffError("Spark gave this task up before all of its rows had come: nothing of it is committed")


def _from_spark() -> Any:
    """The buffered file through which Spark's worker reads from the JVM; None outside of a worker.

    Spark does not hand it on, so it is looked up where the worker's main function has it, further up the stack.
    """
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
        if frame.f_code.co_name == "main" and frame.f_globals.get("__name__") in _WORKER:
            found = frame.f_locals.get("infile")
            if hasattr(found, "peek"):
                return found
    return None
