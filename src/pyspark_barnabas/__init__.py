"""What lets Spark find `format("barnabas")` by itself: it looks for a DefaultSource in every module named pyspark_*.

Spark imports this in a worker process, when a session first uses a format that is written in Python.
"""

from barnabas.spark.data_source import BarnabasDataSource as DefaultSource

__all__ = ["DefaultSource"]
