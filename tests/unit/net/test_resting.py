"""Connections that rest: few looks for many heartbeats, none put off for long, and another request ends the rest."""

import asyncio
import selectors
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from net_harness import Answer, Handler, framed, network, run

from barnabas.net.connection import Connection
from barnabas.net.resting import EVENTS_AT_A_LOOK, GAP_SECONDS, RestingConnections
from barnabas.net.settings import NetworkSettings


class Loop:
    """Time and turns under the test's control; the descriptors are real."""

    def __init__(self) -> None:
        self.now = 100.0
        self.turns = 0
        self.faults: list[dict[str, Any]] = []
        self._selector = selectors.DefaultSelector()
        self._timers: list[tuple[float, asyncio.Handle, Callable[[], None]]] = []

    def time(self) -> float:
        return self.now

    def add_reader(self, fd: int, callback: Callable[[], None]) -> None:
        self._selector.register(fd, selectors.EVENT_READ, callback)

    def remove_reader(self, fd: int) -> None:
        self._selector.unregister(fd)

    def call_at(self, when: float, callback: Callable[[], None]) -> asyncio.Handle:
        handle = asyncio.Handle(callback, (), self)  # type: ignore[arg-type]
        self._timers.append((when, handle, callback))
        return handle

    def call_soon(self, callback: Callable[[], None]) -> asyncio.Handle:
        return self.call_at(self.now, callback)

    def get_debug(self) -> bool:
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        self.faults.append(context)

    def turn(self) -> None:
        """Whatever is ready or due; counted if that is anything."""
        due = [timer for timer in self._timers if timer[0] <= self.now]
        self._timers = [timer for timer in self._timers if timer[0] > self.now]
        ready = [key.data for key, _ in self._selector.select(0)]
        ready += [callback for _, handle, callback in due if not handle.cancelled()]
        self.turns += bool(ready)
        for callback in ready:
            callback()

    @property
    def is_waiting_for_a_time(self) -> bool:
        return any(not handle.cancelled() for _, handle, _ in self._timers)

    def close(self) -> None:
        self._selector.close()


class Peers:
    """Members of groups, each with a connection that rests; `read` says who was read from, in which order."""

    def __init__(self, count: int) -> None:
        self.loop = Loop()
        self.resting = RestingConnections(self.loop)  # type: ignore[arg-type]
        self.read: list[int] = []
        self.pairs = [socket.socketpair() for _ in range(count)]
        for number, (near, _) in enumerate(self.pairs):
            self.resting.add(near.fileno(), lambda number=number: self._read(number))  # type: ignore[misc]

    def _read(self, number: int) -> None:
        assert self.pairs[number][0].recv(10) == b"x"
        self.read.append(number)

    def beat(self, number: int) -> None:
        self.pairs[number][1].send(b"x")


@pytest.fixture
def peers() -> Iterator[Callable[[int], Peers]]:
    with ExitStack() as stack:

        def make(count: int) -> Peers:
            made = Peers(count)
            for near, far in made.pairs:
                stack.enter_context(near)
                stack.enter_context(far)
            stack.callback(made.loop.close)
            stack.callback(made.resting.close)
            return made

        yield make


def test_few_heartbeats_get_responses_at_once(peers: Callable[[int], Peers]) -> None:
    some = peers(3)
    for number in (0, 1, 2, 0):
        some.loop.now += GAP_SECONDS
        some.beat(number)
        some.loop.turn()
        assert some.read.pop() == number
    assert not some.loop.is_waiting_for_a_time


def test_one_that_follows_closely_waits_for_the_gap_and_no_longer(peers: Callable[[int], Peers]) -> None:
    some = peers(2)
    some.beat(0)
    some.loop.turn()
    assert some.read == [0]
    some.beat(1)
    for _ in range(3):
        some.loop.turn()
    assert some.read == [0] and some.loop.turns == 2, "it was looked at too soon, or woke the loop more than once"
    some.loop.now += GAP_SECONDS
    some.loop.turn()
    assert some.read == [0, 1]


def test_many_take_a_turn_in_each_gap(peers: Callable[[int], Peers]) -> None:
    some = peers(100)
    for _ in range(50):
        for number in range(0, 100, 10):
            some.beat(number)
            some.loop.now += GAP_SECONDS / 10
            some.loop.turn()
    some.loop.now += GAP_SECONDS
    some.loop.turn()
    assert len(some.read) == 500
    assert some.loop.turns < 60


def test_looking_ends_when_nobody_beats_any_more(peers: Callable[[int], Peers]) -> None:
    some = peers(10)
    for number in range(10):
        some.beat(number)
        some.loop.turn()
    some.loop.now += GAP_SECONDS
    some.loop.turn()
    assert len(some.read) == 10 and some.loop.is_waiting_for_a_time
    for _ in range(2):
        some.loop.now += GAP_SECONDS
        some.loop.turn()
    assert not some.loop.is_waiting_for_a_time
    some.beat(3)
    some.loop.turn()
    assert some.read[10:] == [3]


def test_more_than_a_look_takes_are_read_in_the_next_turn(peers: Callable[[int], Peers]) -> None:
    count = EVENTS_AT_A_LOOK + 5
    some = peers(count)
    some.beat(0)
    some.loop.turn()
    for number in range(count):
        some.beat(number)
    some.loop.turn()
    some.loop.now += GAP_SECONDS
    some.loop.turn()
    assert len(some.read) == 1 + EVENTS_AT_A_LOOK
    some.loop.turn()
    assert sorted(some.read) == [0, *range(count)]


def test_a_fault_of_one_is_told_and_the_others_are_read(peers: Callable[[int], Peers]) -> None:
    some = peers(3)
    some.pairs[1][1].send(b"not x")
    for number in (0, 2):
        some.beat(number)
    some.loop.turn()
    assert sorted(some.read) == [0, 2]
    assert [type(fault["exception"]) for fault in some.loop.faults] == [AssertionError]


def test_one_that_was_removed_by_another_is_not_read(peers: Callable[[int], Peers]) -> None:
    some = peers(2)
    for number in (0, 1):
        some.resting.remove(some.pairs[number][0].fileno())

    def take_both() -> None:
        some.read.append(0)
        for near, _ in some.pairs:
            some.resting.remove(near.fileno())

    for near, _ in some.pairs:
        some.resting.add(near.fileno(), take_both)
    for number in (0, 1):
        some.beat(number)
    some.loop.turn()
    assert some.read == [0] and not some.loop.faults


# --- the same on a server ---


def resting_on_beats(connection: Connection, payload: bytes) -> Answer:
    if payload == b"beat":
        connection.rest()
    return framed(payload)


def test_a_connection_rests_until_something_else_comes() -> None:
    async def test() -> None:
        async with network(Handler(resting_on_beats)) as net:
            client = await net.connect()
            for payload, resting in ((b"a", False), (b"beat", True), (b"beat", True), (b"b", False), (b"beat", True)):
                assert await client.ask(payload) == payload
                (connection,) = net.server.connections
                assert connection.is_resting is resting, payload

    run(test)


def test_a_resting_connection_is_paused_resumed_and_closed() -> None:
    async def test() -> None:
        async with network(handler := Handler(resting_on_beats)) as net:
            client, other = await net.connect(), await net.connect()
            assert await client.ask(b"beat") == b"beat" and await other.ask(b"beat") == b"beat"
            connection = next(each for each in net.server.connections if each.peer_port == client.port)
            connection.pause_reading()
            await client.send(framed(b"beat"))
            assert await other.ask(b"beat") == b"beat"
            assert handler.requests == [b"beat"] * 3
            connection.resume_reading()
            assert await client.read_frame() == b"beat" and connection.is_resting
            await client.close()
            await handler.until(lambda: handler.closed == [connection])
            assert await other.ask(b"still here") == b"still here"

    run(test)


def test_beats_of_many_connections_on_a_real_loop() -> None:
    async def test() -> None:
        async with network(Handler(resting_on_beats), NetworkSettings(max_connections=1000)) as net:
            clients = [await net.connect() for _ in range(EVENTS_AT_A_LOOK + 20)]
            for _ in range(5):
                assert await asyncio.gather(*(client.ask(b"beat") for client in clients)) == [b"beat"] * len(clients)
            assert all(connection.is_resting for connection in net.server.connections)

    run(test)
