"""What a leader knows about a follower: its fetch position and when it was last caught up."""


class Follower:
    __slots__ = ("_fetched_ms", "_leader_end_at_fetch", "caught_up_ms", "log_end_offset")

    def __init__(self, now_ms: int) -> None:
        self.log_end_offset = -1
        self.caught_up_ms = now_ms
        self._fetched_ms = now_ms
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
