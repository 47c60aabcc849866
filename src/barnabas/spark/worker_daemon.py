"""Spark's Python workers with the clients already imported; set by `spark.python.daemon.module`.

Spark forks a worker for every task that finds no idle one, and two per micro-batch on the driver. Each of them would
import the clients again, which takes longer than most tasks. Here the process that is forked has imported them. Nothing
may be imported that starts a thread (pyarrow, numpy): the fork would lose it.
"""

import gc
import importlib
from typing import Final

from pyspark.daemon import manager

PRELOADED: Final = (
    "pyspark.worker",
    "pyspark.sql.datasource",
    "pyspark.sql.streaming.datasource",
    "pyspark.sql.worker.utils",
    "barnabas.client.admin.admin",
    "barnabas.client.consumer.consumer",
    "barnabas.client.producer.producer",
    "barnabas.spark.data_source",
    "barnabas.spark.sink",
    "barnabas.spark.source",
    "barnabas.spark.tasks",
    "barnabas.spark.writing",
)


def preload() -> None:
    for name in PRELOADED:
        importlib.import_module(name)
    gc.freeze()  # pages that the collector never writes to stay shared with the forks


if __name__ == "__main__":
    preload()
    manager()
