"""A TLS context that follows its settings and files, while the broker runs.

One per listener, and one for the links to other brokers. Files are looked at when a connection is made; connections
that are open keep what they began with. What cannot be read leaves the old certificate in place, with a line in the
log.
"""

import logging
import os
import ssl
from collections.abc import Callable

from barnabas.clock import Clock
from barnabas.config.broker import BrokerConfig
from barnabas.config.faults import ConfigFaults

logger = logging.getLogger(__name__)

FILE_CHECK_MS = 1_000
"""Files are looked at when a connection is made, at most so often."""


class TlsContexts:
    """`config` as it holds for the listener (`for_listener`), `whose` is for the log."""

    def __init__(
        self, whose: str, config: BrokerConfig, make: Callable[[BrokerConfig], ssl.SSLContext], clock: Clock
    ) -> None:
        self._whose = whose
        self._config = config
        self._make = make
        self._clock = clock
        self._context: ssl.SSLContext | None = None
        self._files: tuple[object, ...] = ()
        self._next_check_ms = 0

    def load(self) -> None:
        """Raises ConfigFaults, ValueError."""
        self._files = self._fingerprint()
        self._context = self._make(self._config)

    def reconfigure(self, config: BrokerConfig) -> None:
        """The settings may have changed."""
        before, self._config = self._config, config
        if config != before:
            self._reload("its settings have changed")

    def current(self) -> ssl.SSLContext | None:
        """For the next connection; None before the first `load`."""
        now_ms = self._clock.monotonic_ms()
        if now_ms >= self._next_check_ms:
            self._next_check_ms = now_ms + FILE_CHECK_MS
            if self._fingerprint() != self._files:
                self._reload("a file has changed")
        return self._context

    def _reload(self, why: str) -> None:
        try:
            self.load()
        except (ConfigFaults, ValueError) as fault:
            logger.error("%s: %s, but the old certificate stays in use: %s", self._whose, why, fault)
        else:
            logger.info("%s: %s: the new certificate is in use", self._whose, why)

    def _fingerprint(self) -> tuple[object, ...]:
        """Of the files, to see that one was replaced."""
        found: list[object] = []
        for path in (self._config.ssl_keystore_location, self._config.ssl_truststore_location):
            try:
                status = None if path is None else os.stat(path)
            except OSError:
                status = None
            found.append(None if status is None else (status.st_mtime_ns, status.st_size, status.st_ino))
        return tuple(found)
