"""Brokers that cannot be reached, reported on stderr by commands that would otherwise wait in silence.

Used around the part of a command that waits and tries again; a part that fails with its own line does not need it. The
clients warn at each attempt; here an outage is one line: the first warning, and another one only after a pause. The
same holds for failed commits.
"""

import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PAUSE_S = 30.0
"""Attempts follow each other more closely than this (reconnect.backoff.max.ms is a second by default)."""
Report = Callable[[str, bool], None]
"""Receives the text, and whether the client tries again."""
_LOGGERS = ("barnabas.client.node_connections", "barnabas.client.consumer")


class OutageHandler(logging.Handler):
    def __init__(self, report: Report, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(logging.WARNING)
        self._report = report
        self._clock = clock
        self._last: dict[str, float] = {}

    def emit(self, record: logging.LogRecord) -> None:
        unreachable = getattr(record, "unreachable", None)
        text = record.getMessage() if unreachable is None else f"no connection to {unreachable}"
        now = self._clock()
        last = self._last.get(text)
        self._last[text] = now
        if last is None or now - last >= PAUSE_S:
            self._report(text, unreachable is not None)


@contextmanager
def report_outages(report: Report) -> Iterator[None]:
    """Does nothing where the log is shown anyway (-v)."""
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    quiet = [(logger, logger.level) for logger in loggers if not logger.isEnabledFor(logging.WARNING)]
    handler = OutageHandler(report)
    for logger, _ in quiet:
        logger.addHandler(handler)
        logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        for logger, before in quiet:
            logger.setLevel(before)
            logger.removeHandler(handler)


def outage_line(program: str) -> Report:
    """For Barnabas's own commands."""

    def report(text: str, tries_again: bool) -> None:
        erase = "\r\x1b[K" if sys.stderr.isatty() else ""  # a line of progress may be there
        print(f"{erase}{program}: {text}{'; trying again' if tries_again else ''}", file=sys.stderr, flush=True)

    return report


def kafka_warning(text: str, tries_again: bool) -> None:
    """As Kafka's commands log it."""
    now = time.time()
    moment = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(now))
    print(f"[{moment},{int(now * 1000) % 1000:03}] WARN {text}", file=sys.stderr, flush=True)
