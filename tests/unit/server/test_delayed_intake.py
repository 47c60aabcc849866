"""The start of a session of an intake of delayed messages."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from barnabas.clock import ManualClock
from barnabas.server.delayed_intake import LONGEST_CATCH_UP_MS, DelayedIntake


def test_a_new_leader_first_learns_what_was_acknowledged() -> None:
    log = SimpleNamespace(high_watermark=3, log_end_offset=5)
    hosted: Any = SimpleNamespace(log=log, state=SimpleNamespace(leader_epoch=1))
    nothing: Any = None
    clock = ManualClock()

    async def scenario() -> None:
        intake = DelayedIntake(hosted, nothing, nothing, nothing, clock, nothing)
        log.log_end_offset = 9  # appended by this leader: not waited for
        waiting = asyncio.create_task(intake._catch_up())
        for high_watermark in (3, 4):
            log.high_watermark = high_watermark
            intake.wake()
            await asyncio.sleep(0.01)
            assert not waiting.done()
        log.high_watermark = 5
        intake.wake()
        await waiting
        log.high_watermark = 0
        waiting = asyncio.create_task(intake._catch_up())
        await asyncio.sleep(0)
        clock.advance(LONGEST_CATCH_UP_MS)
        await waiting

    asyncio.run(scenario())
