"""Records as large as an ODS topic takes them: what is made of them fits into the topics that the pipeline makes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow
import pytest

from barnabas import Admin
from barnabas.pipeline import job
from barnabas.pipeline.routing import parse_routing
from barnabas.pipeline.routing_log import RoutingLog
from barnabas.pipeline.split import CHANGE_TOPIC, LOG_TOPIC, SplitTask
from barnabas.pipeline.warehouse import DEFAULT_ROUTING, topics
from barnabas.spark.options import read_sink_options
from barnabas.spark.writing import write_task
from barnabas.testing import Broker

LARGEST = 1_048_400
"""A record of this size is taken by a topic without settings of its own."""


def padded(text: str) -> bytes:
    """@ stands for what makes it that large."""
    return text.replace("@", "x" * (LARGEST - len(text) + 1)).encode()


def page(mid: str, item: str) -> str:
    return json.dumps({"common": {"mid": mid}, "page": {"item": item}, "displays": [{}], "err": {}, "ts": 1})


def change(**data: Any) -> str:
    return json.dumps({"table": "user_info", "type": "insert", "ts": 1, "data": {"id": 1} | data})


@pytest.fixture(scope="module")
def warehouse() -> Iterator[str]:
    with Broker() as broker, Admin(broker.bootstrap) as admin:
        for plan in topics(parse_routing(DEFAULT_ROUTING), with_sources=True):
            admin.create_topic(plan.name, plan.partitions, config=plan.config)
        yield broker.bootstrap


@pytest.mark.parametrize(
    ("topic", "value", "rows"),
    [
        pytest.param(LOG_TOPIC, "@", 1, id="dirty"),
        pytest.param(LOG_TOPIC, page("m", "@"), 3, id="event"),
        pytest.param(LOG_TOPIC, page("@", "i"), 3, id="event with a large key"),
        pytest.param(CHANGE_TOPIC, change(name="@"), 1, id="change"),
        pytest.param(CHANGE_TOPIC, change(id="@"), 1, id="change with a large key"),
    ],
)
def test_what_is_made_of_a_large_record_fits(warehouse: str, tmp_path: Path, topic: str, value: str, rows: int) -> None:
    RoutingLog(str(tmp_path)).write(0, DEFAULT_ROUTING)
    record = pyarrow.record_batch(
        {
            "key": pyarrow.array([b"k"], pyarrow.binary()),
            "value": pyarrow.array([padded(value)], pyarrow.binary()),
            "topic": [topic],
            "partition": pyarrow.array([0], pyarrow.int32()),
            "offset": pyarrow.array([0], pyarrow.int64()),
        }
    )
    # Without the compression: x after x is the smallest of records.
    given = job.sink_defaults() | {"kafka.compression.type": "none", "kafka.bootstrap.servers": warehouse}
    made = SplitTask(str(tmp_path), 0)(iter([record]), 0)
    assert write_task(made, read_sink_options(given), str(tmp_path), 0, 0).rows == rows
