"""The timers of a transaction shard: which are armed, so that none is armed twice.

A time-out stays armed when its transaction ends and looks, when it fires, what runs by then. So a producer of short
transactions costs a timer now and then, not one a transaction. With no transactional id there is no timer at all.
"""

from barnabas.machines.coordinator import Now
from barnabas.machines.txn.metadata import TransactionMetadata

TIMEOUT = "timeout:"
EXPIRY = "expiry"
NO_ID_BACKOFF_MS = 100

Timers = tuple[tuple[str, int | None], ...]


class Alarms:
    def __init__(self, expiry_check_interval_ms: int) -> None:
        self.timeouts: dict[str, int] = {}
        self._expiry_check_interval_ms = expiry_check_interval_ms
        self._expiry_armed = False

    def arm_timeout(self, metadata: TransactionMetadata, now: Now) -> Timers:
        """Maybe: one that fires earlier will do."""
        left_ms = metadata.start_ms + metadata.timeout_ms - now.wall_ms
        deadline_ms = now.monotonic_ms + max(0, left_ms)
        armed_ms = self.timeouts.get(metadata.transactional_id)
        if armed_ms is not None and armed_ms <= deadline_ms:
            return ()
        self.timeouts[metadata.transactional_id] = deadline_ms
        return ((TIMEOUT + metadata.transactional_id, deadline_ms),)

    def arm_timeout_again(self, transactional_id: str, now: Now) -> Timers:
        """There was no producer id to rotate to, which the abort needs."""
        deadline_ms = self.timeouts[transactional_id] = now.monotonic_ms + NO_ID_BACKOFF_MS
        return ((TIMEOUT + transactional_id, deadline_ms),)

    def arm_expiry(self, now: Now) -> Timers:
        if self._expiry_armed:
            return ()
        self._expiry_armed = True
        return ((EXPIRY, now.monotonic_ms + self._expiry_check_interval_ms),)

    def on_timeout(self, key: str) -> str:
        """The transactional id whose timer fired."""
        transactional_id = key.removeprefix(TIMEOUT)
        self.timeouts.pop(transactional_id, None)
        return transactional_id

    def on_expiry(self) -> None:
        self._expiry_armed = False
