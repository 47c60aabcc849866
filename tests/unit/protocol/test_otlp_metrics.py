"""MetricsData: what we write we read, and hostile bytes end in OtlpError, soon."""

import random
import struct
from collections.abc import Generator
from typing import Any

import pytest

from barnabas.protocol.otlp_metrics import (
    OtlpError,
    Point,
    PointKind,
    PushedMetrics,
    decode_metrics,
    encode_metrics,
)

POINTS = [
    Point("org.apache.kafka.producer.record.send.total", PointKind.INCREMENT, {"topic": "t"}, 7),
    Point("org.apache.kafka.producer.request.latency.avg", PointKind.GAUGE, {}, 2.5),
    Point("org.apache.kafka.producer.x.total", PointKind.COUNTER, {"a": "ä" * 100, "b": ""}, -3),
]


def run(work: Generator[None, None, PushedMetrics]) -> tuple[PushedMetrics, int]:
    turns = 0
    while True:
        try:
            next(work)
        except StopIteration as end:
            return end.value, turns
        turns += 1


def decoded(data: bytes, max_points: int = 1000) -> PushedMetrics:
    return run(decode_metrics(data, max_points))[0]


def sized(number: int, *parts: bytes) -> bytes:
    body, size = b"".join(parts), bytearray()
    length = len(body)
    while length > 0x7F:
        size.append(length & 0x7F | 0x80)
        length >>= 7
    return bytes([number << 3 | 2, *size, length]) + body


def test_what_is_written_is_read() -> None:
    data = encode_metrics({"group_id": "g"}, POINTS, 5, 6)
    assert decoded(data) == PushedMetrics({"group_id": "g"}, POINTS)


def test_points_beyond_the_limit_are_left_out() -> None:
    assert decoded(encode_metrics({}, POINTS, 5, 6), 2).points == POINTS[:2]


def test_fields_that_nobody_uses_are_skipped() -> None:
    value = bytes([4 << 3 | 1]) + struct.pack("<d", 1.5)
    unknown = (
        bytes([15 << 3, 1]) + bytes([14 << 3 | 5]) + b"1234" + sized(13, b"x") + bytes([12 << 3 | 1]) + b"12345678"
    )
    attribute = sized(7, sized(1, b"i"), sized(2, bytes([3 << 3]) + b"\xff" * 9 + b"\x01"))
    point = sized(1, unknown, value, attribute, sized(7, sized(1, b"t"), sized(2, b"\x10\x01")))
    metric = sized(2, unknown, sized(1, b"n"), sized(2, b"doc"), sized(5, unknown, point))
    histogram = sized(2, sized(1, b"h"), sized(9, b"anything"))
    data = unknown + sized(1, unknown, sized(1, unknown), sized(2, unknown, metric, histogram))
    assert decoded(data).points == [Point("n", PointKind.GAUGE, {"i": "-1", "t": "true"}, 1.5)]


def test_a_sum_that_is_not_monotonic_is_a_gauge() -> None:
    value = sized(1, bytes([6 << 3 | 1]) + struct.pack("<q", -9))
    data = sized(1, sized(2, sized(2, sized(1, b"n"), sized(7, value, bytes([2 << 3, 1])))))
    assert decoded(data).points == [Point("n", PointKind.GAUGE, {}, -9)]


@pytest.mark.parametrize(
    "data",
    [
        b"\x0a",
        b"\x0a\x05abc",
        b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
        b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\x00\x01",
        b"\x0b",
        b"\x09123",
        sized(1, sized(2, sized(2, b"\x78\x01" * 300))),
    ],
)
def test_bytes_that_are_no_metrics_are_refused(data: bytes) -> None:
    with pytest.raises(OtlpError):
        decoded(data)


def test_any_bytes_end_in_points_or_in_an_error() -> None:
    random_bytes = random.Random(714)
    good = encode_metrics({"group_id": "g"}, POINTS * 3, 5, 6)
    for _ in range(3000):
        data = bytearray(good)
        for _ in range(random_bytes.randrange(1, 6)):
            place = random_bytes.randrange(len(data))
            if random_bytes.random() < 0.3:
                del data[place : place + random_bytes.randrange(1, 9)]
            else:
                data[place] = random_bytes.randrange(256)
        try:
            found: Any = decoded(bytes(data))
        except OtlpError:
            continue
        assert len(found.points) <= 9


def test_long_input_yields_often() -> None:
    flat = sized(1, sized(2, b"\x78\x01" * 5000))
    of_sum = sized(1, sized(2, sized(2, sized(1, b"n"), sized(7, b"\x78\x01" * 5000))))
    many = encode_metrics({}, [Point("n", PointKind.GAUGE, {}, 1)] * 5000, 1, 2)
    assert run(decode_metrics(flat, 10))[1] > 5000
    assert run(decode_metrics(of_sum, 10))[1] > 5000 / 50
    assert run(decode_metrics(many, 10))[1] > 5000
