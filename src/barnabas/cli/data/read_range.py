"""Where `barnabas consume` starts and ends: -o beginning|end|stored|N|-N|s@TIME|e@TIME, and -e.

A `ReadRange` knows when a partition is done with: at the end there was when reading began (-e), or at the first record
of the time that e@ names. Offsets of a group are the group's matter: there only -e and e@ apply.
"""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from barnabas.cli.command import UsageError
from barnabas.cli.times import milliseconds

if TYPE_CHECKING:
    from barnabas.client.consumer import Consumer
    from barnabas.records.codec import ConsumerRecord
    from barnabas.types import TopicPartition

BEGINNING, END, STORED = "beginning", "end", "stored"
_WORDS = {
    "beginning": BEGINNING,
    "start": BEGINNING,
    "earliest": BEGINNING,
    "end": END,
    "latest": END,
    "stored": STORED,
}


class ReadRange(NamedTuple):
    start: str | int = BEGINNING
    """A word, an offset, or minus that many records before the end."""
    given: bool = False
    """The start was given, not defaulted."""
    start_ms: int | None = None
    stop_ms: int | None = None
    at_end: bool = False
    """Stop at the end there was when reading began."""

    @classmethod
    def parse(cls, words: Sequence[str], at_end: bool) -> "ReadRange":
        parsed = cls(at_end=at_end)
        for word in words:
            if word.startswith("s@"):
                parsed = parsed._replace(start_ms=milliseconds(word[2:], "-o s@"))
            elif word.startswith("e@"):
                parsed = parsed._replace(stop_ms=milliseconds(word[2:], "-o e@"))
            else:
                parsed = parsed._replace(start=_start(word), given=True)
        if parsed.given and parsed.start_ms is not None:
            raise UsageError("-o: a time to start at (s@) and another start exclude each other")
        # Records of a time that has passed come no more: without any, the end is where to stop.
        past = parsed.stop_ms is not None and parsed.stop_ms <= time.time() * 1000
        return parsed._replace(at_end=at_end or past)

    def seek(self, consumer: "Consumer", partitions: Sequence["TopicPartition"]) -> None:
        """Assigned partitions to where reading starts."""
        if self.start_ms is not None:
            consumer.seek_to_time(self.start_ms)
        elif self.start == END:
            consumer.seek_to_end()
        elif isinstance(self.start, int):
            first, last = consumer.beginning_offsets(partitions), consumer.end_offsets(partitions)
            for partition in partitions:
                wanted = self.start if self.start >= 0 else last[partition] + self.start
                consumer.seek(partition, min(max(wanted, first[partition]), last[partition]))
        elif self.start == BEGINNING:
            consumer.seek_to_beginning()

    def is_beyond(self, record: "ConsumerRecord") -> bool:
        return self.stop_ms is not None and record.timestamp >= self.stop_ms


def _start(word: str) -> str | int:
    if word in _WORDS:
        return _WORDS[word]
    try:
        return int(word)
    except ValueError:
        known = "beginning, end, stored, an offset, -N (the last N), s@TIME or e@TIME"
        raise UsageError(f"-o {word}: expected {known}") from None
