"""What does not fit in the files, collected over all of them: what is reported at the end, and the exit status.

Kafka's own command knows only some of it. Under its name the others are not reported, and only that has a status of its
own at which Kafka's ends: a file or a batch that cannot be read.
"""

import sys
from pathlib import Path

from barnabas.cli.dump.files import Batch
from barnabas.cli.exit_status import FAILED, OK

Pairs = dict[Path, list[tuple[int, int]]]


class Faults:
    def __init__(self, *, as_kafka: bool) -> None:
        self.as_kafka = as_kafka
        self.offset_mismatches: Pairs = {}
        self.time_mismatches: Pairs = {}
        self.out_of_order: Pairs = {}
        self.not_found: Pairs = {}
        self.gaps: Pairs = {}
        self._unreadable = False
        self._invalid: list[str] = []

    def unreadable_file(self, path: Path, error: Exception) -> None:
        self._unreadable = True
        reason = error.strerror if isinstance(error, OSError) and error.strerror and not self.as_kafka else error
        print(f"{path} cannot be read: {reason}", file=sys.stderr)

    def unreadable_batch(self, path: Path, batch: Batch, reason: str) -> None:
        self._unreadable = True
        print(f"{path}: the batch at {place(batch)} cannot be read: {reason}", file=sys.stderr)

    def wrong_crc(self, path: Path, batch: Batch) -> None:
        self._invalid.append(f"{path}: the CRC of the batch at {place(batch)} does not match")

    def invalid_tail(self, path: Path, position: int, count: int) -> None:
        self._invalid.append(f"{path}: {count} invalid bytes from position {position} on")

    def report(self) -> None:
        _report("Mismatches in :{}", self.offset_mismatches, "  Index offset: {}, log offset: {}", newest_first=True)
        _report("Found timestamp mismatch in :{}", self.time_mismatches, "  Index timestamp: {}, log timestamp: {}")
        _report(
            "Found out of order timestamp in :{}",
            self.out_of_order,
            "  Index timestamp: {}, Previously indexed timestamp: {}",
        )
        _report(
            "The following indexed offsets are not found in the log.",
            self.not_found,
            "Indexed offset: {}, found log offset: {}",
        )
        _report("Non-consecutive offsets in {}", self.gaps, "  {} is followed by {}", newest_first=True)
        for line in () if self.as_kafka else self._invalid:
            print(line, file=sys.stderr)

    @property
    def status(self) -> int:
        if self._unreadable:
            return FAILED
        found = (self.offset_mismatches, self.time_mismatches, self.out_of_order, self.not_found, self.gaps)
        return FAILED if not self.as_kafka and (any(found) or self._invalid) else OK


def place(batch: Batch) -> str:
    return f"position {batch.position} (base offset {batch.header.base_offset})"


def _report(title: str, found: Pairs, line: str, newest_first: bool = False) -> None:
    for path, pairs in found.items():
        print(title.format(path.absolute()), file=sys.stderr)
        for pair in reversed(pairs) if newest_first else pairs:
            print(line.format(*pair), file=sys.stderr)
