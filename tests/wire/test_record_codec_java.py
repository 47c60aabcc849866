"""The clients' record codec against the Java client: the same hashes, the same batches, and each reads the other's."""

import random
import subprocess
from pathlib import Path
from typing import Any

import pytest

from barnabas.records import CompressionType, _pure

JARS = Path(__file__).parents[2] / ".build" / "kafka"
SOURCE = Path(__file__).parent / "java" / "RecordCodec.java"

Record = tuple[int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]


def _twins() -> list[Any]:
    try:
        from barnabas.records import _native
    except ImportError:
        return [_pure]
    return [_pure, _native]


def _ask_java(questions: list[str]) -> list[str]:
    response = subprocess.run(
        ["java", "-cp", f"{JARS}/*", str(SOURCE)],
        input="\n".join(questions),
        capture_output=True,
        text=True,
        check=False,
    )
    assert response.returncode == 0, response.stderr
    responses = response.stdout.split("\n")[:-1]
    assert len(responses) == len(questions)
    return responses


def _hex(data: bytes | None) -> str:
    return "-" if data is None else data.hex()


def _text(record: Record) -> str:
    timestamp, key, value, headers = record
    pairs = ";".join(f"{name.encode().hex()}:{_hex(data)}" for name, data in headers)
    return f"{timestamp},{_hex(key)},{_hex(value)},{pairs}"


def _records(seed: random.Random) -> list[Record]:
    def content() -> bytes | None:
        return seed.choice([None, b"", seed.randbytes(seed.randrange(70)), bytes(seed.randrange(20_000))])

    return [
        (
            seed.choice([0, 1_700_000_000_000 + seed.randrange(10_000), seed.randrange(1 << 62)]),
            content(),
            content(),
            tuple((seed.choice(["", "trace", "ключ", "h" * 80]), content()) for _ in range(seed.choice([0, 0, 1, 3]))),
        )
        for _ in range(seed.choice([1, 2, 10, 90]))
    ]


@pytest.mark.java
def test_murmur2_is_javas() -> None:
    seed = random.Random("murmur2")
    keys = [seed.randbytes(length) for length in range(64) for _ in range(50)]
    keys += [seed.randbytes(seed.randrange(2000)) for _ in range(1000)]
    responses = _ask_java([f"murmur2 {key.hex()}" for key in keys])
    for twin in _twins():
        assert [twin.murmur2(key) for key in keys] == [int(response) for response in responses]


@pytest.mark.java
def test_batches_are_javas() -> None:
    questions, expected = [], []
    for turn in range(60):
        seed = random.Random(f"batch {turn}")
        codec = seed.choice(list(CompressionType))
        producer = seed.choice([(-1, -1, -1, False), (seed.randrange(1 << 62), 5, 2**31 - 5, True), (9, 0, 0, False)])
        records = _records(seed)
        words = " ".join(str(field).lower() for field in (codec.name, *producer))
        questions.append(f"build {words} " + " ".join(map(_text, records)))
        for twin in _twins():
            buffer = twin.BatchBuffer(100)
            for record in records:
                buffer.append(*record)
            batch = buffer.finish(
                codec=codec,
                producer_id=producer[0],
                producer_epoch=producer[1],
                base_sequence=producer[2],
                transactional=producer[3],
            )
            questions.append(f"read {batch.hex()}")
        expected.append((codec, records, batch.hex()))
    responses = iter(_ask_java(questions))
    for codec, records, batch_hex in expected:
        javas = next(responses)
        if codec is CompressionType.NONE:
            assert javas == batch_hex
        for twin in _twins():
            assert next(responses) == " ".join(map(_text, records))
            read = twin.RecordReader(bytes.fromhex(javas), "t", 0).take(1000)
            assert [(record.timestamp, record.key, record.value, record.headers) for record in read] == records
