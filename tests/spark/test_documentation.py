"""The examples of docs/spark.md and docs/delayed.md, run as they stand on the session of these tests.

How: tests/support/documentation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from documentation import NOT_RUN, ROOT, RUN, blocks_of, command_folder, run_blocks
from secured_page import page_blocks, run_page

from barnabas.pipeline.routing import parse_routing
from barnabas.spark.options import _REFUSED, _SINK, _SOURCE
from barnabas.testing import Broker

PAGE = "docs/spark.md"
DELAYED_PAGE = "docs/delayed.md"
CHECKPOINT = "/tmp/loudspeaker"


@pytest.fixture
def own_broker() -> Iterator[Broker]:
    """Its topics are named in the page."""
    with Broker({"group.initial.rebalance.delay.ms": 0}) as broker:
        yield broker


def test_examples_run(spark: Any, own_broker: Broker, tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    checkpoint = str(tmp_path / "checkpoint")
    blocks = [block._replace(text=block.text.replace(CHECKPOINT, checkpoint)) for block in blocks_of(PAGE)]
    assert sum(block.language == "python" for block in blocks) >= 3
    assert {block.language for block in blocks} <= {*RUN, *NOT_RUN}
    run_blocks(blocks, own_broker, command_folder(folder), tmp_path, {"__name__": "example"})


@pytest.mark.soak
def test_the_page_about_security_runs(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    monkeypatch.chdir(tmp_path)
    # Python workers of Spark run elsewhere.
    certificates = str(tmp_path / "certificates")
    blocks = [
        block._replace(text=block.text.replace('"certificates', f'"{certificates}'))
        if "spark.read" in block.text
        else block
        for block in page_blocks(with_spark=True)
    ]
    run_page(blocks, command_folder(tmp_path / "bin"), tmp_path, {"spark": spark})


def test_the_page_about_delayed_messages_runs(spark: Any, own_broker: Broker, tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    blocks = blocks_of(DELAYED_PAGE)
    assert {block.language for block in blocks} <= {*RUN, *NOT_RUN}
    run_blocks(blocks, own_broker, command_folder(folder), tmp_path, {"__name__": "example", "spark": spark})


def test_every_option_is_named() -> None:
    page = (ROOT / PAGE).read_text(encoding="utf-8")
    named = set(re.findall(r"`([\w.]+)`", page))
    rare = {"kafkaConsumer.pollTimeoutMs", "fetchOffset.numRetries", "fetchOffset.retryIntervalMs"}
    assert (_SOURCE.keys() | _SINK.keys()) - _REFUSED.keys() - rare <= named


def test_the_routing_of_the_page_is_one() -> None:
    (text,) = (block.text for block in blocks_of(PAGE) if "[tables." in block.text)
    assert parse_routing(text).routes["order_info"].columns == ("id", "user_id")
