"""A task's records become rows, with the state of each partition beside it, whatever was tried before."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow
import pytest

from barnabas.pipeline import split
from barnabas.pipeline.checkpoint import max_tasks
from barnabas.pipeline.routing_log import RoutingLog
from barnabas.pipeline.split import SplitTask

DAY_MS = 86_400_000


@pytest.fixture
def checkpoint(tmp_path: Path) -> str:
    RoutingLog(str(tmp_path)).write(0, '[tables.user_info]\nkind = "dimension"')
    return str(tmp_path)


def records(*given: tuple[int, str, int]) -> pyarrow.RecordBatch:
    """Of (partition, device, day): a page that says that the device is new."""
    made = [{"common": {"mid": mid, "is_new": "1"}, "page": {}, "ts": day * DAY_MS} for _, mid, day in given]
    return pyarrow.record_batch(
        {
            "key": pyarrow.array([b"k"] * len(given), pyarrow.binary()),
            "value": pyarrow.array([json.dumps(each).encode() for each in made], pyarrow.binary()),
            "topic": pyarrow.array(["ods_base_log"] * len(given)),
            "partition": pyarrow.array([partition for partition, _, _ in given], pyarrow.int32()),
            "offset": pyarrow.array(range(len(given)), pyarrow.int64()),
        }
    )


def run(task: SplitTask, batch_id: int, *batches: pyarrow.RecordBatch) -> list[tuple[Any, Any]]:
    rows = [row for made in task(iter(batches), batch_id) for row in made.column("value").to_pylist()]
    return [(each["mid"], each["is_new"]) for each in map(json.loads, rows)]


def forget() -> None:
    """As another worker would begin."""
    split._stores.clear()


def test_batches_of_several_partitions(checkpoint: str) -> None:
    task = SplitTask(checkpoint, 0)
    mixed = records((0, "a", 5), (0, "b", 5), (3, "a", 5))
    assert run(task, 0, mixed, records((3, "c", 5), (4, "d", 5))) == [(mid, "1") for mid in "abacd"]
    forget()
    assert run(task, 1, records((0, "a", 6), (3, "c", 6), (4, "a", 6))) == [("a", "0"), ("c", "0"), ("a", "1")]
    assert {path.name for path in (Path(checkpoint) / "visits").iterdir()} == {f"ods_base_log-{n}" for n in (0, 3, 4)}


@pytest.mark.parametrize("another_worker", [False, True])
def test_a_replayed_batch_gives_the_same_rows(checkpoint: str, another_worker: bool) -> None:
    task = SplitTask(checkpoint, 0)
    run(task, 0, records((0, "a", 5)))
    wanted = records((0, "b", 5), (0, "a", 6), (0, "b", 7), (1, "b", 6))
    first = run(task, 1, wanted)
    assert first == [("b", "1"), ("a", "0"), ("b", "0"), ("b", "1")]
    if another_worker:
        forget()
    assert run(task, 1, wanted) == first
    assert run(task, 2, records((0, "b", 6))) == [("b", "0")]


def test_a_task_that_fails_leaves_no_state(checkpoint: str) -> None:
    task = SplitTask(checkpoint, 0)
    run(task, 0, records((0, "a", 5)))
    rows = task(iter([records((1, "b", 5), (0, "c", 5))]), 1)
    next(rows)
    rows.close()
    assert run(task, 1, records((1, "b", 6), (0, "c", 6))) == [("b", "1"), ("c", "1")]


def test_the_number_of_tasks_stays_with_the_checkpoint(tmp_path: Path) -> None:
    assert max_tasks(f"{tmp_path}/one", "local[2]", 2) == 2 == max_tasks(f"{tmp_path}/one", "local[8]", 8)
    assert max_tasks(f"{tmp_path}/two", "spark://host:7077", 16) is None is max_tasks(f"{tmp_path}/two", "local[4]", 4)
    (tmp_path / "old" / "offsets").mkdir(parents=True)
    assert max_tasks(f"{tmp_path}/old", "local[2]", 2) is None, "its batches had a task for each partition"
