"""Splitting app events, case by case; whole streams are compared with a reference elsewhere."""

import json
from typing import Any

import pytest

from barnabas.pipeline.events import EventSplitter
from barnabas.pipeline.ods_records import DirtyRecordError
from barnabas.pipeline.visits import Visits

HOUR = 3_600_000
DAY = 24 * HOUR
TS = 1_683_276_840_000
COMMON = {"ar": "440000", "ba": "iPhone", "ch": "Appstore", "is_new": "1", "md": "iPhone Xs Max", "mid": "mid_1"}
COMMON_COLUMNS = {
    "mid": "mid_1",
    "user_id": None,
    "province_id": "440000",
    "channel": "Appstore",
    "is_new": "1",
    "model": "iPhone Xs Max",
    "operate_system": None,
    "version_code": None,
    "brand": "iPhone",
}
PAGE_COLUMNS = {
    "page_id": "home",
    "last_page_id": None,
    "page_item": "3",
    "page_item_type": "sku_id",
    "during_time": 1200,
    "source_type": "query",
}
PAGE = {"page_id": "home", "item": "3", "item_type": "sku_id", "during_time": 1200, "sourceType": "query"}


def split(event: object, splitter: EventSplitter | None = None) -> list[tuple[str, bytes | None, Any]]:
    value = event if isinstance(event, bytes) else json.dumps(event).encode()
    splitter = splitter or EventSplitter(Visits({}, 8 * HOUR).repair)
    return [(row.topic, row.key, json.loads(row.value or b"")) for row in splitter.split(value)]


def test_start() -> None:
    start = {"entry": "icon", "loading_time_ms": 7, "open_ad_id": 1, "open_ad_ms": 5, "open_ad_skip_ms": 0}
    columns = {"entry": "icon", "open_ad_id": 1, "loading_time_ms": 7, "open_ad_ms": 5, "open_ad_skip_ms": 0, "ts": TS}
    expected = [("dwd_start_log", b"mid_1", COMMON_COLUMNS | columns)]
    assert split({"common": COMMON, "start": start, "ts": TS}) == expected
    start["loading_time"] = start.pop("loading_time_ms")
    assert split({"common": COMMON, "start": start, "ts": TS}) == expected


def test_page_with_displays_and_actions() -> None:
    display = {"displayType": "query", "item": "1", "item_type": "sku_id", "order": 2, "pos_id": 3}
    action = {"action_id": "favor_canel", "ts": TS + 1}
    event = {"common": COMMON, "page": PAGE, "displays": [display], "actions": [action], "ts": TS}
    shared = COMMON_COLUMNS | PAGE_COLUMNS | {"ts": TS}
    shown = {"display_type": "query", "display_item": "1", "display_item_type": "sku_id"}
    shown |= {"display_order": 2, "display_pos_id": 3}
    done = {"action_id": "favor_canel", "action_item": None, "action_item_type": None, "action_ts": TS + 1}
    assert split(event) == [
        ("dwd_page_log", b"mid_1", shared),
        ("dwd_display_log", b"mid_1", shared | shown),
        ("dwd_action_log", b"mid_1", shared | done),
    ]


def test_error_goes_whole_and_is_split_as_well() -> None:
    event = {"common": COMMON, "err": {"error_code": 1001, "msg": "a\nb"}, "page": PAGE, "ts": TS}
    rows = split(event)
    assert [topic for topic, _, _ in rows] == ["dwd_error_log", "dwd_page_log"]
    assert rows[0] == ("dwd_error_log", b"mid_1", event)
    assert [row[0] for row in split({"err": {}, "ts": TS})] == ["dwd_error_log"]


def test_generation_b_and_missing_fields() -> None:
    display = {"item": "1", "item_type": "sku_id", "pos_id": 3, "pos_seq": 4}
    rows = split({"common": {"mid": "m", "sid": "s", "ar": "7"}, "page": {}, "displays": [display]})
    assert [(row[0], row[1]) for row in rows] == [("dwd_page_log", b"m"), ("dwd_display_log", b"m")]
    assert rows[1][2]["display_order"] is None and rows[1][2]["display_pos_id"] == 3 and rows[1][2]["ts"] is None
    assert split({"start": {}})[0][1] is None


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"", "not JSON"),
        (b'{"common":', "not JSON"),
        (b"\xff\xfe{}", "not JSON"),
        (b"[]", "not an object"),
        (b'{"common":{},"ts":1}', "without start, page or err"),
        (b'{"start":{},"page":{}}', "both"),
        (b'{"common":1,"page":{}}', "common is not an object"),
        (b'{"page":"home"}', "page is not an object"),
        (b'{"page":{},"displays":{}}', "displays is not a list"),
        (b'{"page":{},"actions":[1]}', "actions is not a list"),
    ],
)
def test_dirty(value: bytes, reason: str) -> None:
    with pytest.raises(DirtyRecordError, match=reason):
        split(value)


def test_dirty_records_leave_no_trace() -> None:
    visits = Visits({}, 8 * HOUR)
    with pytest.raises(DirtyRecordError):
        split({"common": COMMON, "page": PAGE, "displays": 1, "ts": TS}, EventSplitter(visits.repair))
    assert not visits.changed
    with pytest.raises(DirtyRecordError):
        EventSplitter(visits.repair).split(None)


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        ([(0, "1"), (HOUR, "1"), (DAY, "1"), (DAY, "0")], ["1", "1", "0", "0"]),
        ([(0, "0"), (HOUR, "1")], ["0", "0"]),
        ([(DAY, "1"), (0, "1"), (DAY, "1")], ["1", "1", "0"]),
        ([(0, None), (DAY, None)], [None, "0"]),
    ],
)
def test_is_new(history: list[tuple[int, str | None]], expected: list[str | None]) -> None:
    midnight = 1_683_216_000_000  # 2023-05-05 00:00 in UTC+8
    visits = Visits({}, 8 * HOUR)
    assert [visits.repair("m", midnight + after, said) for after, said in history] == expected


def test_days_are_those_of_the_time_zone() -> None:
    midnight = 1_683_216_000_000
    for utc_offset, expected in ((8 * HOUR, "0"), (0, "1")):
        visits = Visits({}, utc_offset)
        assert visits.repair("m", midnight - 1, "1") == "1"
        assert visits.repair("m", midnight, "1") == expected
