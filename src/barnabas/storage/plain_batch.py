"""Recognises a batch as producers nearly always send it: compiled, or `plain_batch_pure`, which explains it."""

from typing import Protocol

from barnabas.records.header import BatchHeader
from barnabas.twins import choose_twin


class PlainBatchReader(Protocol):
    def read_plain_header(self, data: memoryview, /) -> BatchHeader | None: ...


_twin: PlainBatchReader = choose_twin("barnabas.storage.plain_batch_native", "barnabas.storage.plain_batch_pure")
read_plain_header = _twin.read_plain_header
