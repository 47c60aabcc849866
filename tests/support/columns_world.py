"""A fetcher and a user who asks it for columns; responses that are large enough to be record batches of their own."""

from __future__ import annotations

from typing import Any

from fake_cluster import FakeCluster
from fetch_world import World
from fetched import values


def many(first: int, count: int = 500, *, damage: int | None = None) -> bytes:
    data = bytearray(
        b"".join(values(n, *[b"%09d|" % k * 100 for k in range(n, n + 10)]) for n in range(first, first + count, 10))
    )
    if damage is not None:
        data[damage] ^= 1
    return bytes(data)


class Columns(World):
    """A user who asks for columns."""

    def __init__(self, cluster: FakeCluster, **options: Any) -> None:
        super().__init__(cluster, **options)
        assert self.rows().num_rows == 0

    def rows(self, max_records: int | None = None) -> Any:
        taken = self.collector.take_arrow(max_records, 1 << 30)
        if self.buffer.made_room():
            self.fetcher.kick()
        return taken

    async def offsets(self, count: int, max_records: int | None = None) -> list[int]:
        seen: list[int] = []
        while len(seen) < count:
            self.arrivals.clear()
            rows = self.rows(max_records)
            seen += rows["offset"].to_pylist()
            assert rows["value"].to_pylist() == [b"%09d|" % n * 100 for n in rows["offset"].to_pylist()]
            if not rows.num_rows:
                await self.arrivals.wait()
        return seen
