"""In a child process the I/O thread is missing, and a lock may be held by a thread that is not there: nothing waits."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from fake_cluster import FakeCluster
from produce_broker import ProduceBroker
from sending import Sending

from barnabas import Admin, aio
from barnabas.client.errors import IllegalStateError


@pytest.fixture
def made() -> Iterator[Sending]:
    cluster = FakeCluster(topics={"t": 1})
    ProduceBroker(cluster)
    made = Sending(cluster, linger_ms=60_000, delivery_timeout_ms=120_000)
    yield made
    made.close()


def test_a_record_that_was_on_its_way_is_the_parents(made: Sending, monkeypatch: pytest.MonkeyPatch) -> None:
    acknowledged = made.send("t", b"0")
    made.flush()
    waiting = made.send("t", b"1")

    async def wait() -> None:
        await waiting

    with monkeypatch.context() as child, made.core.accumulator._lock:
        child.setattr("os.getpid", lambda: -1)
        assert acknowledged.result().offset == 0
        assert not waiting.done()
        for ask in (waiting.result, waiting.exception, lambda: asyncio.run(wait())):
            with pytest.raises(IllegalStateError, match="parent process"):
                ask()
        with pytest.raises(IllegalStateError, match="parent process"):
            waiting.add_callback(print)
    made.flush()
    assert waiting.result(0).offset == 1


def test_leaving_a_with_block_is_quiet(made: Sending, monkeypatch: pytest.MonkeyPatch) -> None:
    delivery = made.send("t", b"0")
    admin, aio_admin = Admin("localhost:1"), aio.Admin("localhost:1")

    async def leave() -> None:
        async with made.aio_producer(), aio_admin:
            pass

    with monkeypatch.context() as child:
        child.setattr("os.getpid", lambda: -1)
        with made.producer(), admin:
            pass
        asyncio.run(leave())
    admin.close()
    asyncio.run(aio_admin.close())
    made.flush()
    assert delivery.result(0).offset == 0, "the parent's goes on"
