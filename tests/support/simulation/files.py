"""The disk of one broker: real files in a folder of the test's, with faults, shared by its incarnations.

A kill keeps what reached the kernel; a power loss also takes pages that were never flushed. Locks end with the process.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable

from faulty_files import FaultyFile, FaultyFiles


class _SimulatedFile(FaultyFile):
    __slots__ = ()

    def try_lock(self) -> bool:
        locked = super().try_lock()
        if locked:
            self._layer.keep_lock(self.fileno())  # type: ignore[attr-defined]
        return locked


class SimulatedDisk(FaultyFiles):
    file_type = _SimulatedFile

    def __init__(self) -> None:
        super().__init__()
        self.on_crash: Callable[[], None] = lambda: None
        """Kills the node whose write a crash was set for."""
        self._locked: list[int] = []

    def step(self, operation: str, path: str, size: int) -> int | None:
        was_crashed = self.crashed
        keep = super().step(operation, path, size)
        if self.crashed and not was_crashed:
            self.on_crash()
        return keep

    def names(self, directory: str) -> list[str]:
        return sorted(super().names(directory))  # the order of the system differs from run to run

    def on_process_ended(self) -> None:
        """Nothing more is written by whoever is in the middle of something, and the locks are free."""
        self.crashed = True
        self.error = None
        for descriptor in self._locked:
            fcntl.flock(descriptor, fcntl.LOCK_UN)
            os.close(descriptor)
        self._locked.clear()

    def on_process_started(self) -> None:
        self.crashed = False
        self.crash_at = None

    def keep_lock(self, descriptor: int) -> None:
        self._locked.append(os.dup(descriptor))
