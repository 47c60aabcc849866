"""What is noted beside a checkpoint, and what is made of it."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from barnabas import Producer
from barnabas.pipeline.lag import LagMeter
from barnabas.pipeline.progress import (
    KEPT_BATCHES,
    SILENT_AFTER_S,
    Heartbeat,
    ProgressFile,
    UnroutedChanges,
    WrittenRows,
    end_position,
    last_batches,
    query_state,
    summary,
)
from barnabas.testing import Broker
from barnabas.types import TopicPartition


def progress(**changes: Any) -> dict[str, Any]:
    """The part of Spark's report that counts."""
    source = {"endOffset": '{"orders": {"0": 10, "1": 5, "topicId": "x"}}'}
    told = {
        "batchId": 17,
        "timestamp": "2024-05-05T10:00:00.000Z",
        "numInputRows": 300,
        "durationMs": {"triggerExecution": 1500},
        "sources": [source],
    }
    return told | changes


def test_the_figures_of_a_batch() -> None:
    assert summary(progress(), rows_out=700, lag=5) == {
        "batch": 17,
        "at": "2024-05-05T10:00:00.000Z",
        "rows": 300,
        "rows_out": 700,
        "seconds": 1.5,
        "rows_per_second": 200.0,
        "lag": 5,
    }
    assert summary(progress(durationMs={}))["rows_per_second"] == 0.0


def test_where_a_batch_ends() -> None:
    assert end_position(progress()) == {TopicPartition("orders", 0): 10, TopicPartition("orders", 1): 5}
    for end in ("{}", "not JSON", '{"orders": 7}', {}):
        assert end_position(progress(sources=[{"endOffset": end}])) == {}


def test_the_lag_is_asked_of_the_broker() -> None:
    with Broker() as broker:
        with Producer(broker.bootstrap) as producer:
            for _ in range(12):
                producer.send("orders", b"x", partition=0).result()
        meter = LagMeter({"bootstrap.servers": broker.bootstrap, "linger.ms": "5"})
        assert meter.behind({TopicPartition("orders", 0): 10}) == 2
        assert meter.behind({TopicPartition("orders", 0): 15}) == 0
    assert meter.behind({TopicPartition("orders", 0): 10}) is None
    meter.close()


def test_the_last_batches_are_kept_in_order(tmp_path: Path) -> None:
    for number in range(KEPT_BATCHES + 5):
        ProgressFile(str(tmp_path)).add({"batch": number})
    ProgressFile(str(tmp_path)).add({"batch": KEPT_BATCHES + 4, "again": True})
    found = last_batches(str(tmp_path))
    assert [each["batch"] for each in found] == list(range(5, KEPT_BATCHES + 5))
    assert found[-1]["again"]


def test_the_rows_that_batches_wrote(tmp_path: Path) -> None:
    for number in range(KEPT_BATCHES + 5):
        WrittenRows(str(tmp_path)).add(number, 10 * number)
    assert WrittenRows(str(tmp_path)).read() == {number: 10 * number for number in range(5, KEPT_BATCHES + 5)}


def test_nothing_is_there_or_nonsense(tmp_path: Path) -> None:
    assert (last_batches(str(tmp_path)), query_state(str(tmp_path)).state) == ([], "unknown")
    assert WrittenRows(str(tmp_path)).read() == {}
    for name in ("progress.json", "heartbeat.json", "written.json"):
        (tmp_path / name).write_text("{nonsense")
    assert (last_batches(str(tmp_path)), query_state(str(tmp_path)).state) == ([], "unknown")


def test_a_driver_that_lives_falls_silent_stops_or_fails(tmp_path: Path) -> None:
    heartbeat = Heartbeat(str(tmp_path))
    heartbeat.beat()
    now = time.time()
    found = query_state(str(tmp_path), now)
    assert (found.state, found.failure) == ("running", None)
    assert found.seconds_ago is not None and found.seconds_ago < SILENT_AFTER_S
    assert query_state(str(tmp_path), now + SILENT_AFTER_S + 1).state == "silent"
    heartbeat.end(None)
    assert query_state(str(tmp_path), now + 1000).state == "stopped"
    heartbeat.end("ods_base_log is gone\n  a long\n  stack")
    assert query_state(str(tmp_path))[::4] == ("failed", "ods_base_log is gone")


def test_beats_are_not_written_more_often_than_anybody_looks(tmp_path: Path) -> None:
    heartbeat = Heartbeat(str(tmp_path))
    heartbeat.beat()
    (tmp_path / "heartbeat.json").unlink()
    heartbeat.beat()
    assert not (tmp_path / "heartbeat.json").exists()


def test_a_checkpoint_that_cannot_be_written_ends_no_query(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("")
    Heartbeat(str(tmp_path / "file")).beat()
    assert "cannot write" in caplog.text


def test_files_are_for_people_too(tmp_path: Path) -> None:
    ProgressFile(str(tmp_path)).add(summary(progress()))
    assert json.loads((tmp_path / "progress.json").read_text())[0]["batch"] == 17


def test_changes_without_a_route_are_counted_once_per_batch(tmp_path: Path) -> None:
    noted = UnroutedChanges(str(tmp_path))
    assert noted.read() == {}
    noted.add(0, {"a": 2})
    noted.add(3, {"a": 1, "b": 5})
    noted.add(3, {"a": 1, "b": 5})  # a replay
    noted.add(4, {})
    assert noted.read() == {"a": 3, "b": 5}
    noted.add(5, {f"t{number:04}": 1 for number in range(500)})
    found = noted.read()
    assert len(found) == 101 and found["other tables"] == 402
