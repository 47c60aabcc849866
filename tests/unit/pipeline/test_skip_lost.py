"""`--skip-lost` reaches both queries of a pipeline, with a Spark that only listens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from barnabas.pipeline.job import JobOptions, start
from barnabas.pipeline.tables.place import Place
from barnabas.pipeline.tables.query import TablesQuery


class Listening:
    """Answers every call with itself, and notes the options."""

    master = "local[2]"
    defaultParallelism = 2

    def __init__(self) -> None:
        self.given: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        return self

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        if len(arguments) == 2:
            self.given[arguments[0]] = arguments[1]
        self.given |= named
        return self


@pytest.mark.parametrize("skip_lost", [False, True])
def test_the_pipeline(tmp_path: Path, skip_lost: bool) -> None:
    spark: Any = Listening()
    start(spark, JobOptions({"bootstrap.servers": "b:1"}, str(tmp_path), skip_lost=skip_lost))
    assert spark.given["failOnDataLoss"] == ("false" if skip_lost else "true")
    assert spark.given["kafka.bootstrap.servers"] == "b:1"


@pytest.mark.parametrize("skip_lost", [False, True])
def test_the_tables(tmp_path: Path, skip_lost: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place("parquet", str(tmp_path / "tables"))
    tables = TablesQuery({"bootstrap.servers": "b:1"}, str(tmp_path), "p", place, skip_lost=skip_lost)
    monkeypatch.setattr(tables, "_with_topic_ids", dict)
    spark: Any = Listening()
    tables.start(spark, [])
    assert spark.given["failOnDataLoss"] == ("false" if skip_lost else "true")
