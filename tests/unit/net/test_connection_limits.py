"""How many connections a broker and its listeners take, how fast, and who goes where there are too many."""

import asyncio

import pytest
from broker_on_loop import until
from net_harness import Client, Handler, framed, network, run

from barnabas.clock import ManualClock
from barnabas.config.broker import BrokerConfig
from barnabas.net.connection_limits import ConnectionLimits
from barnabas.net.server import Server
from barnabas.net.settings import UNLIMITED, Listener, ListenerLimits, NetworkSettings
from barnabas.server.broker import _network_settings


def limits(clock: ManualClock, settings: NetworkSettings) -> ConnectionLimits:
    return ConnectionLimits(clock, settings, ["CLIENTS", "BROKERS"])


def test_a_rate_of_the_broker_counts_all_listeners_but_the_protected_one() -> None:
    clock = ManualClock()
    found = limits(clock, NetworkSettings(max_connection_creation_rate=2, inter_broker_listener="BROKERS"))
    assert [found.add("CLIENTS") for _ in range(21)] == [0] * 20 + [500]
    assert [found.add("BROKERS") for _ in range(50)] == [0] * 50
    clock.advance(500)
    assert found.add("CLIENTS") == 500, "the one that waited has its turn, and this one waits"


def test_a_rate_of_a_listener_holds_for_the_protected_one_too() -> None:
    own = {"BROKERS": ListenerLimits(max_connection_creation_rate=1)}
    found = limits(ManualClock(), NetworkSettings(listener_limits=own, inter_broker_listener="BROKERS"))
    assert [found.add("BROKERS") for _ in range(11)] == [0] * 10 + [1000]
    assert [found.add("CLIENTS") for _ in range(11)] == [0] * 11


@pytest.mark.parametrize("rate", [0, 1])
def test_nobody_waits_longer_than_a_window(rate: int) -> None:
    settings = NetworkSettings(max_connection_creation_rate=rate, quota_window_size_seconds=2)
    found = limits(ManualClock(), settings)
    assert [found.add("CLIENTS") for _ in range(100)][-1] == 2000


def test_a_rate_may_change_and_what_came_before_counts() -> None:
    found = limits(ManualClock(), NetworkSettings())
    assert [found.add("CLIENTS") for _ in range(20)] == [0] * 20
    found.reconfigure(NetworkSettings(max_connection_creation_rate=2))
    assert found.add("CLIENTS") == 500


def test_numbers_of_listener_and_broker() -> None:
    own = {"CLIENTS": ListenerLimits(max_connections=2), "BROKERS": ListenerLimits(max_connections=4)}
    settings = NetworkSettings(max_connections=3, listener_limits=own, inter_broker_listener="BROKERS")
    found = limits(ManualClock(), settings)
    for _ in range(2):
        assert found.has_room("CLIENTS")
        found.add("CLIENTS")
    assert not found.has_room("CLIENTS"), "of the listener"
    for _ in range(4):
        assert found.has_room("BROKERS")
        found.add("BROKERS")
    assert not found.has_room("BROKERS") and found.excess == 3
    for _ in range(2):
        found.remove("CLIENTS")
    assert not found.has_room("CLIENTS"), "of the broker"


def test_a_lone_listener_is_not_protected() -> None:
    found = ConnectionLimits(ManualClock(), NetworkSettings(max_connections=0, inter_broker_listener="ONE"), ["ONE"])
    assert not found.has_room("ONE")


def test_a_listener_has_only_the_limits_set_for_it() -> None:
    given = {
        "listeners": "PLAINTEXT://127.0.0.1:0,OTHER://127.0.0.2:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT",
        "max.connections": "7",
        "max.connection.creation.rate": "8",
        "listener.name.other.max.connections": "5",
        "listener.name.other.max.connection.creation.rate": "6",
    }
    settings = _network_settings(BrokerConfig.parse(given))
    assert (settings.max_connections, settings.max_connection_creation_rate) == (7, 8)
    assert settings.inter_broker_listener == "PLAINTEXT"
    assert settings.listener_limits == {
        "PLAINTEXT": ListenerLimits(max_connections=UNLIMITED, max_connection_creation_rate=UNLIMITED),
        "OTHER": ListenerLimits(max_connections=5, max_connection_creation_rate=6),
    }


def test_who_comes_too_fast_waits_and_is_served_then() -> None:
    async def test() -> None:
        clock = ManualClock()
        settings = NetworkSettings(max_connection_creation_rate=1)
        async with network(handler := Handler(), settings, clock=clock) as net:
            clients = [await net.connect() for _ in range(12)]
            for client in clients[:10]:
                assert await client.ask(b"soon") == b"soon"
            for client in clients[10:]:
                await client.send(framed(b"late"))
            await until(lambda: bool(net.server._held_back))
            for _ in range(20):
                await clients[0].ask(b"soon")
            assert len(net.server._held_back) == 1 and b"late" not in handler.requests
            assert net.server._timers is not None
            for served, client in enumerate(clients[10:], 11):
                await until(lambda: bool(net.server._held_back))
                clock.advance(1000)
                net.server._timers._on_alarm()
                assert await client.read_frame() == b"late"
                assert len(net.server.connections) == served

    run(test)


def test_a_stop_closes_those_that_wait() -> None:
    async def test() -> None:
        async with network(Handler(), NetworkSettings(max_connection_creation_rate=1), clock=ManualClock()) as net:
            clients = [await net.connect() for _ in range(11)]
            assert await clients[0].ask(b"x") == b"x"
            await until(lambda: bool(net.server._held_back))
            await net.server.stop(0)
            assert await clients[10].read_to_end() == b"" and not net.server._held_back

    run(test)


def test_a_protected_listener_drives_out_the_longest_idle_of_others() -> None:
    async def test() -> None:
        clock = ManualClock()
        settings = NetworkSettings(max_connections=2, inter_broker_listener="BROKERS")
        listeners = [Listener(name=name, host="127.0.0.1", port=0) for name in ("CLIENTS", "BROKERS")]
        server = Server(Handler(), listeners, settings, clock=clock)
        await server.start()
        ports = {name: address[1] for name, address in server.addresses.items()}

        async def connect(listener: str) -> Client:
            client = Client(*await asyncio.open_connection("127.0.0.1", ports[listener]))
            await client.send(framed(b"hello"))
            return client

        idle, busy = await connect("CLIENTS"), await connect("CLIENTS")
        assert await idle.read_frame() == await busy.read_frame() == b"hello"
        clock.advance(5)
        await busy.ask(b"still here")
        broker = await connect("BROKERS")
        assert await broker.read_frame() == b"hello"
        assert await idle.read_to_end() == b""
        assert await busy.ask(b"still here") == b"still here"
        server.reconfigure(NetworkSettings(max_connections=1, inter_broker_listener="BROKERS"))
        assert await busy.read_to_end() == b"", "a lower limit holds at once"
        assert await broker.ask(b"on") == b"on"
        for client in (idle, busy, broker):
            await client.close()
        await server.stop(0)

    run(test)
