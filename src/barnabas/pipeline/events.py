"""Splits an app event (WAREHOUSE: generations A and B) into rows of the five DWD log topics.

`EventSplitter.split` is called once per record of `ods_base_log`, in the order of its partition. Either all
rows of a record or DirtyRecordError. Columns without a value are null, so that all rows of a topic have the same
columns. A row is joined from pieces of JSON: what the rows of an event share (common and page columns) is encoded once
per event and not once per row, which is most of the work.
"""

from collections.abc import Callable
from typing import Any, Final

import orjson

from barnabas.pipeline.ods_records import DirtyRecordError, OutputRow, id_text, read_object

START: Final = "dwd_start_log"
PAGE: Final = "dwd_page_log"
DISPLAY: Final = "dwd_display_log"
ACTION: Final = "dwd_action_log"
ERROR: Final = "dwd_error_log"
LOG_TOPICS: Final = (START, PAGE, DISPLAY, ACTION, ERROR)

MOST_ROW_BYTES: Final = 64 * 1024 * 1024
"""Per event: every display and action repeats the common and page columns, and a record can hold 300,000 of them."""

RepairIsNew = Callable[[str, int, Any], Any]
"""(mid, ts, is_new as sent) -> the corrected is_new; see `visits`."""

_COMMON: Final = ("mid", "uid", "ar", "ch", "is_new", "md", "os", "vc", "ba")
_dumps = orjson.dumps


class EventSplitter:
    def __init__(self, repair_is_new: RepairIsNew) -> None:
        self._repair_is_new = repair_is_new

    def split(self, value: bytes | None) -> list[OutputRow]:
        event = read_object(value)
        get = event.get
        start, page, fault = get("start"), get("page"), get("err")
        if start is None and page is None and fault is None:
            raise DirtyRecordError("an event without start, page or err")
        if start is not None and page is not None:
            raise DirtyRecordError("an event with both start and page")
        common = _object(get("common"), "common")
        mid = common.get("mid")
        key = None if mid is None else id_text(mid).encode()
        rows: list[OutputRow] = [] if fault is None else [OutputRow(ERROR, key, value)]
        # Everything is checked before the state of devices changes: a dirty record must have no effect.
        if start is not None:
            columns = _start_columns(_object(start, "start"))
            shared = self._common_columns(common, mid, get("ts"))
            rows.append(OutputRow(START, key, _dumps(shared | columns | {"ts": get("ts")})))
        elif page is not None:
            columns = _page_columns(_object(page, "page"))
            displays, actions = _list(get("displays"), "displays"), _list(get("actions"), "actions")
            _check_size(len(value or b""), common, columns, len(displays) + len(actions))
            shared = self._common_columns(common, mid, get("ts"))
            _add_page_rows(rows, key, _dumps(shared | columns | {"ts": get("ts")}), displays, actions)
        return rows

    def _common_columns(self, common: dict[str, Any], mid: Any, ts: Any) -> dict[str, Any]:
        get = common.get
        is_new = get("is_new")
        if type(mid) is str and type(ts) is int:
            is_new = self._repair_is_new(mid, ts, is_new)
        return {
            "mid": mid,
            "user_id": get("uid"),
            "province_id": get("ar"),
            "channel": get("ch"),
            "is_new": is_new,
            "model": get("md"),
            "operate_system": get("os"),
            "version_code": get("vc"),
            "brand": get("ba"),
        }


def _add_page_rows(
    rows: list[OutputRow],
    key: bytes | None,
    page: bytes,
    displays: list[dict[str, Any]],
    actions: list[dict[str, Any]],
) -> None:
    rows.append(OutputRow(PAGE, key, page))
    head = page[:-1]
    for display in displays:
        rows.append(OutputRow(DISPLAY, key, b"%b,%b" % (head, _dumps(_display_columns(display))[1:])))
    for action in actions:
        rows.append(OutputRow(ACTION, key, b"%b,%b" % (head, _dumps(_action_columns(action))[1:])))


def _page_columns(page: dict[str, Any]) -> dict[str, Any]:
    get = page.get
    return {
        "page_id": get("page_id"),
        "last_page_id": get("last_page_id"),
        "page_item": get("item"),
        "page_item_type": get("item_type"),
        "during_time": get("during_time"),
        "source_type": _either(page, "source_type", "sourceType"),
    }


def _start_columns(start: dict[str, Any]) -> dict[str, Any]:
    get = start.get
    return {
        "entry": get("entry"),
        "open_ad_id": get("open_ad_id"),
        "loading_time_ms": _either(start, "loading_time", "loading_time_ms"),
        "open_ad_ms": get("open_ad_ms"),
        "open_ad_skip_ms": get("open_ad_skip_ms"),
    }


def _display_columns(display: dict[str, Any]) -> dict[str, Any]:
    get = display.get
    return {
        "display_type": _either(display, "display_type", "displayType"),
        "display_item": get("item"),
        "display_item_type": get("item_type"),
        "display_order": get("order"),
        "display_pos_id": get("pos_id"),
    }


def _action_columns(action: dict[str, Any]) -> dict[str, Any]:
    get = action.get
    return {
        "action_id": get("action_id"),
        "action_item": get("item"),
        "action_item_type": get("item_type"),
        "action_ts": get("ts"),
    }


def _check_size(size: int, common: dict[str, Any], page: dict[str, Any], count: int) -> None:
    if size * count <= MOST_ROW_BYTES:
        return
    repeated = len(_dumps([common.get(name) for name in _COMMON])) + len(_dumps(page))
    if repeated * count > MOST_ROW_BYTES:
        raise DirtyRecordError(f"an event whose rows have more than {MOST_ROW_BYTES} bytes")


def _either(tree: dict[str, Any], name: str, other: str) -> Any:
    """A field that has two names."""
    value = tree.get(name)
    return tree.get(other) if value is None else value


def _object(value: Any, name: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise DirtyRecordError(f"{name} is not an object")
    return value


def _list(value: Any, name: str) -> list[dict[str, Any]]:
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(element, dict) for element in value):
        raise DirtyRecordError(f"{name} is not a list of objects")
    return value
