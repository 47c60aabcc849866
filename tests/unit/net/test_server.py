"""Listeners, limits, time-outs, memory budget and the orderly stop."""

import asyncio
import logging
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from net_harness import Answer, Client, Handler, framed, network, run

from barnabas.clock import ManualClock
from barnabas.net.connection import Connection
from barnabas.net.deferred import Deferred
from barnabas.net.reply import Parts
from barnabas.net.server import Server
from barnabas.net.settings import Listener, NetworkSettings
from barnabas.transport.same_host import congestion_control


def parking() -> tuple[list[Deferred[Parts]], Handler]:
    """A handler that parks every request but `turn`."""
    pending: list[Deferred[Parts]] = []

    def respond(_: Connection, payload: bytes) -> Answer:
        if payload == b"turn":
            return [framed(payload)]
        pending.append(Deferred(memory_bytes=len(payload)))
        return pending[-1]

    return pending, Handler(respond)


def test_several_listeners_ipv4_and_ipv6() -> None:
    async def test() -> None:
        seen: list[str] = []

        def respond(connection: Connection, payload: bytes) -> Answer:
            seen.append(f"{connection.listener.name} {connection.peer_host}")
            return [framed(payload)]

        listeners = [
            Listener(name="V4", host="127.0.0.1", port=0),
            Listener(name="V6", host="::1", port=0),
            Listener(name="ANY", host="", port=0),
        ]
        server = Server(Handler(respond), listeners)
        await server.start()
        ports = {name: address[1] for name, address in server.addresses.items()}
        assert len(set(ports.values())) == 3
        for host, name in (("127.0.0.1", "V4"), ("::1", "V6"), ("127.0.0.1", "ANY"), ("::1", "ANY")):
            client = Client(*await asyncio.open_connection(host, ports[name]))
            assert await client.ask(b"hello") == b"hello"
            assert seen[-1] == f"{name} {host}"
            await client.close()
        await server.stop(0)

    run(test)


def test_a_name_with_two_addresses_gets_one_port() -> None:
    async def test() -> None:
        server = Server(Handler(), [Listener(host="localhost", port=0)])
        await server.start()
        addresses = {info[4][0] for info in socket.getaddrinfo("localhost", None, type=socket.SOCK_STREAM)}
        for address in sorted(addresses):
            client = Client(*await asyncio.open_connection(address, server.port))
            assert await client.ask(b"hello") == b"hello"
            await client.close()
        await server.stop(0)

    run(test)


def test_if_one_listener_cannot_bind_none_stays() -> None:
    async def test() -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken, socket.create_server(("127.0.0.1", 0)) as free:
            free_port = free.getsockname()[1]
            free.close()
            listeners = [
                Listener(name="A", host="127.0.0.1", port=free_port),
                Listener(name="B", host="127.0.0.1", port=taken.getsockname()[1]),
            ]
            with pytest.raises(OSError, match="in use"):
                await Server(Handler(), listeners).start()
            socket.create_server(("127.0.0.1", free_port)).close()

    run(test)


@pytest.mark.parametrize("same_host", [True, False])
def test_sockets_have_the_options_asked_for(monkeypatch: pytest.MonkeyPatch, same_host: bool) -> None:
    async def test() -> None:
        settings = NetworkSettings(
            socket_send_buffer_bytes=1_000 if same_host else 50_000,
            same_host_send_buffer_bytes=50_000 if same_host else 1_000,
            socket_receive_buffer_bytes=40_000,
        )
        if not same_host:
            monkeypatch.setattr("barnabas.transport.system.is_same_host", lambda sock: False)
        async with network(Handler(), settings) as net:
            client = await net.connect()
            await client.ask(b"x")
            sock = net.server.connections[0]._stream.channel
            assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            # Linux doubles what it is asked for.
            assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) in (50_000, 100_000)
            assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) in (40_000, 80_000)
            if hasattr(socket, "TCP_CONGESTION"):
                with socket.socket() as other:
                    usual = congestion_control(other)
                assert congestion_control(sock) == (b"reno" if same_host else usual)
                # What a connection begins with it cannot get rid of: Linux goes on pacing it.
                assert congestion_control(net.server._accept_loops[0]._channel) == b"reno"

    run(test)


def test_max_connections_lets_newcomers_wait() -> None:
    async def test() -> None:
        async with network(handler := Handler(), NetworkSettings(max_connections=2)) as net:
            first, second, third = [await net.connect() for _ in range(3)]
            await third.send(framed(b"third"))
            for _ in range(20):
                await first.ask(b"first")
                await second.ask(b"second")
            assert b"third" not in handler.requests
            await first.close()
            assert await third.read_frame() == b"third"
            assert await second.ask(b"second") == b"second"
            fourth = await net.connect()
            net.server.reconfigure(NetworkSettings(max_connections=3))
            assert await fourth.ask(b"fourth") == b"fourth"

    run(test)


def test_connections_leave_descriptors_for_files() -> None:
    async def test() -> None:
        async with network(Handler(), NetworkSettings()) as net:
            free = os.dup(0)
            os.close(free)
            # Wide enough for what other threads of the test process open meanwhile.
            net.server.reconfigure(NetworkSettings(max_descriptors=free + 60))
            clients = [await net.connect() for _ in range(60)]
            assert await clients[0].ask(b"first") == b"first"
            assert await clients[-1].read_to_end() == b""
            for client in clients:
                await client.close()
            net.server.reconfigure(NetworkSettings(max_descriptors=free + 400))
            assert await (await net.connect()).ask(b"again") == b"again"

    run(test)


def test_max_connections_per_ip_refuses_and_overrides_count() -> None:
    async def test() -> None:
        settings = NetworkSettings(max_connections_per_ip=1, max_connections_per_ip_overrides={"127.0.0.1": 2})
        async with network(handler := Handler(), settings, Listener(host="", port=0)) as net:
            v6_first, v6_second = await net.connect("::1"), await net.connect("::1")
            assert await v6_first.ask(b"a") == b"a"
            assert await v6_second.read_to_end() == b""
            v4 = [await net.connect("127.0.0.1") for _ in range(3)]
            assert [await client.ask(b"b") for client in v4[:2]] == [b"b", b"b"]
            assert await v4[2].read_to_end() == b""
            await v4[0].close()
            await handler.until(lambda: len(handler.closed) == 1)
            assert await (await net.connect("127.0.0.1")).ask(b"c") == b"c"

    run(test)


def test_idle_connections_are_closed_and_active_ones_are_not() -> None:
    async def test() -> None:
        clock = ManualClock()
        async with network(Handler(), NetworkSettings(connections_max_idle_ms=50), clock=clock) as net:
            idle, trickling, active = [await net.connect() for _ in range(3)]
            await trickling.send(b"\0\0\xff\xff")
            open_yet = {asyncio.ensure_future(client.read_to_end()) for client in (idle, trickling)}
            while open_yet:
                clock.advance(20)
                trickling.writer.write(b"x")
                assert await active.ask(b"x") == b"x"
                _, open_yet = await asyncio.wait(open_yet, timeout=0.02)
            assert await active.ask(b"x") == b"x"

    run(test)


def test_a_client_that_never_reads_is_closed_after_the_idle_time() -> None:
    async def test() -> None:
        handler = Handler(lambda connection, payload: [framed(b"y" * 1_000_000)])
        async with network(handler, NetworkSettings(connections_max_idle_ms=150)) as net:
            with socket.create_connection(("127.0.0.1", net.server.port)) as greedy:
                greedy.sendall(framed(b"x") * 100)
                await handler.until(lambda: len(handler.closed) == 1)

    run(test)


def test_a_request_in_progress_keeps_a_connection_from_being_idle() -> None:
    async def test() -> None:
        pending, handler = parking()
        async with network(handler, NetworkSettings(connections_max_idle_ms=60)) as net:
            waiting, idle = await net.connect(), await net.connect()
            await waiting.send(framed(b"x"))
            for _ in range(3):  # each of these lives for a whole idle time
                await idle.read_to_end()
                idle = await net.connect()
            pending[0].complete([framed(b"at last")])
            assert await waiting.read_frame() == b"at last"

    run(test)


def test_over_the_memory_budget_reading_stops_and_goes_on_in_order() -> None:
    async def test() -> None:
        pending, handler = parking()
        async with network(handler, NetworkSettings(queued_max_request_bytes=1000)) as net:
            clients = [await net.connect() for _ in range(4)]
            await clients[0].send(framed(b"0" * 1500))
            await handler.until(lambda: len(pending) == 1)
            for number in (1, 2, 3):
                payload = b"%d" % number * (600 if number < 3 else 500_000)
                await clients[number].send(framed(payload))
                while net.server.budget.waiting_count < number:
                    await asyncio.wait_for(asyncio.sleep(0.001), 1)
            assert len(handler.requests) == 1
            pending[0].complete([framed(b"done 0")])
            assert await clients[0].read_frame() == b"done 0"
            await handler.until(lambda: len(pending) == 3)
            assert [request[:1] for request in handler.requests] == [b"0", b"1", b"2"]
            pending[1].complete([framed(b"done 1")])
            pending[2].complete([framed(b"done 2")])
            await handler.until(lambda: len(pending) == 4)
            pending[3].complete([framed(b"done 3")])
            for number in (1, 2, 3):
                assert await clients[number].read_frame() == b"done %d" % number
            assert net.server.budget.used_bytes == 0

    run(test)


def test_stop_lets_replies_in_progress_out() -> None:
    async def test() -> None:
        pending, handler = parking()
        async with network(handler) as net:
            waiting, idle = await net.connect(), await net.connect()
            assert await idle.ask(b"turn") == b"turn"
            await waiting.send(framed(b"x"))
            await handler.until(lambda: len(pending) == 1)
            stopping = asyncio.ensure_future(net.server.stop(drain_seconds=60))
            assert await idle.read_to_end() == b""
            with pytest.raises(OSError, match=r"refused|failed"):
                await net.connect()
            large = framed(b"y" * 3_000_000)
            pending[0].complete([large])
            assert await waiting.read_to_end() == large
            await stopping
            assert len(handler.closed) == 2

    run(test)


def test_stop_gives_up_after_the_time_to_drain(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        pending, handler = parking()
        async with network(handler) as net:
            client = await net.connect()
            await client.send(framed(b"x"))
            await handler.until(lambda: len(pending) == 1)
            await net.server.stop(drain_seconds=0.01)
            assert pending[0].abandoned
            assert await client.read_to_end() == b""

    with caplog.at_level(logging.INFO, logger="barnabas.net"):
        run(test)
    assert "did not take their replies in time" in caplog.text


def test_many_connections() -> None:
    async def test() -> None:
        async with network(Handler()) as net:
            clients = [await net.connect() for _ in range(200)]
            responses = await asyncio.gather(*(client.ask(b"%d" % number) for number, client in enumerate(clients)))
            assert responses == [b"%d" % number for number in range(200)]

    run(test)


OUT_OF_DESCRIPTORS = """
import asyncio, logging, os, resource, sys
from net_harness import Handler
from barnabas.net.server import Server
from barnabas.net.settings import Listener

async def main():
    server = Server(Handler(), [Listener(host="127.0.0.1", port=0)])
    await server.start()
    taken = []
    if "take all" in sys.argv:
        taken = [os.dup(0) for _ in range(39 - os.dup(0))]
    print(server.port, flush=True)
    for _ in range(2):
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
        for fd in taken:
            os.close(fd)
        taken = []
    await server.stop(0)

logging.basicConfig(level=logging.INFO)
resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
asyncio.run(main())
"""


@contextmanager
def server_short_of_descriptors(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A process that may have 40 files open; at the end it must be well, and have said once that it ran out."""
    paths = [str(Path(__file__).parents[2] / "support"), *sys.path]
    process = subprocess.Popen(
        [sys.executable, "-c", OUT_OF_DESCRIPTORS, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )
    try:
        assert process.stdout is not None
        yield process, int(process.stdout.readline())
        _, errors = process.communicate("\n\n")
    finally:
        process.kill()
    assert process.returncode == 0, errors
    assert errors.count("Too many open files") == 1, errors


def test_without_file_descriptors_newcomers_wait_and_the_rest_is_served() -> None:
    with server_short_of_descriptors() as (_, port):
        clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(60)]
        for client in clients:
            client.sendall(framed(b"x"))
        for client in clients[:20]:
            assert client.recv(100) == framed(b"x")
        for client in clients[:30]:  # room for those who wait
            client.close()
        for client in clients[30:]:
            assert client.recv(100) == framed(b"x")
            client.close()


def test_accepting_goes_on_when_descriptors_come_free_elsewhere() -> None:
    with (
        server_short_of_descriptors("take all") as (process, port),
        socket.create_connection(("127.0.0.1", port)) as client,
    ):
        client.sendall(framed(b"x"))
        client.settimeout(0.3)
        with pytest.raises(TimeoutError):
            client.recv(100)
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
        client.settimeout(None)
        assert client.recv(100) == framed(b"x")
