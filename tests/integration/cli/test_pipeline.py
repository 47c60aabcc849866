"""`barnabas pipeline generate` and `status`; what `run` says before Spark starts. The pipeline itself: tests/spark."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from barnabas import Admin, OffsetAndMetadata, Producer, TopicPartition
from barnabas.cli.command import UsageError
from barnabas.cli.commands.pipeline_status import averages
from barnabas.pipeline.checkpoint import claim_checkpoint
from barnabas.pipeline.progress import Heartbeat, ProgressFile, UnroutedChanges
from barnabas.testing import Broker

Command = Callable[..., Any]


def batch(number: int, started: float, **more: Any) -> dict[str, Any]:
    at = datetime.fromtimestamp(started, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    told = {"batch": number, "at": at, "rows": 100, "rows_out": 250, "seconds": 0.5, "rows_per_second": 200.0, "lag": 7}
    return told | more


@pytest.fixture
def query(broker: Broker, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """A group that stands for a query: ten records of a topic are done, two are not."""
    name = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)
    with Admin(broker.bootstrap) as admin:
        admin.create_topic(name, 2)
        with Producer(broker.bootstrap) as producer:
            for _ in range(12):
                producer.send(name, b"x", partition=0).result()
        done = {TopicPartition(name, 0): OffsetAndMetadata(10), TopicPartition(name, 1): OffsetAndMetadata(0)}
        admin.alter_group_offsets(name, done)
    return name


class TestGenerate:
    def test_a_count_of_records_and_the_topics(self, barnabas: Command) -> None:
        done = barnabas("pipeline generate --count 500 --dirty 0.1 --duplicates 0.1 --seed 3")
        assert (done.status, done.out, done.err) == (0, "500 records sent\n", "")
        names = {row[0] for row in barnabas("topic list").rows}
        assert {"ods_base_log", "ods_base_db", "dwd_page_log", "dim_user_info", "ods_dirty"} <= names

    @pytest.mark.parametrize("words", ["--dirty 2", "--duplicates -1", "--generation C"])
    def test_wrong_use(self, barnabas: Command, words: str) -> None:
        assert barnabas(f"pipeline generate {words}").status == 2


class TestStatus:
    def test_a_query_that_runs(self, barnabas: Command, query: str, tmp_path: Path) -> None:
        Heartbeat(str(tmp_path)).beat()
        for number in range(3):
            ProgressFile(str(tmp_path)).add(batch(number, time.time() - 10 + number))
        words = ("pipeline", "status", "--name", query, "--checkpoint", str(tmp_path), "--interval", "0.01")
        done = barnabas(*words)
        assert done.status == 0, done.err
        assert f"{query}  running (driver " in done.out
        assert "lag 2\n" in done.out and "120 records/s in, 300 records/s out, 0.50 s a batch" in done.out
        assert [f"{query}-0", "10", "12", "2"] in done.rows
        assert next(row for row in done.rows if row[:1] == ["2"])[2:] == ["100", "250", "0.5", "200", "7"]
        told = barnabas(*words, "--json").json
        assert told["query"]["state"] == "running"
        assert (told["now"]["lag"], told["now"]["taken_per_second"]) == (2, 0.0)
        assert told["partitions"][0] == {"partition": f"{query}-0", "offset": 10, "end": 12, "lag": 2}
        assert [each["batch"] for each in told["batches"]] == [0, 1, 2]

    def test_one_that_has_failed(self, barnabas: Command, query: str, tmp_path: Path) -> None:
        Heartbeat(str(tmp_path)).end("orders are gone")
        words = ("pipeline", "status", "--name", query, "--checkpoint", str(tmp_path), "--interval", "0.01")
        done = barnabas(*words)
        assert f"{query}  failed: orders are gone (driver " in done.out
        assert done.status == 1 and f"{query} has failed" in done.err

    def test_one_whose_driver_is_dead(
        self, barnabas: Command, query: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        Heartbeat(str(tmp_path)).beat()
        monkeypatch.setattr("barnabas.pipeline.progress.SILENT_AFTER_S", -1.0)
        words = ("pipeline", "status", "--name", query, "--checkpoint", str(tmp_path), "--interval", "0.01")
        done = barnabas(*words)
        assert done.status == 1 and f"{query}  dead: its driver was killed" in done.out
        assert done.err.startswith(f"barnabas pipeline status: the driver of {query} is dead")
        assert barnabas(*words, "--json").json["problem"].startswith(f"the driver of {query} is dead")

    def test_one_that_was_stopped(self, barnabas: Command, query: str, tmp_path: Path) -> None:
        Heartbeat(str(tmp_path)).end(None)
        words = ("pipeline", "status", "--name", query, "--checkpoint", str(tmp_path), "--interval", "0.01")
        assert (barnabas(*words).status, barnabas(*words).err) == (0, "")

    def test_a_checkpoint_that_is_missing(self, barnabas: Command, query: str, tmp_path: Path) -> None:
        gone = str(tmp_path / "gone")
        done = barnabas("pipeline", "status", "--name", query, "--checkpoint", gone, "--interval", "0.01")
        assert done.status == 1 and f"there is no checkpoint {gone}" in done.err

    def test_a_checkpoint_of_another_pipeline(self, barnabas: Command, query: str, tmp_path: Path) -> None:
        claim_checkpoint(str(tmp_path), "sales")
        Heartbeat(str(tmp_path)).beat()
        words = ("pipeline", "status", "--checkpoint", str(tmp_path), "--interval", "0.01")
        done = barnabas(*words, "--name", query)
        assert done.status == 1 and f"pipeline sales, not of {query}: give --name sales" in done.err
        assert barnabas(*words, "--name", "sales").status == 0, "it has no group before its first batch"

    def test_changes_without_a_route(self, barnabas: Command, query: str, tmp_path: Path) -> None:
        Heartbeat(str(tmp_path)).beat()
        UnroutedChanges(str(tmp_path)).add(3, {"shop.cart": 1200, "shop.log": 7})
        words = ("pipeline", "status", "--name", query, "--checkpoint", str(tmp_path), "--interval", "0.01")
        done = barnabas(*words)
        assert done.status == 0 and "changes of shop.cart 1,200, shop.log 7\n" in done.out
        assert barnabas(*words, "--json").json["unrouted"] == {"shop.cart": 1200, "shop.log": 7}

    def test_one_that_nobody_knows(self, barnabas: Command, tmp_path: Path) -> None:
        done = barnabas("pipeline", "status", "--name", "nobody", "--checkpoint", str(tmp_path), "--interval", "0.01")
        assert done.status == 1
        assert done.out.startswith("nobody  unknown: no driver has written to this checkpoint")
        assert "there is no pipeline nobody" in done.err

    def test_an_interval_of_nothing(self, barnabas: Command) -> None:
        done = barnabas("pipeline status --interval 0")
        assert (done.status, done.err) == (2, "barnabas pipeline status: --interval must be more than 0\n")

    def test_averages_are_over_the_time_that_passed(self) -> None:
        assert averages([]) is None
        told = averages([batch(0, 1000.0), batch(1, 1009.5)])
        assert told == {"count": 2, "in_per_second": 20.0, "out_per_second": 50.0, "seconds_per_batch": 0.5}
        unknown = averages([batch(0, 1000.0, rows_out=None)])
        assert unknown is not None and unknown["out_per_second"] is None


class TestRun:
    def test_without_java_one_line_says_what_to_do(
        self, barnabas: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
        done = barnabas("pipeline", "run", "--checkpoint", str(tmp_path / "checkpoint"))
        assert (done.status, done.err.count("\n")) == (2, 1)
        assert done.err.startswith("barnabas pipeline run: Spark needs Java 17 or later")

    def test_a_new_checkpoint_where_there_is_output_is_warned_of_once(
        self, barnabas: Command, broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def no_spark(*_: object) -> None:
            raise UsageError("no Spark in this test")

        monkeypatch.setattr("barnabas.pipeline.java.why_no_java", lambda: None)
        monkeypatch.setattr("barnabas.pipeline.driving.spark_session", no_spark)
        assert barnabas("pipeline generate --count 20").status == 0
        with Producer(broker.bootstrap) as producer:
            producer.send("dwd_page_log", b"{}").result()
        checkpoint = tmp_path / "checkpoint"
        words = ("pipeline", "run", "--checkpoint", str(checkpoint))
        told = barnabas(*words).err.splitlines()
        assert len(told) == 2, told
        assert told[0].startswith(f"barnabas pipeline run: warning: the checkpoint {checkpoint} is new, but the output")
        assert "(dwd_page_log): everything in ODS is written there again." in told[0]
        last = ["barnabas pipeline run: no Spark in this test"]
        assert barnabas(*words, "--starting-offsets", "latest").err.splitlines() == last
        (checkpoint / "offsets").mkdir()
        (checkpoint / "offsets" / "0").touch()
        assert barnabas(*words).err.splitlines() == last
