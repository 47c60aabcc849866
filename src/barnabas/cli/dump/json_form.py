"""Segments for programs: one JSON object per batch, record, or part that cannot be read."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path

from barnabas.cli.dump.decoders import Decoder
from barnabas.cli.dump.files import Batch
from barnabas.records import Record


class JsonForm:
    def __init__(self, decoder: Decoder | None) -> None:
        self._decoder = decoder

    def title(self, path: Path) -> Iterator[str]:
        return iter(())

    def batch(self, path: Path, batch: Batch) -> str:
        header = batch.header
        row = {"file": str(path), "position": batch.position, **header._asdict(), "last_offset": header.last_offset}
        return json.dumps({**row, "valid": batch.is_valid})

    def record(self, batch: Batch, record: Record) -> str:
        decoder = self._decoder
        key, payload = decoder(record) if decoder else (_base64(record.key), _base64(record.value))
        headers = [[name, _base64(value)] for name, value in record.headers]
        row = {"offset": record.offset, "timestamp": record.timestamp, "key": key, "value": payload}
        return json.dumps({**row, "headers": headers})

    def damage(self, path: Path, batch: Batch, reason: str) -> Iterator[str]:
        place = {"file": str(path), "position": batch.position, "base_offset": batch.header.base_offset}
        yield json.dumps({**place, "error": reason})

    def invalid_tail(self, path: Path, position: int, count: int) -> str:
        return json.dumps({"file": str(path), "position": position, "invalid_bytes": count})


def _base64(content: bytes | None) -> str | None:
    return None if content is None else base64.b64encode(content).decode()
