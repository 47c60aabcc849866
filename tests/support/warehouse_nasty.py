"""Records that careless, broken and merely unusual producers send, written by hand for both ODS topics."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

TS = 1_683_276_840_000
DAY = 86_400_000
COMMON = {"ar": "440000", "ba": "iPhone", "ch": "Appstore", "is_new": "1", "md": "iPhone Xs Max", "os": "iOS 13.2.3"}
COMMON |= {"uid": "603", "vc": "v2.1.132"}
START = {"entry": "notice", "loading_time": 1087, "open_ad_id": 1, "open_ad_ms": 9832, "open_ad_skip_ms": 0}
PAGE = {"page_id": "home", "item": "3", "item_type": "sku_id", "during_time": 1200, "source_type": "query"}
ERR = {"error_code": 1001, "msg": 'Exception in thread main\\n\tat a.b.C.main(C.java:3)\r\n\\\\n \u2028 "quoted"'}
WRONG: list[Any] = ["", "text", 0, 1, -1.5, True, False, [], [1], {}, {"a": None}, [None], [[]], None]
HUGE = ["18446744073709551615", "18446744073709551616", "-9223372036854775809", "1" * 30, "1e308", "1e400", "-1e400"]
HUGE += [
    "1" * 500,
    "4.9e-324",
    "1e-400",
    "0.1000000000000000055511151231257827",
    "-0",
    "-0.0",
    "1E2",
    "NaN",
    "Infinity",
]
WORDS = ["", "图书", "\U0001f600", "a\\nb", "a\nb\tc\r", '"', "\u0000", "\x7f\x80", "e\u0301", "\u2028", "\\u0041", "-"]
NOT_JSON = [b"", b" ", b"\x00", b"{", b"}", b'{"a"', b"\xff\xfe{}", b"\xef\xbb\xbf{}", "{}".encode("utf-16"), b"{}{}"]
NOT_JSON += [b"nul", b"'a'", b'{"a":01}', b'{"start":{"entry":"\\ud800"}}', b'{"start":{"entry":"a\nb"}}', b"[]", b"42"]
NOT_JSON += [b'"text"', b"null", b"true", b"{}", b'{"start":{},}', b"{start:{}}", b"[" * 2000]


class Nasty(NamedTuple):
    topic: str
    key: bytes | None
    value: bytes | None


def nasty_records() -> list[Nasty]:
    """All of them; each device has the key of its own, so that its records stay in order."""
    events = [*_parts(), *_spellings(), *_types(), *_texts(), *_days(), *_depths("start")]
    found = [Nasty("ods_base_log", _key(value, number % 5), value) for number, value in enumerate(events)]
    found += [Nasty("ods_base_log", b"broken", value) for value in [None, *NOT_JSON]]
    changes = [*_maxwell(), *_canal(), *_debezium(), *_depths("data")]
    found += [Nasty("ods_base_db", b"%d" % (number % 7), value) for number, value in enumerate(changes)]
    return found + [Nasty("ods_base_db", None, value) for value in [None, *NOT_JSON]]


def _key(value: bytes, number: int) -> bytes | None:
    """The device's, if it has one."""
    try:
        mid = json.loads(value)["common"]["mid"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None if number == 0 else b"key %d" % number
    return mid.encode() if isinstance(mid, str) else b"odd"


def _text(tree: Any) -> bytes:
    return json.dumps(tree, ensure_ascii=False).encode("utf-8", "surrogatepass")


def _event(mid: Any = "mid_1", ts: Any = TS, **parts: Any) -> bytes:
    return _text({"common": {**COMMON, "mid": mid}, **parts, "ts": ts})


def _parts() -> list[bytes]:
    """start, page and err, alone, together and empty; every field missing."""
    found = [_event(start=START), _event(page=PAGE), _event(err=ERR), _event(), _event(start=START, page=PAGE)]
    found += [_event(err=ERR, start=START), _event(err=ERR, page=PAGE), _event(err=ERR, page=PAGE, start=START)]
    found += [_event(start={}), _event(page={}), _event(err={}), _event(err=None, start=None, page=None)]
    found += [_event(start=None, page=PAGE), _event(start=START, page=None), _event(err=False), _event(err="text")]
    full: dict[str, Any] = {
        "common": {**COMMON, "mid": "mid_2"},
        "page": PAGE,
        "displays": [{}],
        "actions": [{}],
        "ts": TS,
    }
    found += [_text({name: part for name, part in full.items() if name != left_out}) for left_out in full]
    for part in ("common", "page"):
        found += [_text({**full, part: {n: v for n, v in full[part].items() if n != out}}) for out in full[part]]
    found += [_event(start={n: v for n, v in START.items() if n != out}) for out in START]
    shown = [{"display_type": "query", "item": "1", "item_type": "sku_id", "order": 1, "pos_id": 2}, {}]
    done = [{"action_id": "favor_canel", "item": "1", "item_type": "sku_id", "ts": TS + 1}, {"action_id": "get_coupon"}]
    more: dict[str, Any]
    for more in ({"displays": shown, "actions": done}, {"displays": [], "actions": []}, {"displays": None}):
        found += [_event(page=PAGE, **more), _event(start=START, **more), _event(err=ERR, **more)]
    found.append(_event(page=PAGE, displays=shown * 400))
    second = {"common": {**COMMON, "ar": 7, "sid": "0f" * 16, "mid": "mid_3"}, "displays": [{"item": 1, "pos_seq": 0}]}
    return [*found, _text({**second, "page": {**PAGE, "from_pos_id": 1, "from_pos_seq": 2, "refer_id": "4"}, "ts": TS})]


def _spellings() -> list[bytes]:
    pairs = [("display_type", "displayType"), ("source_type", "sourceType"), ("loading_time", "loading_time_ms")]
    found = []
    for one, other in pairs:
        for both in ({one: "x"}, {other: "y"}, {one: "x", other: "y"}, {other: "y", one: "x"}, {one: None, other: "y"}):
            found += [_event(page=both, displays=[both]), _event(start=both)]
        found.append(_event(page={one: "", other: "y"}, displays=[{one: 0, other: 1}]))
    return found


def _types() -> list[bytes]:
    """Something else than expected, everywhere."""
    found = []
    for wrong in WRONG:
        found += [_event(start=wrong), _event(page=wrong), _event(err=wrong), _event(mid=wrong, page=PAGE)]
        found += [_event(page=PAGE, displays=wrong), _event(page=PAGE, actions=wrong), _event(start=START, ts=wrong)]
        found += [_event(page=PAGE, displays=[{}, wrong]), _event(page=PAGE, actions=[wrong]), _text(wrong)]
        found += [_text({"common": wrong, "start": START, "ts": TS}), _event(page=dict.fromkeys(PAGE, wrong))]
        common = {**dict.fromkeys(COMMON, wrong), "mid": "mid_wrong"}
        found.append(_text({"common": common, "start": dict.fromkeys(START, wrong), "ts": TS}))
        found += [_event(mid=f"mid_ts_{wrong}", page=PAGE, ts=wrong), _event(mid=f"mid_ts_{wrong}", page=PAGE)]
    return found


def _texts() -> list[bytes]:
    found = [_event(mid="mid_texts", page={"item": word}, err={"msg": word}) for word in WORDS]
    found += [_event(mid=word, page={word: word}, displays=[{"item": word}]) for word in WORDS]
    found += [_event(start={"entry": "?"}).replace(b'"?"', number.encode()) for number in HUGE]
    found += [_event(start=START, ts="?").replace(b'"?"', number.encode()) for number in HUGE]
    found.append(b'{"common":{"mid":"a","mid":"twice"},"start":{"entry":1},"start":{"entry":2},"ts":1,"ts":2}')
    found.append(b' \n{ "start" : { "entry" : "\\u56fe\\ud83d\\ude00\\/" } , "ts" : 1 } \r\n')
    return found


def _days() -> list[bytes]:
    """is_new over days: days to come, the same, an hour before midnight in Shanghai, the past, and no time at all."""
    midnight = (TS + 8 * 3_600_000) // DAY * DAY - 8 * 3_600_000
    days = [0, 0, -1, DAY - 1, DAY, DAY + 1, 3 * DAY, -5 * DAY, -5 * DAY, 0, -50 * 365 * DAY, -60 * 365 * DAY, 2**60]
    found = []
    for said in ("1", "0", None, 1, ""):
        for number, day in enumerate(days):
            mid = f"mid_days_{said!r}"
            is_new = said if number % 4 < 2 else "1"
            found.append(_text({"common": {"mid": mid, "is_new": is_new}, "page": {}, "ts": midnight + day}))
            found.append(_text({"common": {"mid": mid, "is_new": is_new}, "err": ERR, "ts": midnight - 99 * DAY}))
            found.append(_text({"common": {"mid": mid, "is_new": is_new}, "page": [], "ts": midnight - 98 * DAY}))
    return found


def _depths(name: str) -> list[bytes]:
    found = []
    for levels in (250, 251, 252, 253, 254, 600, 1200):
        deep = b'{"id":1,"entry":' + b"[" * levels + b"]" * levels + b"}"
        rest = b',"common":{"mid":"mid_deep","is_new":"1"},"ts":1683276840,"table":"order_info","type":"insert"}'
        found.append(b'{"%s":%s%s' % (name.encode(), deep, rest))
    return found


def _maxwell() -> list[bytes]:
    base: dict[str, Any] = {"database": "gmall", "table": "order_info", "type": "insert", "ts": 1683276840, "xid": 1}
    base |= {"commit": True, "data": {"id": 1, "total_amount": 99.5, "feight_fee": 10.0, "consignee": "何香"}}
    kinds = ["insert", "update", "delete", "bootstrap-start", "bootstrap-insert", "bootstrap-complete", "table-create"]
    found = [_text({**base, "type": kind}) for kind in [*kinds, "", "INSERT", "database-drop"]]
    found += [_text({**base, "type": kind, "table": "coupon_info"}) for kind in kinds]
    found += [_text({**base, "table": table}) for table in ("cart_info", "", "ORDER_INFO", "order_refund_info")]
    found += [_text({name: part for name, part in base.items() if name != left_out}) for left_out in base]
    found += [_text({**base, name: wrong}) for name in ("database", "table", "type", "ts", "data") for wrong in WRONG]
    found += [_text({**base, "data": {"id": wrong, "x": wrong}}) for wrong in [*WRONG, *WORDS]]
    found += [_text({**base, "data": {"id": "?"}}).replace(b'"?"', each.encode()) for each in HUGE if "e" not in each]
    found += [_text({**base, "ts": "?"}).replace(b'"?"', number.encode()) for number in [*HUGE, "9223372036854775"]]
    return [*found, _text({**base, "ts": 9223372036854776}), _text({**base, "old": {"order_status": "1001"}})]


def _canal() -> list[bytes]:
    base: dict[str, Any] = {
        "database": "gmall",
        "table": "user_info",
        "type": "INSERT",
        "isDdl": False,
        "es": TS,
        "id": 1,
    }
    base |= {
        "data": [{"id": "1", "name": None}, {"id": "2", "name": "马珠"}],
        "old": None,
        "pkNames": ["id"],
        "ts": TS + 9,
    }
    found = [_text({**base, "type": kind}) for kind in ("INSERT", "UPDATE", "DELETE", "QUERY", "insert", "TRUNCATE")]
    found += [_text({**base, "isDdl": True, "type": "CREATE", "data": None, "sql": "create table t(id int)"})]
    found += [_text({name: part for name, part in base.items() if name != left_out}) for left_out in base]
    names = ("database", "table", "type", "isDdl", "es", "ts", "data")
    found += [_text({**base, name: wrong}) for name in names for wrong in WRONG]
    found += [_text({**base, "data": [{"id": "1"}, wrong]}) for wrong in WRONG]
    found += [_text({**base, "es": wrong, "ts": wrong}) for wrong in WRONG]
    return [*found, _text({**base, "data": [{"id": "1"}, {"name": "no id"}]}), _text({**base, "data": []})]


def _debezium() -> list[bytes]:
    row = {"id": 1, "tm_name": "三星", "logo_url": None}
    base: dict[str, Any] = {"before": {**row, "tm_name": "old"}, "after": row, "op": "c", "ts_ms": TS + 9}
    base["source"] = {"db": "gmall", "table": "base_trademark", "ts_ms": TS, "connector": "mysql"}
    found = [_text({**base, "op": op}) for op in ("r", "c", "u", "d", "t", "m", "", "C")]
    found += [_text({"schema": {"type": "struct"}, "payload": {**base, "op": op}}) for op in ("u", "d")]
    found += [_text({"payload": base, "op": "d"}), _text({"payload": None}), _text({"payload": {"id": 1}})]
    found += [_text({name: part for name, part in base.items() if name != left_out}) for left_out in base]
    found += [_text({**base, name: wrong}) for name in base for wrong in WRONG]
    found += [_text({**base, "op": "d", "before": wrong}) for wrong in WRONG]
    for name in base["source"]:
        found += [_text({**base, "source": {**base["source"], name: wrong}}) for wrong in WRONG]
    fact = {**base, "source": {**base["source"], "table": "payment_info"}}
    return found + [_text({**fact, "op": op}) for op in ("r", "c", "u", "d")]
