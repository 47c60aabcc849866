"""The search language: what it finds, where it says a mistake is, and that no pattern can make it slow."""

from datetime import UTC, datetime

import pytest

pa = pytest.importorskip("pyarrow", reason="the console needs pyarrow")

from barnabas.console.filters import FilterError, parse_filter, select_rows  # noqa: E402
from barnabas.records.arrow_columns import record_schema  # noqa: E402

RECORDS = [
    (b"7", b'{"price": 12, "tags": ["a", "b"], "to": {"city": "Ulm"}, "paid": true}', [("trace", b"a17")]),
    (b"8", b'{"price": 9.5, "tags": [], "paid": false}', None),
    (None, b"plain refund text", [("trace", b"b2"), ("refund", None)]),
    (b"9", None, None),
    (b"\xff\x00", b"\xfe\xfd", None),
    (b"10", b"[" * 100_000, None),
]


def rows() -> object:
    moment = datetime(2026, 1, 31, 12, tzinfo=UTC)
    listed = [
        {
            "key": key,
            "value": value,
            "headers": headers and [{"key": name, "value": each} for name, each in headers],
            "topic": "orders",
            "partition": 0,
            "offset": offset,
            "timestamp": moment.replace(minute=offset),
            "timestampType": 0,
        }
        for offset, (key, value, headers) in enumerate(RECORDS)
    ]
    return pa.RecordBatch.from_pylist(listed, schema=record_schema(pa))


@pytest.mark.parametrize(
    ("source", "offsets"),
    [
        ("", [0, 1, 2, 3, 4, 5]),
        ('key == "7"', [0]),
        ('key != "7"', [1, 2, 3, 4, 5]),
        ("key == null", [2]),
        ("value == null", [3]),
        ("value.price > 10", [0]),
        ("value.price <= 9.5", [1]),
        ('key == "7" and value.price > 10', [0]),
        ('key == "8" or value.price > 10', [0, 1]),
        ("not value.price > 10", [1, 2, 3, 4, 5]),
        ('value.to.city == "Ulm"', [0]),
        ('value.tags[1] == "b"', [0]),
        ("value.paid == false", [1]),
        ('"refund"', [2]),
        ("'Ulm'", [0]),
        ('header.trace matches "^a[0-9]+$"', [0]),
        ('headers["trace"] startswith "b"', [2]),
        ("offset >= 4", [4, 5]),
        ("partition == 1", []),
        ("size > 1000", [5]),
        ('timestamp < "2026-01-31T12:01:00Z"', [0]),
        ('value contains "refund"', [2]),
        ('value matches "re+f"', [2]),
        ('(key == "7" or key == "8") and not value.paid == true', [1]),
    ],
)
def test_finds(source: str, offsets: list[int]) -> None:
    assert select_rows(parse_filter(source), rows()).to_pylist() == offsets


@pytest.mark.parametrize(
    ("source", "position"),
    [
        ("colour == 1", 0),
        ("value.price >", 13),
        ("value.price > ten", 14),
        ('key == "7', 7),
        ('key == "7" value.x == 1', 11),
        ("key ; 1", 4),
        ('value matches "("', 14),
        ("offset contains 3", 16),
        ('offset == "x"', 10),
        ('timestamp > "yesterday"', 12),
        ("(" * 100, 40),
        ("header == 1", 0),
    ],
)
def test_mistakes_have_a_place(source: str, position: int) -> None:
    with pytest.raises(FilterError) as caught:
        parse_filter(source)
    assert caught.value.position == position


def test_a_filter_is_never_code() -> None:
    for source in ("__import__('os')", "value.__class__ == 1 or exec('x')", "eval('1')"):
        with pytest.raises(FilterError):
            parse_filter(source)
    # Names with underscores are only names of JSON members.
    assert select_rows(parse_filter("value.__class__ == 1"), rows()).to_pylist() == []


def test_no_pattern_backtracks() -> None:
    """A matcher that backtracks would need 2 ** 5000 steps, so it is enough that this ends."""
    one = pa.RecordBatch.from_pylist([{"value": b"a" * 5000 + b"!"}], schema=record_schema(pa))
    assert select_rows(parse_filter('value matches "^(a+)+$"'), one).to_pylist() == []


def test_too_long_is_refused() -> None:
    with pytest.raises(FilterError):
        parse_filter('"' + "x" * 3000 + '"')
