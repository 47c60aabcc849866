"""Spark source and sink `format("barnabas")`, without a jar: Spark's Python Data Source API over the clients.

    from barnabas.spark import register
    register(spark)
    spark.read.format("barnabas").option("kafka.bootstrap.servers", "localhost:9092").option("subscribe", "orders")

Options and columns are those of Spark's own Kafka connector, so that a program only needs to change the format's name.
It works with any Kafka. Executors import this package: it must stay cheap, and never imports the broker.
"""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["SINK_GROUP_PREFIX", "register"]

SINK_GROUP_PREFIX: Final = "__barnabas_sink."
"""Prefix of the groups in which an exactly-once sink records what is written; see `writing`."""


def register(spark: "SparkSession") -> None:
    """Register `format("barnabas")` with a session, and let `save()` without a mode append.

    Spark finds the format automatically if this package is installed; then this is only needed for `save()`.
    """
    from barnabas.spark.data_source import BarnabasDataSource
    from barnabas.spark.save_mode import append_by_default

    spark.dataSource.register(BarnabasDataSource)
    append_by_default()
