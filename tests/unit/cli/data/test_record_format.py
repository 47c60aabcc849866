"""kcat's letters; what kcat itself prints for them is compared in tests/integration/cli."""

from __future__ import annotations

import json

import pytest

from barnabas.cli.command import UsageError
from barnabas.cli.data.escapes import unescaped
from barnabas.cli.data.record_format import compiled, json_lines
from barnabas.records.codec import ConsumerRecord

RECORD = ConsumerRecord("t", 3, 42, 1234, key=b"k\xff", value=b"v", headers=(("h", b"1"), ("i", None)))
NULL = ConsumerRecord("t", 3, 43, 1234)


def test_every_letter() -> None:
    assert compiled("%t %p %o %T %k %K %s %S %h|%R")([RECORD]) == b"t 3 42 1234 k\xff 2 v 1 h=1,i=NULL|\0\0\0\1"
    assert compiled("%k %K %s %S %h|%R")([NULL]) == b" -1  -1 |\xff\xff\xff\xff"
    assert compiled("%k %s", b"NULL")([NULL]) == b"NULL NULL"


def test_escapes_and_percent_signs() -> None:
    assert compiled("%%s%%%s%%\\x41\\n\\t\\r\\\\%%")([RECORD]) == b"%s%v%A\n\t\r\\%"
    assert compiled("%s%")([RECORD]) == b"v%"
    assert unescaped("\\q\\x9\\0ü") == b"q\x09\0\xc3\xbc"
    with pytest.raises(UsageError, match="%x means nothing here"):
        compiled("%s %x")


def test_json() -> None:
    row = json.loads(json_lines([RECORD]))
    assert row == {
        "topic": "t",
        "partition": 3,
        "offset": 42,
        "tstype": "create",
        "ts": 1234,
        "headers": ["h", "1", "i", None],
        "key_base64": "a/8=",
        "payload": "v",
    }
    assert "headers" not in json.loads(json_lines([NULL])) and json.loads(json_lines([NULL]))["payload"] is None


def test_many_records_at_once() -> None:
    assert compiled("%o:%s;")([RECORD, NULL, RECORD]) == b"42:v;43:;42:v;"
    assert compiled("-\\n")([RECORD, NULL]) == b"-\n-\n" and compiled("%s\\n")([]) == b""
    assert json_lines([RECORD, NULL]).count(b"\n") == 2
