"""Versions of the routing: each batch has the one that held when it was first planned."""

from pathlib import Path

import pytest

from barnabas.pipeline.routing import RoutingError, parse_routing
from barnabas.pipeline.routing_log import RoutingLog
from barnabas.pipeline.warehouse import DEFAULT_ROUTING, topics

ONE = '[tables.a]\nkind = "fact"'
TWO = '[tables.a]\nkind = "dimension"'


def test_a_batch_keeps_its_version(tmp_path: Path) -> None:
    driver, task = RoutingLog(str(tmp_path)), RoutingLog(f"file://{tmp_path}")
    driver.write(0, ONE)
    assert task.for_batch(0) == task.for_batch(99) == parse_routing(ONE)
    driver.write(7, TWO)
    assert task.for_batch(6) == parse_routing(ONE) and task.for_batch(7) == task.for_batch(8) == parse_routing(TWO)
    assert driver.versions() == [0, 7] and driver.text(7) == TWO


def test_mistakes_are_not_written(tmp_path: Path) -> None:
    log = RoutingLog(str(tmp_path))
    log.write(0, ONE)
    with pytest.raises(RoutingError):
        log.write(3, "[tables.a]\nkind = 1")
    assert log.versions() == [0]


def test_a_foreign_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="another query"):
        RoutingLog(str(tmp_path)).for_batch(0)


def test_topics_of_the_warehouse() -> None:
    plans = {plan.name: plan for plan in topics(parse_routing(DEFAULT_ROUTING), with_sources=True)}
    assert len(plans) == 2 + 5 + 4 + 12 + 1
    assert plans["ods_base_log"].partitions == 6 and plans["dwd_page_log"].partitions == 3
    large = {"max.message.bytes": "4194304"}
    assert plans["dim_user_info"].config == {"cleanup.policy": "compact"} | large
    assert plans["ods_dirty"].config == {"retention.ms": str(3 * 24 * 3600 * 1000)} | large
    assert len(topics(parse_routing(DEFAULT_ROUTING), with_sources=False)) == len(plans) - 2
