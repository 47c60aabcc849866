"""The timers of a transaction shard: which are armed, so that none is armed twice.

A timeout stays armed when its transaction ends and checks, when it fires, what is running by then. So a producer of
short transactions costs a timer now and then, not one per transaction. Without transactional ids there is no timer.

Timeouts use monotonic time from the start of the transaction: changing the wall clock must neither abort a live
transaction nor keep a dead one. Only after a load is the wall time in the log all there is.
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
        """Transactional id -> when its timer fires."""
        self._deadlines: dict[str, int] = {}
        """Transactional id -> when its latest transaction times out; only for ids with an armed timer."""
        self._expiry_check_interval_ms = expiry_check_interval_ms
        self._expiry_armed = False

    def start_timeout(self, metadata: TransactionMetadata, now: Now) -> Timers:
        """The transaction begins now."""
        self._deadlines[metadata.transactional_id] = now.monotonic_ms + metadata.timeout_ms
        return self.arm_timeout(metadata.transactional_id)

    def resume_timeout(self, metadata: TransactionMetadata, now: Now) -> Timers:
        """The transaction was found in the log."""
        left_ms = min(max(0, metadata.start_ms + metadata.timeout_ms - now.wall_ms), metadata.timeout_ms)
        self._deadlines[metadata.transactional_id] = now.monotonic_ms + left_ms
        return self.arm_timeout(metadata.transactional_id)

    def is_due(self, transactional_id: str, now: Now) -> bool:
        return self._deadlines[transactional_id] <= now.monotonic_ms

    def arm_timeout(self, transactional_id: str) -> Timers:
        """Does nothing if an earlier timer is armed."""
        deadline_ms = self._deadlines[transactional_id]
        armed_ms = self.timeouts.get(transactional_id)
        if armed_ms is not None and armed_ms <= deadline_ms:
            return ()
        self.timeouts[transactional_id] = deadline_ms
        return ((TIMEOUT + transactional_id, deadline_ms),)

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

    def forget_timeout(self, transactional_id: str) -> None:
        """No transaction runs any more, and no timer is armed."""
        self._deadlines.pop(transactional_id, None)

    def on_expiry(self) -> None:
        self._expiry_armed = False
