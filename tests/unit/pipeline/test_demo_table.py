"""What the demo draws in a terminal, and what it says elsewhere."""

from __future__ import annotations

import io

import pytest

from barnabas.pipeline.demo_table import Board, Rates, lines_of
from barnabas.pipeline.routing import parse_routing
from barnabas.pipeline.warehouse import DEFAULT_ROUTING, topics
from barnabas.terminal import table

NAMES = [plan.name for plan in topics(parse_routing(DEFAULT_ROUTING), with_sources=True)]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_every_topic_has_its_line_once() -> None:
    lines = lines_of(NAMES)
    assert sorted(topic for line in lines for topic in line.topics) == sorted(NAMES)
    assert [line.name for line in lines[:3]] == ["ods_base_log", "ods_base_db", "dwd_start_log"]
    assert [line.name for line in lines[-2:]] == ["dim_* (12 topics)", "ods_dirty"]


def test_rates_are_those_of_the_last_seconds() -> None:
    rates = Rates()
    rates.add({"a": 1000}, 0.0)
    assert rates.of(["a"]) == 0.0
    rates.add({"a": 1100, "b": 30}, 1.0)
    assert (rates.of(["a"]), rates.of(["a", "b"])) == (100.0, 130.0)
    for second in range(2, 20):
        rates.add({"a": 1100}, float(second))
    assert rates.of(["a"]) == 0.0


def test_a_table_is_drawn_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "24")
    stream = Terminal()
    board = Board(NAMES, stream)
    board.show({"ods_base_log": 1000, "dim_sku_info": 5, "dim_spu_info": 2}, {"ods_base_log": 7}, "1 s", 1.0)
    first = stream.getvalue()
    assert first.startswith("1 s\n\nTOPIC")
    rows = {line.split("  ")[0]: line.split() for line in first.splitlines()}
    assert rows["ods_base_log"] == ["ods_base_log", "1,000", "0", "7"]
    assert rows["ods_base_db"][-1] == "-"
    assert rows["dim_* (12 topics)"][-3:] == ["7", "0", "-"]
    height = first.count("\n")
    assert height <= 23
    board.show({"ods_base_log": 1500}, {"ods_base_log": 0}, "2 s", 2.0)
    second = stream.getvalue()[len(first) :]
    assert second.startswith(f"\x1b[{height}A\r2 s\x1b[K")
    assert " 500 " in second and "ods_base_db" not in second, "only what has changed"


def test_a_small_terminal_gets_what_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setenv("LINES", "10")
    stream = Terminal()
    Board(NAMES, stream).show({}, {}, "a title that is longer than the terminal is wide", 1.0)
    lines = stream.getvalue().splitlines()
    assert len(lines) == 9 and max(map(len, lines)) < 20


def test_lines_now_and_then_elsewhere() -> None:
    stream = io.StringIO()
    board = Board(NAMES, stream, line_every_s=5.0)
    for second in range(8):
        counts = {"ods_base_log": 100 * second, "dwd_page_log": 200 * second, "ods_dirty": second}
        board.show(counts, {"ods_base_log": 40, "ods_base_db": 2}, f"{second} s", float(second))
    board.finish()
    assert stream.getvalue().splitlines() == [
        "0 s: 0 records in (0/s), 0 out (0/s), 0 dirty, lag 42",
        "5 s: 500 records in (100/s), 1,000 out (200/s), 5 dirty, lag 42",
    ]


def test_columns_are_aligned() -> None:
    assert table(["TOPIC", "N"], [["a", "1"], ["long name", "1,000"]]) == [
        "TOPIC          N",
        "a              1",
        "long name  1,000",
    ]
