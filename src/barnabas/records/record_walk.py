"""Walks over the records of a batch: compiled, or `_pure/record_walk`, which explains the functions."""

from typing import Protocol

from barnabas.records.header import Buffer
from barnabas.records.walk_result import RecordsWalk
from barnabas.twins import choose_twin


class RecordWalk(Protocol):
    def walk_records(
        self, payload: Buffer, count: int, base_timestamp: int, key_needed: bool, earliest: int, latest: int, /
    ) -> RecordsWalk: ...

    def find_by_time(
        self, payload: Buffer, count: int, base_timestamp: int, timestamp: int, first_delta: int, /
    ) -> tuple[int, int] | None: ...

    def renumber(self, payload: Buffer, count: int, /) -> bytes: ...


_twin: RecordWalk = choose_twin("barnabas.records._native.record_walk", "barnabas.records._pure.record_walk")
walk_records = _twin.walk_records
find_by_time = _twin.find_by_time
renumber = _twin.renumber
