"""A connection's turn ends by time as well as by frames, so that slow requests in a row do not hold up the others."""

from unittest.mock import patch

import pytest
from barnabas.net.frames import TURN_MS
from net_harness import Client, Handler, Network, framed, run

from barnabas.clock import ManualClock
from barnabas.net.connection import Connection
from barnabas.net.server import Server
from barnabas.net.settings import Listener


@pytest.mark.parametrize(("frame_ms", "turns"), [(0, 1), (TURN_MS // 2, 5), (TURN_MS, 10), (1000, 10)])
def test_a_turn_is_bounded_by_time(frame_ms: int, turns: int) -> None:
    async def test() -> None:
        clock = ManualClock()

        def respond(connection: Connection, payload: bytes) -> bytes:
            clock.advance(frame_ms)
            return framed(payload)

        handler = Handler(respond)
        server = Server(handler, [Listener(host="127.0.0.1", port=0)], clock=clock)
        await server.start()
        network = Network(server)
        give_way = Connection.give_way
        given: list[Connection] = []

        def count(connection: Connection) -> None:
            given.append(connection)
            give_way(connection)

        with patch.object(Connection, "give_way", count):
            client: Client = await network.connect()
            await client.send(framed(b"x") * 10)
            for _ in range(10):
                assert await client.read_frame() == b"x"
        await network.close()
        assert len(given) == turns - 1

    run(test)
