"""Brokers that cannot be reached, told on stderr by commands that would otherwise wait in silence.

Around the part of a command that waits and tries again. A part that fails with its own line needs none of this. Clients
warn at each attempt; here an outage is one line: the first warning, and another one only after a pause. So are commits
that failed.
"""

import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PAUSE_S = 30.0
"""Attempts follow each other more closely than this (reconnect.backoff.max.ms is a second by default)."""
_LOGGERS = ("barnabas.client.node_connections", "barnabas.client.consumer")


class OutageHandler(logging.Handler):
    def __init__(self, tell: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(logging.WARNING)
        self._tell = tell
        self._clock = clock
        self._last: dict[str, float] = {}

    def emit(self, record: logging.LogRecord) -> None:
        """`no connection to HOST:PORT: why; next attempt in ...`"""
        text = record.getMessage().partition("; next attempt")[0]
        now = self._clock()
        last = self._last.get(text)
        self._last[text] = now
        if last is None or now - last >= PAUSE_S:
            self._tell(text)


@contextmanager
def report_outages(tell: Callable[[str], None]) -> Iterator[None]:
    """Nothing happens where the log is shown anyway (-v)."""
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    quiet = [(logger, logger.level) for logger in loggers if not logger.isEnabledFor(logging.WARNING)]
    handler = OutageHandler(tell)
    for logger, _ in quiet:
        logger.addHandler(handler)
        logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        for logger, before in quiet:
            logger.setLevel(before)
            logger.removeHandler(handler)


def teller(program: str) -> Callable[[str], None]:
    """For Barnabas's own commands."""

    def tell(text: str) -> None:
        goes_on = "; trying again" if text.startswith("no connection") else ""
        wiped = "\r\x1b[K" if sys.stderr.isatty() else ""  # a line of progress may stand there
        print(f"{wiped}{program}: {text}{goes_on}", file=sys.stderr, flush=True)

    return tell


def kafka_warning(text: str) -> None:
    """As Kafka's commands log it."""
    now = time.time()
    moment = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(now))
    print(f"[{moment},{int(now * 1000) % 1000:03}] WARN {text}", file=sys.stderr, flush=True)
