"""From offsets of a source partition to those of its copy.

A copy has other offsets: the source may begin above 0, may be compacted, or have transaction markers between its
records; and the copy has markers of its own. Records whose offsets grow side by side are one `Run`. A list of runs
translates any offset exactly. Pure: `copying.py` feeds it and stores new runs with the records that they are about.
"""

from bisect import bisect_right
from typing import NamedTuple

MAX_RUNS = 20_000
"""Per partition. Beyond that every second one of the older half goes, and offsets there translate to earlier ones."""


class Run(NamedTuple):
    """`length` records from these offsets on, one after the other on both sides."""

    source: int
    target: int
    length: int = 1


class Translation:
    def __init__(self) -> None:
        self._starts: list[int] = []
        self._runs: list[Run] = []
        self._thinned_before = -1

    def add(self, run: Run) -> None:
        """The next records that were copied."""
        last = self._runs[-1] if self._runs else None
        if last is not None and run.source < last.source + last.length:
            return  # read again after a restart, and known
        if last is not None and run.source - last.source == run.target - last.target == last.length:
            self._runs[-1] = last._replace(length=last.length + run.length)
            return
        self._runs.append(run)
        self._starts.append(run.source)
        if len(self._runs) > MAX_RUNS:
            self._thin()

    def target_of(self, committed: int) -> int | None:
        """Where a group that would read `committed` next goes on in the copy; None if that is not known (yet).

        Where runs were thinned out, it may read some records again, but never skips one.
        """
        index = bisect_right(self._starts, committed) - 1
        if index < 0:
            return None
        run = self._runs[index]
        end = run.source + run.length
        if committed < end:
            return run.target + committed - run.source
        if index + 1 == len(self._runs):
            # What lies past all that was copied has to be copied first.
            return run.target + run.length if committed == end else None
        if committed < self._thinned_before:
            return run.target + run.length
        return self._runs[index + 1].target

    def _thin(self) -> None:
        half = len(self._runs) // 2
        self._thinned_before = self._runs[half].source
        self._runs[:half] = self._runs[:half:2]
        self._starts = [run.source for run in self._runs]
