"""Whatever is killed and when, and however often Spark tries again: what is read committed is there once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent import produce_all

from barnabas import Consumer

NewTopic = Callable[..., str]


def committed_values(bootstrap: str, topic: str) -> list[bytes]:
    """In the order of offsets, of partition 0."""
    with Consumer(bootstrap, isolation_level="read_committed", auto_offset_reset="earliest") as consumer:
        tp = (topic, 0)
        consumer.assign([tp])
        end = consumer.end_offsets([tp])[tp]
        values: list[bytes] = []
        while consumer.position(tp) < end:
            values += consumer.poll_arrow(0.1).column("value").to_pylist()
    return values


class Copy:
    """A streaming copy of a topic, which can be run again and again from its checkpoint."""

    def __init__(self, spark: Any, bootstrap: str, source: str, target: str, checkpoint: Path, **sink: str) -> None:
        read = spark.readStream.format("barnabas").option("kafka.bootstrap.servers", bootstrap)
        self.rows = read.option("subscribe", source).option("startingOffsets", "earliest").load().select("value")
        self.sink = {"kafka.bootstrap.servers": bootstrap, "topic": target, **sink}
        self.checkpoint = checkpoint

    def run(self, change: Callable[[Any], Any] = lambda rows: rows) -> None:
        writing = change(self.rows).writeStream.format("barnabas").options(**self.sink)
        query = writing.option("checkpointLocation", str(self.checkpoint)).trigger(availableNow=True).start()
        assert query.awaitTermination(120)

    def forget_last_commit(self) -> None:
        """As if the driver had died between the tasks' commits and its own note in the checkpoint."""
        commits = sorted((path for path in (self.checkpoint / "commits").iterdir() if path.name.isdigit()), key=number)
        commits[-1].unlink()
        (self.checkpoint / "commits" / f".{commits[-1].name}.crc").unlink(missing_ok=True)


def number(path: Path) -> int:
    return int(path.name)


@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
def test_a_batch_that_is_replayed(
    spark: Any, bootstrap: str, new_topic: NewTopic, tmp_path: Path, delivery: str
) -> None:
    source, target = new_topic(), new_topic()
    copy = Copy(spark, bootstrap, source, target, tmp_path, delivery=delivery)
    first, second = [b"a%d" % each for each in range(50)], [b"b%d" % each for each in range(50)]
    produce_all(bootstrap, source, list(first))
    copy.run()
    copy.forget_last_commit()
    produce_all(bootstrap, source, list(second))
    copy.run()
    found = committed_values(bootstrap, target)
    if delivery == "exactly-once":
        assert found == first + second
    else:
        assert found == first + first + second, "which is what the notes of exactly-once are for"


def test_a_replay_that_would_lose_or_double_rows_is_refused(
    spark: Any, bootstrap: str, new_topic: NewTopic, tmp_path: Path
) -> None:
    source, target = new_topic(), new_topic()
    copy = Copy(spark, bootstrap, source, target, tmp_path)
    produce_all(bootstrap, source, [b"a", b"b", b"c"])
    copy.run()
    copy.forget_last_commit()
    with pytest.raises(Exception, match="splits a replayed batch differently"):
        copy.run(lambda rows: rows.where("value != 'b'"))
    copy.run()
    assert committed_values(bootstrap, target) == [b"a", b"b", b"c"]


def test_a_task_that_fails_halfway_is_tried_again(
    spark: Any, bootstrap: str, new_topic: NewTopic, tmp_path: Path
) -> None:
    from pyspark.sql.functions import udf

    source, target = new_topic(), new_topic()
    # Long ones: Spark hands rows on to the sink when it has 64 KiB of them.
    values = [b"%d" % each * 100 for each in range(2000)]
    produce_all(bootstrap, source, list(values))
    sent = tmp_path / "sent"

    # Without type hints: from those PySpark would make another kind of function.
    @udf("binary")
    def failing_once(value):  # type: ignore[no-untyped-def]
        from pyspark import TaskContext

        if value == b"1999" * 100 and TaskContext.get().attemptNumber() == 0:
            sent.touch()
            raise RuntimeError("after most rows went to the sink")
        return value

    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "200")
    try:
        copy = Copy(spark, bootstrap, source, target, tmp_path / "checkpoint")
        copy.run(lambda rows: rows.select(failing_once("value").alias("value")))
    finally:
        spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")
    assert sent.exists()
    assert committed_values(bootstrap, target) == values


def test_a_task_that_dies_after_its_commit_is_tried_again(
    spark: Any, bootstrap: str, new_topic: NewTopic, tmp_path: Path
) -> None:
    """The worker process is gone before Spark hears that its task is done."""
    import barnabas.spark.sink as sink

    source, target = new_topic(), new_topic()
    values = [b"%d" % each for each in range(200)]
    produce_all(bootstrap, source, list(values))
    dying = tmp_path / "dying"
    dying.touch()

    class DyingOnce(sink.StreamWriter):
        def write(self, iterator: Any) -> Any:
            import os

            done = super().write(iterator)
            if dying.exists():
                dying.unlink()
                os._exit(9)
            return done

    from pyspark.sql.datasource import DataSource

    from barnabas.spark.options import read_sink_options

    class DyingSink(DataSource):
        @classmethod
        def name(cls) -> str:
            return "dying"

        def streamWriter(self, schema: Any, overwrite: bool) -> Any:
            return DyingOnce(read_sink_options(self.options))

    spark.dataSource.register(DyingSink)
    copy = Copy(spark, bootstrap, source, target, tmp_path / "checkpoint")
    writing = copy.rows.writeStream.format("dying").options(**copy.sink)
    query = writing.option("checkpointLocation", str(copy.checkpoint)).trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    assert not dying.exists()
    assert committed_values(bootstrap, target) == values


def test_a_query_goes_on_in_another_worker_and_fences_the_first(
    spark: Any, bootstrap: str, new_topic: NewTopic, tmp_path: Path
) -> None:
    """A zombie of the last attempt has a transaction open: it is aborted, and what it does afterwards is refused."""
    from barnabas import Producer
    from barnabas.errors import KafkaError

    source, target = new_topic(), new_topic()
    copy = Copy(spark, bootstrap, source, target, tmp_path, transactionalIdPrefix=target)
    produce_all(bootstrap, source, [b"a"])
    copy.run()
    query_id = (tmp_path / "metadata").read_text().split('"')[3]
    with Producer(bootstrap, transactional_id=f"{target}-{query_id}-0") as zombie:
        zombie.begin_transaction()
        zombie.send(target, b"never").result(30)
        produce_all(bootstrap, source, [b"b"])
        copy.run()
        with pytest.raises(KafkaError):
            zombie.commit_transaction()
    assert committed_values(bootstrap, target) == [b"a", b"b"]
