"""Damaged fetch responses: the readers raise KafkaError or read on, and both twins and both kinds of reader agree."""

import random
import struct
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from fetched import batch, marker

from barnabas.errors import ErrorCode, KafkaError
from barnabas.records import CompressionType, ControlType, _pure, iter_records, read_header
from barnabas.records.header import write_crc
from barnabas.records.reader import decode_records, read_payload

native = pytest.importorskip("barnabas.records._native", reason="the compiled codec is not built")

ROUNDS = 600
INTERESTING = (0, 1, 2, 0x7F, 0x80, 0x81, 0xFE, 0xFF)


def _answer(seed: random.Random) -> tuple[bytearray, list[int]]:
    """A few batches of all kinds, and where each starts."""
    data, starts, offset = bytearray(), [], 0
    for _ in range(seed.randint(1, 4)):
        starts.append(len(data))
        if seed.random() < 0.15:
            data += marker(offset, seed.randint(1, 2), seed.choice([ControlType.ABORT, ControlType.COMMIT]))
            offset += 1
            continue
        records = [
            (
                seed.randrange(1 << 41),
                seed.choice([None, b"", b"key"]),
                seed.choice([None, seed.randbytes(seed.choice([0, 5, 80, 300]))]),
                tuple(("h" * seed.randint(0, 3), seed.choice([None, b"1"])) for _ in range(seed.choice([0, 0, 2]))),
            )
            for _ in range(seed.randint(1, 5))
        ]
        producer_id = seed.choice([-1, 1, 2])
        data += batch(
            offset,
            records,
            codec=seed.choice([CompressionType.NONE] * 4 + list(CompressionType)),
            producer_id=producer_id,
            transactional=producer_id > 0,
        )
        offset += len(records)
    return data, starts


def _damage(seed: random.Random, data: bytearray, starts: list[int]) -> bytes:
    for _ in range(seed.randint(1, 3)):
        position = seed.randrange(len(data))
        kind = seed.random()
        if kind < 0.5:
            data[position] = seed.choice(INTERESTING)
        elif kind < 0.7:
            data[position] ^= 1 << seed.randrange(8)
        elif kind < 0.85:
            start = seed.choice(starts)
            field, format_ = seed.choice([(0, ">q"), (8, ">i"), (21, ">h"), (23, ">i"), (43, ">q"), (57, ">i")])
            if start + 61 <= len(data):
                bits = struct.calcsize(format_) * 8
                value = seed.choice([-1, 0, 1, 2, 100, (1 << bits - 1) - 1, -(1 << bits - 1)])
                struct.pack_into(format_, data, start + field, value)
        else:
            del data[position : position + seed.randint(1, 20)]
            if not data:
                break
    if seed.random() < 0.7:
        _mend_crcs(data)
    return bytes(data)


def _mend_crcs(data: bytearray) -> None:
    """So that the damage is found by what comes after the CRC."""
    position = 0
    while position + 61 <= len(data):
        size = 12 + struct.unpack_from(">i", data, position + 8)[0]
        if size < 61 or position + size > len(data):
            return
        write_crc(data, position, size)
        position += size


def _read(twin: ModuleType, data: bytes, start: int, aborted: Any, n: int) -> tuple[Any, ...]:
    reader = twin.RecordReader(data, "t", 0, start, aborted=aborted)
    taken: list[Any] = []
    code = None
    try:
        while part := reader.take(n):
            taken += part
    except KafkaError as error:
        code = error.code
    fields = [record.__reduce__()[1] for record in taken]
    return fields, code, reader.next_offset, reader.leader_epoch


def _read_arrow(
    twin: ModuleType, data: bytes | bytearray, start: int, aborted: Any, in_place: bool = False
) -> tuple[Any, ...]:
    reader = twin.ArrowReader()
    code = None
    position = start
    try:
        position = reader.add(data, "t", 0, start, aborted=aborted, in_place=in_place)
    except KafkaError as error:
        code = error.code
    rows = reader.finish()
    rows.validate(full=True)
    return rows.drop_columns("timestamp").to_pylist(), rows["timestamp"].cast("int64").to_pylist(), code, position


def test_damage_is_survived_and_seen_alike() -> None:
    origin = random.randrange(1 << 32)
    for turn in range(ROUNDS):
        seed = random.Random(f"{origin} {turn}")
        data = _damage(seed, *_answer(seed))
        start, n = seed.randint(0, 6), seed.choice([1, 3, 100])
        aborted = seed.choice([None, [(1, 0)], [(1, 2), (2, 0)]])
        why = f"origin {origin} turn {turn}: {data.hex()} from {start} by {n}, aborted {aborted}"
        seen = _read(native, data, start, aborted, n)
        assert seen == _read(_pure, data, start, aborted, n), why
        assert seen[1] in (None, ErrorCode.CORRUPT_MESSAGE, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT), why
        if turn % 3 == 0:
            rows = _read_arrow(native, data, start, aborted)
            assert rows == _read_arrow(_pure, data, start, aborted), why
            assert rows == _read_arrow(native, bytearray(data), start, aborted, in_place=True), why
            assert [row["offset"] for row in rows[0]] == [fields[2] for fields in seen[0]], why


def _outcome(records: Iterator[Any]) -> tuple[list[Any], str]:
    """What was read before the error, if there was one."""
    seen: list[Any] = []
    try:
        seen.extend(records)
    except KafkaError as error:
        return seen, str(error)
    return seen, ""


def test_lists_of_records_are_those_of_the_slow_way() -> None:
    origin = random.randrange(1 << 32)
    for turn in range(ROUNDS):
        seed = random.Random(f"{origin} {turn}")
        data = _damage(seed, *_answer(seed))
        try:
            header = read_header(data)
            payload = read_payload(data, header)
        except KafkaError:
            continue
        if header.magic == 2:
            slow = _outcome(decode_records(header, payload))
            assert _outcome(iter_records(data)) == slow, f"origin {origin} turn {turn}: {data.hex()}"


def test_noise_is_survived() -> None:
    origin = random.randrange(1 << 32)
    for turn in range(ROUNDS):
        seed = random.Random(f"{origin} {turn}")
        data = seed.randbytes(seed.randint(0, 200))
        assert _read(native, data, 0, None, 10) == _read(_pure, data, 0, None, 10), f"origin {origin} turn {turn}"
