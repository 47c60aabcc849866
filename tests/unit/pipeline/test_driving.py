"""Following a query: the routing file as it changes, with a query that stands in for Spark's."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas.pipeline.driving import Driver
from barnabas.pipeline.routing import Routing
from barnabas.pipeline.routing_log import RoutingLog

ONE = '[tables.a]\nkind = "fact"\n'
TWO = ONE + '[tables.b]\nkind = "fact"\n'


class Query:
    """Ends after some looks; before each of them something happens."""

    recentProgress: tuple[Any, ...] = ()

    def __init__(self, *events: Callable[[], object]) -> None:
        self._events = iter(events)

    def awaitTermination(self, seconds: int) -> bool:
        event = next(self._events, None)
        if event is not None:
            event()
        return event is None

    def exception(self) -> None:
        return None

    def stop(self) -> None:
        pass


def nothing() -> None:
    pass


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "routing.toml"


@pytest.fixture
def save(file: Path) -> Callable[[str], None]:
    seconds: Iterator[int] = iter(range(1_700_000_000, 1_800_000_000))

    def save(text: str) -> None:
        """Each time a second later."""
        file.write_text(text)
        os.utime(file, (0, next(seconds)))

    return save


def follow(checkpoint: Path, file: Path, *events: Callable[[], object]) -> list[Routing]:
    """The routings that were taken up."""
    taken: list[Routing] = []
    driver = Driver({}, str(checkpoint), "p")
    driver.take_routing(ONE)
    query: Any = Query(*events)
    assert driver.follow(query, str(file), on_batch=lambda batch: None, on_routing=taken.append) is None
    return taken


def newest(checkpoint: Path) -> str:
    log = RoutingLog(str(checkpoint))
    return log.text(log.versions()[-1])


def test_a_change_while_it_runs(tmp_path: Path, file: Path, save: Callable[[str], None]) -> None:
    save(ONE)
    assert len(follow(tmp_path, file, nothing, lambda: save(TWO), nothing, nothing)) == 1
    assert newest(tmp_path) == TWO


def test_a_change_while_spark_was_starting(tmp_path: Path, file: Path, save: Callable[[str], None]) -> None:
    save(TWO)
    assert len(follow(tmp_path, file, nothing, nothing)) == 1
    assert newest(tmp_path) == TWO


def test_a_file_that_did_not_change_is_no_new_version(tmp_path: Path, file: Path, save: Callable[[str], None]) -> None:
    save(ONE)
    assert follow(tmp_path, file, nothing, lambda: save(ONE), nothing, nothing) == []
    assert RoutingLog(str(tmp_path)).versions() == [0]


def test_half_a_file_is_not_taken(tmp_path: Path, file: Path, save: Callable[[str], None]) -> None:
    """The first half of a routing is a routing without the tables of the second: their rows would be left out."""
    save(TWO)
    taken = follow(tmp_path, file, nothing, lambda: save(ONE), lambda: save(TWO), nothing)
    assert [list(each.routes) for each in taken] == [["a", "b"]]
    assert newest(tmp_path) == TWO


def test_a_file_with_mistakes_changes_nothing(tmp_path: Path, file: Path, save: Callable[[str], None]) -> None:
    save(ONE)
    assert follow(tmp_path, file, lambda: save("nonsense"), nothing, file.unlink, nothing, nothing) == []
    assert newest(tmp_path) == ONE
