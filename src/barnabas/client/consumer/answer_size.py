"""How much to ask a broker for at a time, where the user has not said it (max_partition_fetch_bytes).

With few partitions each may fill more of an answer than its default: an answer is worth its round trip only when it is
large. But whoever reads over a slow line wants the first records soon, and not a time-out. So answers grow as long as
they arrive in no time, and shrink when they take long. Pure; one for each broker, owned by the fetcher.
"""

from typing import Final

from barnabas.client.options import ConsumerOptions

FIRST_BYTES: Final = 2 << 20
LARGEST_BYTES: Final = 8 << 20
"""Larger ones are out of the cache before their records are read."""
QUICK_MS: Final = 50
SLOW_MS: Final = 500


class AnswerSize:
    __slots__ = ("_bytes", "_fixed", "_partition_bytes")

    def __init__(self, options: ConsumerOptions) -> None:
        self._partition_bytes = options.max_partition_fetch_bytes
        self._fixed = "max_partition_fetch_bytes" in options.given
        self._bytes = FIRST_BYTES

    def of_each(self, partitions: int) -> int:
        """What to ask for of each of so many partitions."""
        if self._fixed:
            return self._partition_bytes
        return max(self._partition_bytes, self._bytes // partitions)

    def on_answer(self, size: int, took_ms: int) -> None:
        if 4 * size < 3 * self._bytes:
            return  # there was no more to be had
        if took_ms <= QUICK_MS:
            self._bytes = min(2 * self._bytes, LARGEST_BYTES)
        elif took_ms >= SLOW_MS:
            self.shrink()

    def shrink(self) -> None:
        """Also for an answer that did not come: it may have taken too long."""
        self._bytes = max(self._bytes // 2, 1)
