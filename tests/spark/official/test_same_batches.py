"""Streams: with the same limit each micro-batch takes the same offsets."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent import produce_all
from spark_worker import SparkWorker

NewTopic = Callable[..., str]


@pytest.mark.parametrize(
    ("options", "sizes"),
    [
        ({"startingOffsets": "earliest"}, [66]),
        ({"startingOffsets": "earliest", "maxOffsetsPerTrigger": "25"}, None),
        ({"startingOffsets": {"0": 10, "1": -2, "2": -1}, "maxOffsetsPerTrigger": "7"}, None),
    ],
    ids=["all", "limit", "from within"],
)
def test_micro_batches(
    workers: tuple[SparkWorker, SparkWorker],
    bootstrap: str,
    new_topic: NewTopic,
    tmp_path: Path,
    options: dict[str, Any],
    sizes: list[int] | None,
) -> None:
    topic = new_topic(partitions=3)
    for partition, count in enumerate((50, 15, 1)):
        produce_all(bootstrap, topic, [b"%d" % number for number in range(count)], partition)
    given = {name: each if isinstance(each, str) else json.dumps({topic: each}) for name, each in options.items()}
    given |= {"kafka.bootstrap.servers": bootstrap, "subscribe": topic}
    theirs, ours = (worker.ask("stream", options=given, checkpoint=str(tmp_path / worker.kind)) for worker in workers)
    assert ours == theirs
    taken = [sum(part[4] for part in batch) for batch in ours]
    if sizes is not None:
        assert taken == sizes
    else:
        assert len(taken) > 2 and sum(taken) == (66 if options["startingOffsets"] == "earliest" else 55)
    # A second start of each finds nothing more to do.
    for worker in workers:
        assert worker.ask("stream", options=given, checkpoint=str(tmp_path / worker.kind)) == []
