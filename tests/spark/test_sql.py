"""The format in SQL, and in a session that nobody has registered it with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

NewTopic = Callable[..., str]


@pytest.fixture
def topic(spark: Any, bootstrap: str, new_topic: NewTopic) -> str:
    topic = new_topic()
    rows = spark.range(3).selectExpr("string(id) AS value").coalesce(1)
    rows.write.format("barnabas").option("kafka.bootstrap.servers", bootstrap).option("topic", topic).save()
    return topic


def test_spark_finds_the_format_by_itself(spark: Any, bootstrap: str, topic: str) -> None:
    session = spark.newSession()
    records = session.read.format("barnabas").option("kafka.bootstrap.servers", bootstrap).option("subscribe", topic)
    assert records.option("groupIdPrefix", "sql-test").load().count() == 3


@pytest.mark.parametrize("kind", ["TABLE", "TEMPORARY VIEW"])
def test_a_topic_as_a_table(spark: Any, bootstrap: str, topic: str, kind: str) -> None:
    name = f"orders_{kind[:4].lower()}"
    options = f"'kafka.bootstrap.servers' '{bootstrap}', subscribe '{topic}', includeHeaders true"
    spark.sql(f"CREATE {kind} {name} USING barnabas OPTIONS ({options})")
    try:
        rows = spark.sql(f"SELECT offset, string(value) AS value, headers FROM {name} WHERE offset > 0 ORDER BY offset")
        assert [tuple(row) for row in rows.collect()] == [(1, "1", None), (2, "2", None)]
        if kind == "TABLE":
            ending = f'endingOffsets = \'{{"{topic}": {{"0": 1}}}}\''
            assert spark.sql(f"SELECT * FROM {name} WITH ({ending})").count() == 1
            assert spark.readStream.option("startingOffsets", "earliest").table(name).isStreaming
    finally:
        spark.sql(f"DROP {kind.split()[-1]} {name}")
