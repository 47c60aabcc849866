"""Following a query: the routing file as it changes, with a query that stands in for Spark's."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from barnabas.errors import ErrorCode, KafkaError
from barnabas.pipeline.batch_routing import SETTLED_S, choose_routing, settled_text
from barnabas.pipeline.driving import Driver
from barnabas.pipeline.progress import UnroutedChanges
from barnabas.pipeline.routing import Routing, parse_routing
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


def plan(checkpoint: Path, batch: int) -> None:
    """As Spark does before it starts a batch."""
    (checkpoint / "offsets").mkdir(exist_ok=True)
    (checkpoint / "offsets" / str(batch)).write_text("")


def begin(checkpoint: Path, file: Path, batch: int, created: list[Routing] | None = None) -> Routing:
    """Spark plans a batch and asks for its writer; the routing that the batch has."""
    plan(checkpoint, batch)
    choose_routing(str(checkpoint), str(file), (created if created is not None else []).append)
    return RoutingLog(str(checkpoint)).for_batch(batch)


def follow(checkpoint: Path, file: Path, *events: Callable[[], object]) -> list[str]:
    """What was announced."""
    messages: list[str] = []
    driver = Driver({}, str(checkpoint), "p")
    driver.take_routing(ONE)
    query: Any = Query(*events)
    assert driver.follow(query, str(file), on_batch=lambda batch: None, on_message=messages.append) is None
    return messages


def test_the_first_batch_after_a_change_has_it(tmp_path: Path, file: Path, save: Callable[[str], None]) -> None:
    """However long no record came; and the driver's loop need not have seen the change."""
    save(ONE)
    Driver({}, str(tmp_path), "p").take_routing(ONE)
    created: list[Routing] = []
    assert begin(tmp_path, file, 0, created) == parse_routing(ONE) and created == []
    save(TWO)
    assert begin(tmp_path, file, 1, created) == parse_routing(TWO)
    assert created == [parse_routing(TWO)], "its topics are there before its tasks start"
    assert begin(tmp_path, file, 2) == parse_routing(TWO)
    assert RoutingLog(str(tmp_path)).versions() == [0, 1]


def test_a_batch_keeps_its_routing(tmp_path: Path, file: Path, save: Callable[[str], None]) -> None:
    """Spark asks for a writer again when a batch is done, and in a replay after a restart."""
    save(ONE)
    Driver({}, str(tmp_path), "p").take_routing(ONE)
    begin(tmp_path, file, 0)
    save(TWO)
    assert begin(tmp_path, file, 0) == parse_routing(ONE), "asked for again when it is done"
    Driver({}, str(tmp_path), "p").take_routing(TWO)
    assert begin(tmp_path, file, 0) == parse_routing(ONE), "a replay"
    assert begin(tmp_path, file, 1) == parse_routing(TWO)


def test_a_batch_that_was_planned_and_never_begun_has_the_newest(
    tmp_path: Path, file: Path, save: Callable[[str], None]
) -> None:
    Driver({}, str(tmp_path), "p").take_routing(ONE)
    plan(tmp_path, 0)
    save(TWO)
    Driver({}, str(tmp_path), "p").take_routing(TWO)
    assert begin(tmp_path, file, 0) == parse_routing(TWO)


def test_a_checkpoint_without_the_note(tmp_path: Path, file: Path, save: Callable[[str], None]) -> None:
    """From before batches were noted as begun: whatever is planned may have been written in part."""
    RoutingLog(str(tmp_path)).write(0, ONE)
    plan(tmp_path, 3)
    save(TWO)
    Driver({}, str(tmp_path), "p").take_routing(TWO)
    assert begin(tmp_path, file, 3) == parse_routing(ONE)
    assert begin(tmp_path, file, 4) == parse_routing(TWO)


def test_a_change_is_announced_when_it_holds(tmp_path: Path, file: Path, save: Callable[[str], None]) -> None:
    save(ONE)
    idle = follow(tmp_path, file, nothing, lambda: save(TWO), nothing, nothing)
    assert idle == [], "no batch has it yet"
    messages = follow(tmp_path, file, nothing, nothing, lambda: begin(tmp_path, file, 0), nothing)
    assert messages == [f"new routing: {file} is used from batch 0 on"]


def test_a_change_that_a_batch_saw_first_is_announced_too(
    tmp_path: Path, file: Path, save: Callable[[str], None]
) -> None:
    def change() -> None:
        save(TWO)
        begin(tmp_path, file, 0)

    save(ONE)
    messages = follow(tmp_path, file, nothing, nothing, change, nothing, nothing)
    assert messages == [f"new routing: {file} is used from batch 0 on"]


def test_a_file_that_did_not_change_is_no_new_version(tmp_path: Path, file: Path, save: Callable[[str], None]) -> None:
    save(ONE)
    assert follow(tmp_path, file, nothing, lambda: save(ONE), lambda: begin(tmp_path, file, 0), nothing) == []
    assert RoutingLog(str(tmp_path)).versions() == [0]


def test_half_a_file_is_not_taken(file: Path) -> None:
    """The first half of a routing is a routing without the tables of the second: their rows would be left out."""
    file.write_text(ONE)
    os.utime(file, (0, 1000.0))
    now = 1000.1

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds
        if file.read_text() == ONE:  # the second half is written meanwhile
            file.write_text(TWO)
            os.utime(file, (0, now))

    assert settled_text(file, lambda: now, sleep) == TWO
    assert now >= 1000.1 + 2 * SETTLED_S - 0.2


def test_a_file_that_never_settles_or_is_gone(file: Path) -> None:
    file.write_text(ONE)
    now = 1000.0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds
        os.utime(file, (0, now))

    os.utime(file, (0, now))
    assert settled_text(file, lambda: now, sleep) is None
    file.unlink()
    assert settled_text(file) is None


def test_a_file_with_mistakes_changes_nothing(tmp_path: Path, file: Path, save: Callable[[str], None]) -> None:
    save(ONE)
    events = (lambda: save("nonsense"), lambda: begin(tmp_path, file, 0), file.unlink, lambda: begin(tmp_path, file, 1))
    assert follow(tmp_path, file, *events, nothing) == []
    assert RoutingLog(str(tmp_path)).for_batch(1) == parse_routing(ONE)


def test_topics_that_cannot_be_created(tmp_path: Path, file: Path, save: Callable[[str], None]) -> None:
    """The batch fails, and the next attempt at it has the new routing: no row of the new table is unrouted."""
    save(TWO)
    Driver({}, str(tmp_path), "p").take_routing(ONE)

    def refuse(routing: Routing) -> None:
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "not yours")

    plan(tmp_path, 0)
    for _ in range(2):
        with pytest.raises(KafkaError, match=r"batch 0 cannot start: .* cannot be created: not yours") as raised:
            choose_routing(str(tmp_path), str(file), refuse)
        assert raised.value.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert begin(tmp_path, file, 0) == parse_routing(TWO)


def test_a_table_without_a_route_is_named_once(tmp_path: Path, file: Path, save: Callable[[str], None]) -> None:
    save(ONE)
    driver, messages = Driver({}, str(tmp_path), "p"), list[str]()
    driver.take_routing(ONE)
    progress = {"numInputRows": 5, "timestamp": "", "durationMs": {}, "sources": []}
    query: Any = Query()

    def batch(number: int, count: int) -> Callable[[], None]:
        def done() -> None:
            UnroutedChanges(str(tmp_path)).add(number, {"shop.cart": count})
            query.recentProgress = (*query.recentProgress, {**progress, "batchId": number})

        return done

    query._events = iter([batch(0, 3), batch(1, 4), nothing])
    driver._lag = cast(Any, NoLag())
    assert driver.follow(query, None, on_batch=lambda batch: None, on_message=messages.append) is None
    assert messages == ["no route for changes of shop.cart: 3 so far; `pipeline status` counts them"]


class NoLag:
    def behind(self, position: object) -> None:
        return None

    def close(self) -> None:
        pass
