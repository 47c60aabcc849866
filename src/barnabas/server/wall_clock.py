"""Whether the wall clock can be believed where belief deletes something: retention by age, forgetting producers.

A clock that is set an hour or a year forward makes every record look old. So its progress is compared with that of the
monotonic clock, which nobody sets. After a jump forward nothing is deleted by age until the clock is back, or until the
new time has stood for a day: by then somebody has had time to set it right, and a correction of a clock that was
wrong before must not stop retention for good. A clock that is set back makes records look young, which deletes nothing.

A restart believes what it finds: there is nothing to compare with. Housekeeping calls it, on the event loop.
"""

import logging
from typing import Final

from barnabas.clock import Clock

logger = logging.getLogger(__name__)

TOLERANCE_MS: Final = 5 * 60_000
"""Between two checks. Slewing and leap seconds stay far below it."""
HOLD_MS: Final = 24 * 3_600_000


class WallClock:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._believed = self._ahead()
        """How far the wall clock was ahead of the monotonic one when it was last believed."""
        self._doubted: int | None = None
        self._doubted_since_ms = 0

    def _ahead(self) -> int:
        return self._clock.now_ms() - self._clock.monotonic_ms()

    def is_believed(self) -> bool:
        ahead = self._ahead()
        if ahead <= self._believed + TOLERANCE_MS:
            self._believe(ahead)
            return True
        monotonic_ms = self._clock.monotonic_ms()
        if self._doubted is None or abs(ahead - self._doubted) > TOLERANCE_MS:
            logger.warning(
                "the wall clock jumped forward by %d s; nothing is deleted by age until it is back, or for a day",
                (ahead - self._believed) // 1000,
            )
            self._doubted, self._doubted_since_ms = ahead, monotonic_ms
        elif monotonic_ms - self._doubted_since_ms >= HOLD_MS:
            self._believe(ahead)
            return True
        return False

    def _believe(self, ahead: int) -> None:
        self._believed = ahead
        if self._doubted is not None:
            self._doubted = None
            logger.warning("the wall clock is believed again")
