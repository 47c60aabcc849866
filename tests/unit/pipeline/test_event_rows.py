"""Rows by topic: the compiled twin gives what the rules give, byte for byte, whatever an event looks like."""

from __future__ import annotations

import itertools
import json
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.pipeline import _event_rows_pure
from barnabas.pipeline.generator import GeneratorOptions, generate
from barnabas.pipeline.ods_records import DirtyRecordError
from barnabas.pipeline.visits import Visits

try:
    from barnabas.pipeline import _event_rows as _native
except ImportError:
    _native = None  # type: ignore[assignment]

TWINS = [pytest.param(_event_rows_pure, id="pure")]
if _native is not None:
    TWINS.append(pytest.param(_native, id="compiled"))
needs_both = pytest.mark.skipif(_native is None, reason="the compiled twin is not built")
TS = 1_683_276_840_000
PAGE = {"common": {"mid": "m", "is_new": "1"}, "page": {"page_id": "home"}, "displays": [{}, {"item": "3"}], "ts": TS}
NAMES = [
    *("common", "page", "start", "displays", "actions", "err", "ts", "mid", "uid", "ar", "is_new", "page_id", "item"),
    *("item_type", "source_type", "sourceType", "entry", "loading_time", "loading_time_ms", "order", "pos_id"),
    *("display_type", "displayType", "action_id", "other"),
]
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(1 << 70), 1 << 70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=5),
    st.sampled_from(["1", "0", TS, TS - 86_400_000, 'a"b', "c\\d", "\u007f", "é", ""]),
)


def named(values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(st.sampled_from(NAMES), values, max_size=6)


OBJECTS = named(LEAVES | st.lists(LEAVES, max_size=2) | named(LEAVES))
EVENTS = st.fixed_dictionaries(
    {},
    optional={
        "common": OBJECTS | named(LEAVES).map(lambda each: {**each, "mid": "m"}),
        "page": OBJECTS | LEAVES,
        "start": OBJECTS | LEAVES,
        "displays": st.lists(OBJECTS, max_size=3) | LEAVES,
        "actions": st.lists(OBJECTS, max_size=3) | LEAVES,
        "err": OBJECTS | LEAVES,
        "ts": LEAVES | st.just(TS),
        "other": OBJECTS,
    },
)


def outcome(module: Any, values: list[bytes | None]) -> tuple[list[str | None], list[Any], dict[str, int], int]:
    """What became of each event, the rows, the state of the devices, and the bytes counted."""
    visits = Visits({"old": 0}, 8 * 3_600_000)
    rows = module.EventRows(visits.repair)
    reasons: list[str | None] = []
    for value in values:
        before = rows.row_count
        try:
            rows.add(value)
            reasons.append(None)
        except DirtyRecordError as error:
            assert rows.row_count == before
            reasons.append(str(error))
    size = rows.size_bytes
    taken = [(topic, keys.to_pylist(), made.to_pylist()) for topic, keys, made in rows.take()]
    for _, keys, made in taken:
        assert len(keys) == len(made) > 0
    assert sum(len(each) for _, _, made in taken for each in made) == size
    assert (rows.row_count, rows.size_bytes, rows.take()) == (0, 0, [])
    return reasons, taken, visits.changed, size


@pytest.mark.parametrize("module", TWINS)
def test_rows_by_topic(module: Any) -> None:
    nobody = {"page": {}, "displays": [{"item": "9"}]}
    values: list[bytes | None] = [json.dumps(each).encode() for each in (PAGE, nobody, PAGE)]
    reasons, taken, _, _ = outcome(module, [*values, b"{}", None])
    assert reasons[:3] == [None] * 3 and None not in reasons[3:]
    assert [(topic, keys) for topic, keys, _ in taken] == [
        ("dwd_page_log", [b"m", None, b"m"]),
        ("dwd_display_log", [b"m", b"m", None, b"m", b"m"]),
    ]
    items = [json.loads(row)["display_item"] for row in taken[1][2]]
    assert items == [None, "3", "9", None, "3"]


@pytest.mark.parametrize("module", TWINS)
def test_rows_can_be_taken_again_and_again(module: Any) -> None:
    rows = module.EventRows(Visits({}, 0).repair)
    for _ in range(3):
        for _ in range(100):
            rows.add(json.dumps(PAGE).encode())
        assert rows.row_count == 300
        taken = rows.take()
        for _, keys, values in taken:
            keys.validate(full=True)
            values.validate(full=True)
        assert [len(values) for _, _, values in taken] == [100, 200]


@needs_both
def test_generated_events() -> None:
    options = GeneratorOptions(seed=5, change_share=0.0, dirty=0.05, duplicates=0.02, devices=300, step_ms=100_000)
    values = [each.value for each in itertools.islice(generate(options), 3000)]
    assert outcome(_native, values) == outcome(_event_rows_pure, values)


@needs_both
@settings(max_examples=120, deadline=None)
@given(st.lists(EVENTS, min_size=1, max_size=3), st.booleans(), st.sampled_from([None, 1]))
def test_any_event(events: list[Any], ascii_only: bool, indent: int | None) -> None:
    values: list[bytes | None] = [
        json.dumps(each, ensure_ascii=ascii_only, indent=indent).encode("utf-8", "surrogatepass") for each in events
    ]
    assert outcome(_native, values) == outcome(_event_rows_pure, values)


@needs_both
@pytest.mark.parametrize("seed", range(4))
def test_spoilt_bytes(seed: int) -> None:
    """Bytes changed, doubled and left out at random: neither twin takes what the other refuses."""
    random = Random(seed)
    options = GeneratorOptions(seed=seed, change_share=0.0, devices=50)
    letters = b'{}[]",:\\0123456789.eE-+ntfu \n\x00\x1f\x7f\x80\xc3\xff'
    values: list[bytes | None] = []
    for record in itertools.islice((each for each in generate(options) if each.topic == "ods_base_log"), 800):
        spoilt = bytearray(record.value or b"")
        for _ in range(random.choice((1, 1, 2, 5))):
            at = random.randrange(len(spoilt))
            piece = random.choice((b"", bytes([random.choice(letters)]), bytes(spoilt[at : at + random.randrange(40)])))
            spoilt[at : at + random.choice((0, 1, 1, 8))] = piece
        values.append(bytes(spoilt))
    assert outcome(_native, values) == outcome(_event_rows_pure, values)


@needs_both
@pytest.mark.parametrize(
    "text",
    [
        '{"common":{"mid":"a","mid":"b"},"page":{}}',
        '{"common":{"mid":"a"},"page":{},"page":{"page_id":1}}',
        '{"common":{"mid":"a"},"page":{"page_id":-0}}',
        '{"common":{"mid":"a"},"page":{"page_id":01}}',
        '{"common":{"mid":"a"},"page":{"page_id":1.0}}',
        '{"common":{"mid":"a"},"page":{"page_id":1e2}}',
        '{"common":{"mid":"a"},"page":{"page_id":123456789012345678901234567890}}',
        '{"common":{"m\\u0069d":"a"},"page":{"page_id":"\\u0041"}}',
        '{"common":{"mid":"a\\"b"},"page":{}}',
        '{"common":{"mid":7},"page":{}}',
        '{"common":null,"page":{},"ts":1}',
        '{"common":{"mid":"a","is_new":true},"start":{},"ts":true}',
        '{"common":{"mid":"old","is_new":"1"},"start":{},"ts":1683276840000}',
        '{"common":{"mid":"old","is_new":null},"start":{"loading_time":null,"loading_time_ms":3},"ts":1683276840000}',
        '{"common":{"mid":"a"},"page":{},"displays":null,"actions":[]}',
        '{"common":{"mid":"a"},"page":{},"displays":[{"order":{"a":[1,2,{}]},"pos_id":[]}]}',
        '{"common":{"mid":"a"},"page":{},"err":null}',
        '{"common":{"mid":"a"},"err":{"msg":"a\\nb"}}',
        '{"common":{"mid":"a"},"page":{},"err":{"msg":"a\\n\\u00e9"},"ts":"soon"}',
        '{"common":{"mid":"a"},"page":{},"err":"x\\q"}',
        ' {"common" : { "mid" : "\u00e9" } , "page" : { } } \n',
        '{"common":{"mid":"a"},"page":{}} x',
        '{"common":{"mid":"a"},"page":{},}',
        '{"other":' + "[" * 300 + "]" * 300 + ',"common":{"mid":"a"},"page":{}}',
    ],
)
def test_what_is_hard_to_tell(text: str) -> None:
    for value in (text.encode(), text.encode()[:-1]):
        assert outcome(_native, [value]) == outcome(_event_rows_pure, [value])


@pytest.mark.parametrize("module", TWINS)
def test_an_event_whose_rows_would_fill_the_memory_is_dirty(module: Any) -> None:
    """Each of its many displays would repeat a large column of the page. It leaves nothing behind, not even a visit."""
    visits = Visits({}, 0)
    rows = module.EventRows(visits.repair)
    event = {"common": {"mid": "m"}, "page": {"item": "x" * 100_000}, "displays": [{}] * 700, "ts": TS}
    with pytest.raises(DirtyRecordError, match="rows have more than 67108864 bytes"):
        rows.add(json.dumps(event).encode())
    assert rows.take() == [] and visits.changed == {}
    many = {"common": {"mid": "m"}, "page": {"item": "x"}, "displays": [{}] * 20_000, "other": "x" * 100_000, "ts": TS}
    rows.add(json.dumps(many).encode())
    assert [len(values) for _, _, values in rows.take()] == [1, 20_000]
