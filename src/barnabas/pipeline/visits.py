"""Whether a device is new: the state that repairs `is_new`, for the devices of one ODS partition.

A device whose first visit was on an earlier day is not new, whatever the app says. One that is first seen saying "not
new" must have come on an earlier day, so the day before is noted for it. Days are those of the warehouse's time zone.
"""

from typing import Any, Final

DAY_MS: Final = 86_400_000
NEW: Final = "1"
NOT_NEW: Final = "0"
_EARLIEST_MS: Final = -(1 << 52)


class Visits:
    """First day of visit by device. `changed` collects what a micro-batch adds, for the checkpoint."""

    def __init__(self, first_days: dict[str, int], utc_offset_ms: int) -> None:
        self._first_days = first_days
        self._utc_offset_ms = utc_offset_ms
        self.changed: dict[str, int] = {}

    def repair(self, mid: str, ts: int, is_new: Any) -> Any:
        if not _EARLIEST_MS < ts < -_EARLIEST_MS:
            return is_new
        day = (ts + self._utc_offset_ms) // DAY_MS
        first = self._first_days.get(mid)
        if first is None:
            self._note(mid, day if is_new == NEW else day - 1)
            return is_new
        if first < day:
            return NOT_NEW
        if day < first:
            # Late: this visit came before what was thought to be the first.
            self._note(mid, day if is_new == NEW else day - 1)
        return is_new

    def _note(self, mid: str, day: int) -> None:
        self._first_days[mid] = self.changed[mid] = day
