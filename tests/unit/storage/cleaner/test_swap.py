"""The swap of compacted segments: nothing is flushed on the event loop, and what comes in between is safe."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest
from compacted_log import CompactedLog

from barnabas.storage.cleaner.log_cleaner import LogCleaner
from barnabas.storage.files import Files, OpenFile
from barnabas.storage.segment_list import SegmentList

Result = TypeVar("Result")


class Loop(Files):
    """Knows what is done on the event loop, and lets a test do something while the cleaner flushes the folder."""

    def __init__(self) -> None:
        self.is_on_loop = False
        self.flushes_on_loop: list[str] = []
        self.flushes = 0
        self.in_between: Callable[[], object] = lambda: None

    def call(self, function: Callable[[], Result]) -> Result:
        self.is_on_loop = True
        try:
            return function()
        finally:
            self.is_on_loop = False

    def open(self, path: str, *, create: bool = False) -> OpenFile:
        return WatchedFile(self, super().open(path, create=create))

    def note_flush(self, path: str) -> None:
        self.flushes += 1
        if self.is_on_loop:
            self.flushes_on_loop.append(path)

    def sync_directory(self, path: str) -> None:
        self.note_flush(path)
        super().sync_directory(path)
        if any(name.endswith(".log.swap") for name in os.listdir(path)):
            in_between, self.in_between = self.in_between, lambda: None
            in_between()


class WatchedFile(OpenFile):
    __slots__ = ("_loop",)

    def __init__(self, loop: Loop, file: OpenFile) -> None:
        super().__init__(file.path, os.dup(file.fileno()))
        self._loop = loop

    def fsync(self) -> None:
        self._loop.note_flush(self.path)
        super().fsync()


def watched(folder: Path) -> tuple[CompactedLog, Loop]:
    compacted, loop = CompactedLog(str(folder), segment_bytes=250), Loop()
    compacted.open(clean=True, files=loop)
    compacted.cleaner = LogCleaner(lambda: [compacted.log], compacted.settings, compacted.clock, loop.call)
    for number in range(12):
        compacted.append([(b"k%d" % (number % 3), b"%d" % number)])
    compacted.roll()
    return compacted, loop


LAST = {b"k0": b"9", b"k1": b"10", b"k2": b"11"}


def test_nothing_is_flushed_on_the_loop(tmp_path: Path) -> None:
    compacted, loop = watched(tmp_path)
    loop.flushes = 0
    assert compacted.clean()
    assert loop.flushes > 0 and loop.flushes_on_loop == []
    assert compacted.last_values() == LAST
    assert not [name for name in compacted.file_names() if name.endswith((".swap", ".cleaned"))]


def test_reads_and_a_crash_between_the_two_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compacted, loop = watched(tmp_path)
    seen: list[dict[bytes | None, bytes | None]] = []

    def crash() -> None:
        seen.append(compacted.last_values())
        monkeypatch.setattr(SegmentList, "finish_replacing", lambda *_: None)
        raise KeyboardInterrupt

    loop.in_between = crash
    with pytest.raises(KeyboardInterrupt):
        compacted.clean()
    assert any(name.endswith(".log.swap") for name in compacted.file_names())
    compacted.open(clean=False)
    assert seen == [LAST] and compacted.last_values() == LAST


def test_what_was_truncated_between_the_two_steps_does_not_come_back(tmp_path: Path) -> None:
    compacted, loop = watched(tmp_path)
    loop.in_between = lambda: compacted.log.truncate_fully_and_start_at(12, compacted.clock.now_ms())
    compacted.clean()
    assert compacted.records() == []
    compacted.open(clean=False)
    assert compacted.records() == [] and compacted.log.log_end_offset == 12


def test_closing_between_the_two_steps(tmp_path: Path) -> None:
    compacted, loop = watched(tmp_path)
    loop.in_between = compacted.log.close
    compacted.clean()
    assert not [name for name in compacted.file_names() if name.endswith((".swap", ".cleaned"))]
    compacted.open(clean=True)
    assert compacted.last_values() == LAST
