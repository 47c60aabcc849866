"""How often somebody may try to log in: by address and by user name, known or not, all alike. No I/O, no clock.

Each has a bucket of attempts that fills up again with time; a login that succeeds gives its attempt back. So guessing
is slow from one address and for one user, and a person who has mistyped a password a few times does not notice.
"""

from collections import OrderedDict

MOST = 10
REFILL_SECONDS = 12.0
"""One more attempt: 300 an hour at most."""
KEPT = 20_000
"""Buckets that are remembered; the oldest are forgotten, and they are mostly full again."""


class Attempts:
    """Times are monotonic seconds."""

    def __init__(self, most: int = MOST, refill_seconds: float = REFILL_SECONDS) -> None:
        self._most = most
        self._refill = refill_seconds
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, address: str, user: str, now: float) -> float:
        """0 if this attempt may be made, else the seconds until the next one may."""
        keys = _keys(address, user)
        lacking = min(self._left(key, now) for key in keys) - 1
        if lacking < 0:
            return -lacking * self._refill
        for key in keys:
            self._put(key, self._left(key, now) - 1, now)
        return 0.0

    def give_back(self, address: str, user: str, now: float) -> None:
        for key in _keys(address, user):
            self._put(key, self._left(key, now) + 1, now)

    def _left(self, key: str, now: float) -> float:
        left, at = self._buckets.get(key, (float(self._most), now))
        return min(float(self._most), left + (now - at) / self._refill)

    def _put(self, key: str, left: float, now: float) -> None:
        self._buckets[key] = (left, now)
        self._buckets.move_to_end(key)
        while len(self._buckets) > KEPT:
            self._buckets.popitem(last=False)


def _keys(address: str, user: str) -> tuple[str, str]:
    return f"from {address}", f"as {user[:256]}"
