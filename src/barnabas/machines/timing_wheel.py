"""Hierarchical timing wheel: for many deadlines, most of which are cancelled or moved before they pass.

Purgatories, idle timeouts and sessions keep their deadlines here; one loop timer (net/timers.py) drives the wheel and
is armed only while a timer is waiting. Adding and cancelling are O(1) whatever the number of timers; a timer is touched
at most once per level on its way down. The wheel never reads a clock: `advance` receives the time, and time that goes
back is ignored.

Six levels of 64 slots; a slot of level k spans 64**k ms, and one integer per level has a bit for each slot in use. A
timer lives on the level of the highest 6-bit digit in which its deadline differs from the time reached so far:

    level 0:  the next 64 ms, exact       level 3:  the next 4.6 hours
    level 1:  the next 4 s                level 4:  the next 12 days
    level 2:  the next 4.4 minutes        level 5:  the next 2.1 years (later ones wait there and are put back)
"""

from collections.abc import Iterator
from typing import Generic, TypeVar

Item = TypeVar("Item")

SLOT_BITS = 6
SLOTS = 1 << SLOT_BITS
SLOT_MASK = SLOTS - 1
LEVELS = 6
MAX_SPAN_MS = ((SLOTS - 1) << (SLOT_BITS * (LEVELS - 1))) - 1
"""Less than a full turn of the top level, so that a slot there never means both now and the next turn."""


class TimerHandle(Generic[Item]):
    """A deadline in the wheel; kept by a caller that may cancel it."""

    __slots__ = ("_level", "_sequence", "_slot", "deadline_ms", "item")

    def __init__(self, deadline_ms: int, item: Item, sequence: int) -> None:
        self.deadline_ms = deadline_ms
        self.item = item
        self._sequence = sequence
        self._level = NOT_WAITING
        self._slot = 0

    @property
    def waiting(self) -> bool:
        """False once it has expired or was cancelled."""
        return self._level != NOT_WAITING


NOT_WAITING = -1
OVERDUE = LEVELS
"""A pseudo level for deadlines that had passed when they were added: they expire at the next advance."""


class TimingWheel(Generic[Item]):
    __slots__ = ("_count", "_overdue", "_reached_ms", "_sequence", "_slots", "_used")

    def __init__(self, start_ms: int = 0) -> None:
        self._reached_ms = start_ms
        self._slots: list[list[dict[TimerHandle[Item], None]]] = [[{} for _ in range(SLOTS)] for _ in range(LEVELS)]
        self._used = [0] * LEVELS
        self._overdue: dict[TimerHandle[Item], None] = {}
        self._count = 0
        self._sequence = 0

    def __len__(self) -> int:
        return self._count

    def add(self, deadline_ms: int, item: Item) -> TimerHandle[Item]:
        self._sequence += 1
        timer = TimerHandle(deadline_ms, item, self._sequence)
        self._place(timer)
        self._count += 1
        return timer

    def cancel(self, timer: TimerHandle[Item]) -> bool:
        """Whether it was still waiting; cancelling twice, or after expiry, does nothing."""
        level = timer._level
        if level == NOT_WAITING:
            return False
        if level == OVERDUE:
            del self._overdue[timer]
        else:
            slot = self._slots[level][timer._slot]
            del slot[timer]
            if not slot:
                self._used[level] &= ~(1 << timer._slot)
        timer._level = NOT_WAITING
        self._count -= 1
        return True

    def advance(self, now_ms: int) -> list[Item]:
        """Take out everything whose deadline is `now_ms` or earlier: by deadline, then in the order of adding."""
        expired: list[TimerHandle[Item]] = list(self._overdue)
        self._overdue.clear()
        while (found := self._next_slot()) is not None:
            level, slot_number, start_ms = found
            if start_ms > now_ms:
                break
            self._reached_ms = max(self._reached_ms, start_ms)
            self._used[level] &= ~(1 << slot_number)
            slot = self._slots[level][slot_number]
            self._slots[level][slot_number] = {}
            for timer in slot:
                if timer.deadline_ms <= now_ms:
                    expired.append(timer)
                else:
                    self._place(timer)
        self._reached_ms = max(self._reached_ms, now_ms)
        return self._release(expired)

    def next_deadline(self) -> int | None:
        """When to advance next: nothing expires before this. A far timer may need an early call to move down."""
        if self._overdue:
            return self._reached_ms
        found = self._next_slot()
        return None if found is None else found[2]

    def __iter__(self) -> Iterator[Item]:
        """Everything that waits, in no particular order."""
        for timer in self._overdue:
            yield timer.item
        for level in self._slots:
            for slot in level:
                for timer in slot:
                    yield timer.item

    def _place(self, timer: TimerHandle[Item]) -> None:
        reached = self._reached_ms
        if timer.deadline_ms <= reached:
            timer._level = OVERDUE
            self._overdue[timer] = None
            return
        when = min(timer.deadline_ms, reached + MAX_SPAN_MS)
        level = min(((reached ^ when) | SLOT_MASK).bit_length() - 1, SLOT_BITS * LEVELS - 1) // SLOT_BITS
        slot_number = (when >> (level * SLOT_BITS)) & SLOT_MASK
        timer._level = level
        timer._slot = slot_number
        self._slots[level][slot_number][timer] = None
        self._used[level] |= 1 << slot_number

    def _next_slot(self) -> tuple[int, int, int] | None:
        """(level, slot, first ms of the slot) of the earliest slot in use: lower levels always come before higher."""
        reached = self._reached_ms
        for level in range(LEVELS):
            used = self._used[level]
            if not used:
                continue
            shift = level * SLOT_BITS
            current = (reached >> shift) & SLOT_MASK
            ahead = used >> current
            turn_start = reached >> (shift + SLOT_BITS) << (shift + SLOT_BITS)
            if ahead:
                slot_number = current + (ahead & -ahead).bit_length() - 1
            else:  # only the top level wraps: its slots behind the current one belong to the next turn
                slot_number = (used & -used).bit_length() - 1
                turn_start += 1 << (shift + SLOT_BITS)
            return level, slot_number, turn_start + (slot_number << shift)
        return None

    def _release(self, expired: list[TimerHandle[Item]]) -> list[Item]:
        if len(expired) > 1:
            expired.sort(key=lambda timer: (timer.deadline_ms, timer._sequence))
        for timer in expired:
            timer._level = NOT_WAITING
        self._count -= len(expired)
        return [timer.item for timer in expired]
