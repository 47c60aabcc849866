"""A Spark driver that obeys: one JSON command per line on stdin, one JSON response per line on stdout.

    python spark_program.py kafka      in the environment of the official connector (pyspark 4.0.0)
    python spark_program.py barnabas   in our own

Both run this one file, so that they are asked the same in the same words; only `format(...)` differs. It may import
nothing but the standard library and PySpark. `spark_worker.SparkWorker` starts it and talks to it.
"""

import base64
import json
import os
import sys
import time
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.sql.streaming.pollingDelay": "5ms",
    "spark.sql.session.timeZone": "UTC",
    "spark.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}
HEADERS = "transform(headers, each -> struct(each.key, base64(each.value)))"
COLUMNS = ("base64(key)", "base64(value)", "topic", "partition", "offset", "unix_micros(timestamp)", "timestampType")


class Program:
    def __init__(self, kind: str) -> None:
        builder = SparkSession.builder.master("local[2]").appName(f"compared: {kind}")
        for name, value in (SETTINGS | json.loads(os.environ.get("SPARK_PROGRAM_SETTINGS", "{}"))).items():
            builder = builder.config(name, value)
        self.kind = kind
        self.spark = builder.getOrCreate()
        if kind == "barnabas":
            from barnabas.spark import register

            register(self.spark)

    def load(self, options: dict[str, str]) -> DataFrame:
        return self.spark.read.format(self.kind).options(**options).load()

    def read(self, options: dict[str, str]) -> dict[str, Any]:
        """Schema, rows in the order of the log, and which offsets each task read."""
        rows = self.load(options)
        columns = [*COLUMNS, HEADERS] if "headers" in rows.columns else list(COLUMNS)
        # One query without a shuffle: the rest is quicker done here.
        found = sorted(map(list, rows.selectExpr(*columns, "spark_partition_id()").collect()), key=place)
        tasks = ranges([(*place(row), row[-1]) for row in found])
        return {"schema": json.loads(rows.schema.json()), "rows": [row[:-1] for row in found], "tasks": tasks}

    def stream(self, options: dict[str, str], checkpoint: str) -> list[Any]:
        """What each micro-batch of a query with Trigger.AvailableNow read."""
        batches: dict[int, Any] = {}

        def look(rows: DataFrame, number: int) -> None:
            batches[number] = ranges(sorted((*row, 0) for row in rows.select("topic", "partition", "offset").collect()))

        rows = self.spark.readStream.format(self.kind).options(**options).load()
        started = rows.writeStream.option("checkpointLocation", checkpoint).foreachBatch(look)
        query = started.trigger(availableNow=True).start()
        query.awaitTermination()
        return [batches[number] for number in sorted(batches)]

    def write(self, schema: str, rows: list[list[Any]], options: dict[str, str]) -> None:
        self.spark.createDataFrame(rows, schema).write.format(self.kind).options(**options).mode("append").save()

    def time_read(self, options: dict[str, str]) -> dict[str, float]:
        started = time.perf_counter()
        (found,) = self.load(options).agg(f.count("*"), f.sum(f.length("value"))).collect()
        return {"seconds": time.perf_counter() - started, "rows": found[0], "bytes": found[1]}

    def time_write(self, count: int, size: int, options: dict[str, str]) -> dict[str, float]:
        # Values that cost next to nothing: padding all of it would take longer than writing it.
        value = f.concat(f.lpad(f.col("id").cast("string"), 10, "0"), f.lit("-" * (size - 10)))
        rows = self.spark.range(0, count, 1, 2).select(value.alias("value"))
        started = time.perf_counter()
        rows.write.format(self.kind).options(**options).mode("append").save()
        return {"seconds": time.perf_counter() - started}


def place(row: list[Any]) -> tuple[Any, ...]:
    return tuple(row[2:5])


def ranges(places: list[tuple[Any, ...]]) -> list[Any]:
    """(topic, partition, first offset, last offset, rows) of each task; `places` also have the task, and are sorted."""
    found: dict[Any, list[Any]] = {}
    for topic, partition, offset, task in places:
        part = found.setdefault((topic, partition, task), [topic, partition, offset, offset, 0])
        part[3], part[4] = offset, part[4] + 1
    return list(found.values())


def binary(tree: dict[str, Any]) -> Any:
    """JSON has no bytes: they come as {"base64": text}."""
    return bytearray(base64.b64decode(tree["base64"])) if set(tree) == {"base64"} else tree


def main() -> None:
    # Whatever Spark or its JVM prints goes to stderr; only responses go to what was stdout.
    responses = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    program = Program(sys.argv[1])
    print(json.dumps({"done": "ready"}), file=responses, flush=True)
    for line in sys.stdin:
        command = json.loads(line, object_hook=binary)
        try:
            response = {"done": getattr(program, command.pop("do"))(**command)}
        except Exception as error:  # whatever Spark raises is a response
            response = {"error": str(error), "kind": type(error).__name__}
        print(json.dumps(response), file=responses, flush=True)
    program.spark.stop()


if __name__ == "__main__":
    main()
