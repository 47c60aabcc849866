"""Spark's Python workers with the clients already in memory; `spark.python.daemon.module` names this module.

Spark forks a worker for every task that finds no idle one, and on the driver two for each micro-batch. Each of them
would import the clients again, which takes longer than most of what they do. Here the process that is forked has
imported them. Nothing may be imported that starts a thread (pyarrow, numpy): the fork would lose it.
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
    gc.freeze()  # what is never collected is never written to, and stays shared with the forks


if __name__ == "__main__":
    preload()
    manager()
