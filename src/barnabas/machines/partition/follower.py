"""What a leader knows about a follower: its fetch position, its broker epoch, and when it was last caught up."""

NEVER_MS = -(1 << 62)
NO_BROKER_EPOCH = -1


class Follower:
    __slots__ = (
        "_fetched_ms",
        "_leader_end_at_fetch",
        "broker_epoch",
        "caught_up_ms",
        "joins",
        "log_end_offset",
        "log_start_offset",
    )

    def __init__(self, caught_up_ms: int) -> None:
        self.log_end_offset = -1
        self.log_start_offset = -1
        self.broker_epoch = NO_BROKER_EPOCH
        self.caught_up_ms = caught_up_ms
        self.joins = False
        """Caught up and about to join the ISR: the high watermark waits for it, or it might never get there."""
        self._fetched_ms = caught_up_ms
        self._leader_end_at_fetch = 0

    def on_fetch(self, fetch_offset: int, leader_log_end_offset: int, now_ms: int) -> None:
        """A fetch at the log end means caught up now; one at the log end of the previous fetch, caught up then.

        Without the second rule a follower that is always one batch behind a busy leader would appear to lag forever.
        """
        if fetch_offset >= leader_log_end_offset:
            self.caught_up_ms = now_ms
        elif fetch_offset >= self._leader_end_at_fetch:
            self.caught_up_ms = max(self.caught_up_ms, self._fetched_ms)
        self.log_end_offset = fetch_offset
        self._leader_end_at_fetch = leader_log_end_offset
        self._fetched_ms = now_ms

    def is_caught_up(self, leader_log_end_offset: int, now_ms: int, max_lag_ms: int) -> bool:
        return self.log_end_offset >= leader_log_end_offset or now_ms - self.caught_up_ms <= max_lag_ms
