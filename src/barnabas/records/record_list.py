"""Decodes many records of a batch at once, for reader.py; without the compiled module it leaves that to reader.py."""

from typing import Protocol

from barnabas.records.record import Record
from barnabas.twins import choose_twin


class RecordListReader(Protocol):
    def read_list(
        self,
        payload: bytes,
        position: int,
        base_offset: int,
        base_timestamp: int,
        append_time: int | None,
        count: int,
        /,
    ) -> tuple[list[Record], int] | None: ...


_twin: RecordListReader = choose_twin("barnabas.records.record_list_native", "barnabas.records.record_list_pure")
read_list = _twin.read_list
