"""What the demo shows while it runs: a table that is updated in place on a terminal, otherwise a line now and then."""

import os
import sys
import time
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, TextIO

from barnabas.pipeline.ods_records import DIRTY_TOPIC
from barnabas.pipeline.split import CHANGE_TOPIC, LOG_TOPIC
from barnabas.terminal import Screen, table

_WINDOW_S: Final = 5.0
"""Rates are averaged over some seconds, because a batch becomes readable all at once."""


class Line(NamedTuple):
    """A line of the table; related topics share one."""

    name: str
    topics: tuple[str, ...]


def lines_of(topics: Iterable[str]) -> list[Line]:
    """Sources first, then what the pipeline writes; all dimensions in one line, so that it fits a small terminal."""
    written = [topic for topic in topics if topic not in (LOG_TOPIC, CHANGE_TOPIC, DIRTY_TOPIC)]
    dimensions = tuple(topic for topic in written if topic.startswith("dim_"))
    lines = [Line(topic, (topic,)) for topic in (LOG_TOPIC, CHANGE_TOPIC)]
    lines += [Line(topic, (topic,)) for topic in written if topic not in dimensions]
    lines.append(Line(f"dim_* ({len(dimensions)} topics)", dimensions))
    return [*lines, Line(DIRTY_TOPIC, (DIRTY_TOPIC,))]


class Rates:
    """Records per second by topic, over the last seconds."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, dict[str, int]]] = deque()

    def add(self, counts: Mapping[str, int], now: float) -> None:
        self._seen.append((now, dict(counts)))
        while len(self._seen) > 2 and self._seen[1][0] <= now - _WINDOW_S:
            self._seen.popleft()

    def of(self, topics: Iterable[str]) -> float:
        (first, before), (last, after) = self._seen[0], self._seen[-1]
        if last <= first:
            return 0.0
        return sum(after.get(topic, 0) - before.get(topic, 0) for topic in topics) / (last - first)


class Board:
    """Updates in place if `stream` is a terminal, otherwise prints a line every few seconds."""

    def __init__(self, topics: Iterable[str], stream: TextIO | None = None, line_every_s: float = 5.0) -> None:
        self._stream = sys.stdout if stream is None else stream
        self._is_terminal = self._stream.isatty() and os.environ.get("TERM") != "dumb"
        self._lines = lines_of(topics)
        self._rates = Rates()
        self._line_every_s = line_every_s
        self._shown_at = -line_every_s
        self._screen = Screen(self._stream)

    def show(self, counts: Mapping[str, int], lags: Mapping[str, int], title: str, now: float | None = None) -> None:
        now = time.monotonic() if now is None else now
        self._rates.add(counts, now)
        if self._is_terminal:
            self._screen.draw([title, "", *table(["TOPIC", "RECORDS", "RECORDS/S", "LAG"], self._rows(counts, lags))])
        elif now - self._shown_at >= self._line_every_s:
            self._shown_at = now
            self._say(f"{title}: {self._in_one_line(counts, lags)}")

    def finish(self) -> None:
        """The table stays; further output comes below it."""
        if self._screen.finish():
            self._say("")

    def _rows(self, counts: Mapping[str, int], lags: Mapping[str, int]) -> list[list[str]]:
        return [
            [
                line.name,
                f"{_sum(counts, line.topics):,}",
                f"{self._rates.of(line.topics):,.0f}",
                f"{_sum(lags, line.topics):,}" if lags.keys() & set(line.topics) else "-",
            ]
            for line in self._lines
        ]

    def _in_one_line(self, counts: Mapping[str, int], lags: Mapping[str, int]) -> str:
        sources = (LOG_TOPIC, CHANGE_TOPIC)
        written = [topic for line in self._lines for topic in line.topics if topic not in (*sources, DIRTY_TOPIC)]
        return (
            f"{_sum(counts, sources):,} records in ({self._rates.of(sources):,.0f}/s),"
            f" {_sum(counts, written):,} out ({self._rates.of(written):,.0f}/s),"
            f" {counts.get(DIRTY_TOPIC, 0):,} dirty, lag {_sum(lags, sources):,}"
        )

    def _say(self, text: str) -> None:
        print(text, file=self._stream, flush=True)


def _sum(numbers: Mapping[str, int], topics: Iterable[str]) -> int:
    return sum(numbers.get(topic, 0) for topic in topics)
