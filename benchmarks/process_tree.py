"""CPU time of a process and its descendants."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from server_process import CLOCK_TICKS


def tree_cpu(root: int) -> list[tuple[str, float]]:
    """(command, seconds) of a process and its descendants, including those that have exited."""
    parents: dict[int, int] = {}
    found: dict[int, tuple[str, float]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            head, _, tail = (folder / "stat").read_text().rpartition(")")
        except OSError:
            continue  # it exited meanwhile
        fields = tail.split()
        parents[int(folder.name)] = int(fields[1])
        found[int(folder.name)] = head.partition("(")[2], sum(map(int, fields[11:15])) / CLOCK_TICKS
    return [each for pid, each in found.items() if root in _ancestry(pid, parents)]


def _ancestry(pid: int, parents: dict[int, int]) -> Iterator[int]:
    while pid in parents:
        yield pid
        pid = parents[pid]
