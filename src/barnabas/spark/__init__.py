"""Spark source and sink `format("barnabas")`, without a jar: Spark's Python Data Source API over the clients.

    from barnabas.spark import register
    register(spark)
    spark.read.format("barnabas").option("kafka.bootstrap.servers", "localhost:9092").option("subscribe", "orders")

Options and columns are those of Spark's own Kafka connector, so that a program moves by changing the format's name. It
works with any Kafka. Executors import this package: it must stay cheap, and it never imports the broker.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["register"]


def register(spark: "SparkSession") -> None:
    """Make `format("barnabas")` known to a session."""
    from barnabas.spark.data_source import BarnabasDataSource

    spark.dataSource.register(BarnabasDataSource)
