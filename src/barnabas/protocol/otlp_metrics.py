"""MetricsData of OpenTelemetry in protobuf's wire format, as far as Kafka's clients use it (KIP-714).

    MetricsData      1 ResourceMetrics*
    ResourceMetrics  1 Resource (1 KeyValue*)   2 ScopeMetrics* (2 Metric*)
    Metric           1 name   5 Gauge (1 point*)   7 Sum (1 point*, 2 temporality, 3 monotonic)
    NumberDataPoint  2 start, 3 time (fixed64, ns)   4 double   6 sfixed64   7 KeyValue*
    KeyValue         1 key   2 AnyValue (1 string, 2 bool, 3 int64, 4 double)

Other fields are skipped, and so are histograms and summaries, which no client of Kafka pushes. The bytes come from
strangers: every length is checked, every message that is no list is bounded, and `decode_metrics` yields often.
"""

import struct
from collections.abc import Generator, Iterable, Iterator, Mapping
from enum import Enum
from typing import NamedTuple

VARINT, FIXED64, LENGTH, FIXED32 = 0, 1, 2, 5
DELTA, CUMULATIVE = 1, 2
SMALL_FIELDS = 200
"""In a message that is no list, as many fields at most."""
FIELDS_AT_ONCE = 50
_DOUBLE, _SIGNED = struct.Struct("<d"), struct.Struct("<q")
_TIMES = struct.Struct("<BQBQ")


class OtlpError(ValueError):
    """The bytes are no MetricsData."""


class PointKind(Enum):
    GAUGE = "gauge"
    COUNTER = "counter"
    """A total that only grows."""
    INCREMENT = "increment"
    """What a total has grown by since the last push."""


class Point(NamedTuple):
    name: str
    kind: PointKind
    attributes: Mapping[str, str]
    value: float


class PushedMetrics(NamedTuple):
    resource: dict[str, str]
    """What the client says of itself: group id, rack and so on."""
    points: list[Point]


Field = tuple[int, int, int, int]
"""Number, wire type, and the value, or where the bytes begin and end."""


def decode_metrics(data: bytes, max_points: int) -> Generator[None, None, PushedMetrics]:
    """Points beyond `max_points` are left out. Raises OtlpError."""
    found = PushedMetrics({}, [])
    for number, wire, start, end in _fields(data, 0, len(data)):
        yield
        if (number, wire) == (1, LENGTH):
            yield from _resource_metrics(data, start, end, found, max_points)
    return found


def _resource_metrics(
    data: bytes, start: int, end: int, found: PushedMetrics, max_points: int
) -> Generator[None, None, None]:
    for number, wire, inner, inner_end in _fields(data, start, end):
        yield
        if (number, wire) == (1, LENGTH):
            found.resource.update(_attributes(data, inner, inner_end, 1))
        elif (number, wire) == (2, LENGTH):
            for scope_number, scope_wire, metric, metric_end in _fields(data, inner, inner_end):
                yield
                if (scope_number, scope_wire) == (2, LENGTH):
                    yield from _metric(data, metric, metric_end, found.points, max_points)


def _metric(data: bytes, start: int, end: int, points: list[Point], max_points: int) -> Generator[None, None, None]:
    name, gauge, total = "", None, None
    for number, wire, inner, inner_end in _fields(data, start, end, SMALL_FIELDS):
        if wire == LENGTH:
            if number == 1:
                name = _text(data, inner, inner_end)
            elif number == 5:
                gauge = inner, inner_end
            elif number == 7:
                total = inner, inner_end
    if total is not None:
        kind = yield from _kind_of_sum(data, *total)
        yield from _points(data, *total, name, kind, points, max_points)
    elif gauge is not None:
        yield from _points(data, *gauge, name, PointKind.GAUGE, points, max_points)


def _kind_of_sum(data: bytes, start: int, end: int) -> Generator[None, None, PointKind]:
    temporality = monotonic = 0
    for count, (number, wire, value, _) in enumerate(_fields(data, start, end)):
        if wire == VARINT and number == 2:
            temporality = value
        elif wire == VARINT and number == 3:
            monotonic = value
        if not count % FIELDS_AT_ONCE:
            yield
    if not monotonic:
        return PointKind.GAUGE
    return PointKind.INCREMENT if temporality == DELTA else PointKind.COUNTER


def _points(
    data: bytes, start: int, end: int, name: str, kind: PointKind, points: list[Point], max_points: int
) -> Generator[None, None, None]:
    for number, wire, inner, inner_end in _fields(data, start, end):
        yield
        if (number, wire) == (1, LENGTH) and len(points) < max_points:
            value, attributes = _point(data, inner, inner_end)
            if value is not None:
                points.append(Point(name, kind, attributes, value))


def _point(data: bytes, start: int, end: int) -> tuple[float | None, dict[str, str]]:
    value: float | None = None
    for number, wire, inner, _ in _fields(data, start, end, SMALL_FIELDS):
        if (number, wire) == (4, FIXED64):
            value = _DOUBLE.unpack_from(data, inner)[0]
        elif (number, wire) == (6, FIXED64):
            value = _SIGNED.unpack_from(data, inner)[0]
    return value, _attributes(data, start, end, 7)


def _attributes(data: bytes, start: int, end: int, field: int) -> dict[str, str]:
    found: dict[str, str] = {}
    for number, wire, inner, inner_end in _fields(data, start, end, SMALL_FIELDS):
        if (number, wire) != (field, LENGTH):
            continue
        key, value = "", ""
        for part, part_wire, part_start, part_end in _fields(data, inner, inner_end, SMALL_FIELDS):
            if part_wire == LENGTH and part == 1:
                key = _text(data, part_start, part_end)
            elif part_wire == LENGTH and part == 2:
                value = _any_value(data, part_start, part_end)
        found[key] = value
    return found


def _any_value(data: bytes, start: int, end: int) -> str:
    for number, wire, inner, inner_end in _fields(data, start, end, SMALL_FIELDS):
        match number, wire:
            case (1, 2):
                return _text(data, inner, inner_end)
            case (2, 0):
                return "true" if inner else "false"
            case (3, 0):
                return str(inner - (1 << 64) if inner >> 63 else inner)
            case (4, 1):
                return repr(_DOUBLE.unpack_from(data, inner)[0])
    return ""


def _text(data: bytes, start: int, end: int) -> str:
    return data[start:end].decode(errors="replace")


def _fields(data: bytes, position: int, end: int, limit: int | None = None) -> Iterator[Field]:
    count = 0
    while position < end:
        tag, position = _varint(data, position, end)
        number, wire = tag >> 3, tag & 7
        if not number:
            raise OtlpError("a field has the number 0")
        count += 1
        if limit is not None and count > limit:
            raise OtlpError(f"more than {limit} fields in a small message")
        if wire == VARINT:
            value, position = _varint(data, position, end)
            yield number, wire, value, position
            continue
        if wire == LENGTH:
            size, position = _varint(data, position, end)
        elif wire in (FIXED64, FIXED32):
            size = 8 if wire == FIXED64 else 4
        else:
            raise OtlpError(f"there is no wire type {wire}")
        if size > end - position:
            raise OtlpError("a field reaches beyond its message")
        yield number, wire, position, position + size
        position += size


def _varint(data: bytes, position: int, end: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if position >= end:
            break
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, position
    raise OtlpError("a number is cut off, or longer than 64 bits")


def encode_metrics(resource: Mapping[str, str], points: Iterable[Point], since_ns: int, now_ns: int) -> bytes:
    """What a client pushes, in the order given."""
    times = _TIMES.pack(2 << 3 | FIXED64, since_ns, 3 << 3 | FIXED64, now_ns)
    metrics = b"".join(_sized(2, _encoded_metric(point, times)) for point in points)
    head = _sized(1, b"".join(_encoded_attributes(resource, 1)))
    return _sized(1, head + _sized(2, metrics))


def _encoded_metric(point: Point, times: bytes) -> bytes:
    if isinstance(point.value, int):
        number = bytes([6 << 3 | FIXED64]) + _SIGNED.pack(point.value)
    else:
        number = bytes([4 << 3 | FIXED64]) + _DOUBLE.pack(point.value)
    body = _sized(1, times + number + b"".join(_encoded_attributes(point.attributes, 7)))
    name = _sized(1, point.name.encode())
    if point.kind is PointKind.GAUGE:
        return name + _sized(5, body)
    temporality = DELTA if point.kind is PointKind.INCREMENT else CUMULATIVE
    return name + _sized(7, body + bytes([2 << 3, temporality, 3 << 3, 1]))


def _encoded_attributes(attributes: Mapping[str, str], field: int) -> Iterator[bytes]:
    for key, value in attributes.items():
        yield _sized(field, _sized(1, key.encode()) + _sized(2, _sized(1, value.encode(errors="replace"))))


def _sized(number: int, body: bytes) -> bytes:
    size, out = len(body), bytearray([number << 3 | LENGTH])
    while size > 0x7F:
        out.append(size & 0x7F | 0x80)
        size >>= 7
    out.append(size)
    return bytes(out) + body
