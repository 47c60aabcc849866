"""Splits Arrow batches by the partition of their records. Runs on executors.

A task may have several partitions, one after the other, and Spark forms its own batches, which may hold records of more
than one.
"""

import itertools
from collections.abc import Iterator

import pyarrow
from pyarrow import compute


def partition_runs(batch: pyarrow.RecordBatch) -> Iterator[pyarrow.RecordBatch]:
    """Slices with the records of one partition each, in their order."""
    count = batch.num_rows
    if not count:
        return
    topics, partitions = batch.column("topic"), batch.column("partition")
    differs = compute.or_(
        compute.not_equal(topics.slice(1), topics.slice(0, count - 1)),
        compute.not_equal(partitions.slice(1), partitions.slice(0, count - 1)),
    )
    bounds = [0, *(number + 1 for number in compute.indices_nonzero(differs).to_pylist()), count]
    for start, end in itertools.pairwise(bounds):
        yield batch.slice(start, end - start)


def origin_of(batch: pyarrow.RecordBatch) -> tuple[str, int]:
    """Topic and partition of its first record."""
    return batch.column("topic")[0].as_py(), batch.column("partition")[0].as_py()
