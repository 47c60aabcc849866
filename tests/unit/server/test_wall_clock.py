"""A wall clock that jumps deletes nothing by age."""

from pathlib import Path

import pytest
from broker_on_loop import append, make_topic, run_broker

from barnabas.clock import ManualClock
from barnabas.server.broker import Broker
from barnabas.server.wall_clock import WallClock

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
YEAR_MS = 365 * 24 * HOUR_MS


@pytest.mark.parametrize("jump_ms", [HOUR_MS, YEAR_MS])
def test_a_jump_forward_is_doubted_until_the_clock_is_back(jump_ms: int) -> None:
    clock = ManualClock()
    wall_clock = WallClock(clock)
    clock.advance(5 * MINUTE_MS)
    assert wall_clock.is_believed()
    clock.jump_wall_clock(jump_ms)
    for _ in range(3):
        assert not wall_clock.is_believed()
        clock.advance(5 * MINUTE_MS)
    clock.jump_wall_clock(-jump_ms)
    assert wall_clock.is_believed()


def test_a_jump_forward_is_believed_once_it_has_stood_for_a_day() -> None:
    clock = ManualClock()
    wall_clock = WallClock(clock)
    clock.jump_wall_clock(YEAR_MS)
    assert not wall_clock.is_believed()
    clock.advance(23 * HOUR_MS)
    assert not wall_clock.is_believed()
    clock.jump_wall_clock(HOUR_MS)  # it does not stand still: the day begins anew
    assert not wall_clock.is_believed()
    clock.advance(23 * HOUR_MS)
    assert not wall_clock.is_believed()
    clock.advance(HOUR_MS)
    assert wall_clock.is_believed()


def test_a_jump_back_and_slow_drift_are_believed() -> None:
    clock = ManualClock()
    wall_clock = WallClock(clock)
    clock.jump_wall_clock(-YEAR_MS)
    assert wall_clock.is_believed()
    for _ in range(100):
        clock.advance(5 * MINUTE_MS)
        clock.jump_wall_clock(1000)
        assert wall_clock.is_believed()
    clock.advance(YEAR_MS)  # a long time between two looks is no jump
    assert wall_clock.is_believed()


def test_neither_records_nor_producers_go_after_a_jump(tmp_path: Path) -> None:
    async def scenario(broker: Broker, clock: ManualClock) -> None:
        hosted = await make_topic(broker, "t")
        limited = await make_topic(broker, "limited", retention_bytes="0")
        for each in (hosted, limited):
            append(broker, each, b"", producer_id=1, producer_epoch=0, base_sequence=0)
        clock.jump_wall_clock(YEAR_MS)
        await broker.housekeeping.delete_old_segments()
        await broker.housekeeping.expire_producers()
        assert hosted.log.log_start_offset == 0 and len(hosted.log.active_producers) == 1
        assert limited.log.log_start_offset == 1, "retention by size goes on"
        clock.advance(24 * HOUR_MS)
        await broker.housekeeping.delete_old_segments()
        await broker.housekeeping.expire_producers()
        assert hosted.log.log_start_offset == 1 and not hosted.log.active_producers

    run_broker(tmp_path, scenario)
