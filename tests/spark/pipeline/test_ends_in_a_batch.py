"""Batches in which a task is given its records in many pieces, ended in the middle: no piece is taken for the whole."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from barnabas_process import BarnabasProcess
from warehouse_pipeline import PipelineProcess, process_tree
from warehouse_topics import check_warehouse

from barnabas import Consumer

PIECES = ("--conf", "spark.sql.execution.arrow.maxRecordsPerBatch=200")
ROWS = [("dwd_display_log", number) for number in range(3)]


def stop(pipeline: PipelineProcess) -> None:
    assert pipeline.stop() == 0


def kill_driver(pipeline: PipelineProcess) -> None:
    """The JVM alone: its Python workers see their connections end before they do."""
    assert pipeline.process is not None
    [jvm] = [pid for pid in process_tree(pipeline.process.pid) if command_of(pid) == "java"]
    os.kill(jvm, signal.SIGKILL)
    pipeline.wait(60)


def command_of(pid: int) -> str | None:
    with contextlib.suppress(OSError):  # it has just ended
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return None


@pytest.mark.soak
@pytest.mark.parametrize(("end", "records"), [(stop, 20_000), (kill_driver, 8000)])
def test_a_batch_that_is_ended_in_its_middle(
    broker: BarnabasProcess, tmp_path: Path, end: Callable[[PipelineProcess], None], records: int
) -> None:
    with (
        PipelineProcess(tmp_path, broker.bootstrap, *PIECES) as pipeline,
        Consumer(broker.bootstrap) as consumer,
    ):
        pipeline.command_of("generate", "--count", str(records))
        before = consumer.end_offsets(ROWS)
        pipeline.start()
        deadline = time.monotonic() + 180
        while consumer.end_offsets(ROWS) == before:
            assert pipeline.alive and time.monotonic() < deadline, pipeline.printed()[-2000:]
            time.sleep(0.02)
        end(pipeline)
        pipeline.run_once()
        assert check_warehouse(broker.bootstrap).ods == records
