"""Many tabs, slow browsers, a cluster that goes and comes back: what the console does with its means."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest

pytest.importorskip("starlette", reason="the console needs starlette")
pytest.importorskip("pyarrow", reason="the console needs pyarrow")

from console_client import Visitor, run_console

from barnabas import Producer
from barnabas.console import collector, shared_responses
from barnabas.console.api import messages
from barnabas.console.console import Console
from barnabas.console.scan import ROWS_PER_EVENT
from barnabas.console.searches import MOST, MOST_PER_SESSION, Searches, TooManySearches
from barnabas.console.shared_responses import SharedResponses
from barnabas.testing import Broker


def test_lag_is_at_most_two_seconds_old() -> None:
    assert collector.FRESH_SECONDS + collector.ENDS_SECONDS + shared_responses.FRESH_SECONDS <= 2.0


class TestSharedResponses:
    def test_one_piece_of_work_for_all_who_ask_at_once(self) -> None:
        async def run() -> None:
            now, calls, gate = [0.0], [0], asyncio.Event()
            shared = SharedResponses(lambda: now[0])

            async def work() -> int:
                calls[0] += 1
                await gate.wait()
                return calls[0]

            asking = [asyncio.ensure_future(shared.get("a", work)) for _ in range(1000)]
            other = asyncio.ensure_future(shared.get("b", work))
            await asyncio.sleep(0)
            asking[0].cancel()  # a tab that is closed
            gate.set()
            assert set(await asyncio.gather(*asking[1:])) == {1 + 1} or calls[0] == 2
            await other
            assert calls[0] == 2, "one for each question"
            now[0] += 0.3
            await shared.get("a", work)
            assert calls[0] == 2
            now[0] += 0.3
            await shared.get("a", work)
            assert calls[0] == 3, "an old one is made again"
            shared.forget()
            await shared.get("a", work)
            assert calls[0] == 4, "so is one from before a change"

        asyncio.run(run())

    def test_a_failure_is_not_kept(self) -> None:
        async def run() -> None:
            shared, calls = SharedResponses(lambda: 0.0), 0

            async def work() -> int:
                nonlocal calls
                calls += 1
                if calls == 1:
                    raise LookupError("x")
                return calls

            with pytest.raises(LookupError):
                await shared.get("a", work)
            await asyncio.sleep(0)
            assert await shared.get("a", work) == 2

        asyncio.run(run())

    def test_memory_is_bounded(self) -> None:
        async def run() -> None:
            shared = SharedResponses(lambda: 0.0)

            async def work() -> int:
                return 1

            for number in range(3000):
                await shared.get(number, work)
            assert len(shared._known) <= 500

        asyncio.run(run())


def test_searches_are_counted() -> None:
    async def run() -> None:
        searches, release = Searches(), threading.Event()
        running = [asyncio.ensure_future(searches.begin("a", release.wait)) for _ in range(MOST_PER_SESSION)]  # type: ignore[arg-type]
        with pytest.raises(TooManySearches, match="of yours"):
            searches.begin("a", release.wait)  # type: ignore[arg-type]
        for number in range(MOST - MOST_PER_SESSION):
            running.append(asyncio.ensure_future(searches.begin(f"b{number}", release.wait)))  # type: ignore[arg-type]
        with pytest.raises(TooManySearches, match="try again"):
            searches.begin("c", release.wait)  # type: ignore[arg-type]
        release.set()
        await asyncio.gather(*running)
        await searches.begin("a", release.wait)  # type: ignore[arg-type]
        searches.close()

    asyncio.run(run())


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"message.max.bytes": 12_000_000}) as broker:
        broker.create_topic("large", 1)
        broker.create_topic("deep", 1)
        with Producer(broker.bootstrap, max_request_size=12_000_000) as producer:
            producer.send("large", b"x" * 10_000_000 + b"needle")
            producer.send("large", json.dumps({"a": "y" * 10_000_000}).encode())
            for value in (b"[" * 100_000, b'{"a":' * 100_000, b"\xff\x00\xfe", b"a" * 5_000 + b"b"):
                producer.send("deep", value)
            producer.flush()
        yield broker


def rows_of(body: bytes) -> list[Any]:
    found = []
    for block in body.decode().split("\n\n")[:-1]:
        kind, data = block.split("\n")
        assert kind != "event: fault", data
        found += json.loads(data.removeprefix("data: ")).get("rows", [])
    return found


def test_large_and_deep_messages(broker: Broker) -> None:
    async def work(visitor: Visitor, console: Console) -> None:
        search = "/api/topics/large/messages?start=oldest&filter="
        response = await visitor.get(search + quote('"needle"'))
        assert [row["offset"] for row in rows_of(response.body)] == [0] and len(response.body) < 10_000
        assert len(rows_of((await visitor.get(search + quote('value.a startswith "yyy"'))).body)) == 1
        whole = await visitor.get("/api/topics/large/message?partition=0&offset=0")
        assert whole.json["value"]["cut"] and len(whole.body) < 2 << 20
        deep = "/api/topics/deep/messages?start=oldest&filter="
        assert rows_of((await visitor.get(deep + quote("value.a == 1"))).body) == []
        assert len(rows_of((await visitor.get(deep)).body)) == 4

    run_console({"bootstrap.servers": broker.bootstrap}, work)


@pytest.mark.parametrize("expression", ["^(a+)+$", "^(a|a)*$", "(a*)*c", "(.*)*x", "(?:a?){200}a{200}c"])
def test_expressions_that_explode_elsewhere(broker: Broker, expression: str) -> None:
    async def work(visitor: Visitor, console: Console) -> None:
        path = "/api/topics/deep/messages?start=oldest&filter=" + quote(f'value matches "{expression}"')
        assert (await visitor.get(path)).status in (200, 400)

    run_console({"bootstrap.servers": broker.bootstrap}, work)


def test_an_expression_that_needs_too_much_memory_is_refused(broker: Broker) -> None:
    async def work(visitor: Visitor, console: Console) -> None:
        path = "/api/topics/deep/messages?filter=" + quote('value matches "((a{900}){900}){900}"')
        assert (await visitor.get(path)).status == 400

    run_console({"bootstrap.servers": broker.bootstrap}, work)


def test_a_crowd_of_live_tabs_gets_told(broker: Broker) -> None:
    async def work(visitor: Visitor, console: Console) -> None:
        await visitor.open()
        path = "/api/topics/deep/messages?start=live"
        started = asyncio.Semaphore(0)

        class Tab(Visitor):
            async def on_message(self, message: Any) -> None:
                started.release()

        tabs = []
        for _ in range(MOST_PER_SESSION):
            tab = Tab(visitor.app)
            tab.cookie = visitor.cookie
            tabs.append(asyncio.create_task(tab.get(path)))
        for _ in range(2 * MOST_PER_SESSION):
            await started.acquire()
        answers = [await visitor.get(path) for _ in range(200)]
        assert all(b"of yours are running" in each.body for each in answers)
        assert (await visitor.get("/api/overview")).status == 200
        for task in tabs:
            task.cancel()
        await asyncio.gather(*tabs, return_exceptions=True)

    run_console({"bootstrap.servers": broker.bootstrap}, work)


def test_a_browser_that_takes_nothing_loses_its_search(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "SLOWEST_SECONDS", 0.3)
    broker.create_topic("many", 1)
    with Producer(broker.bootstrap) as producer:
        for number in range(10_000):
            producer.send("many", b"%d" % number)
        producer.flush()

    async def work(visitor: Visitor, console: Console) -> None:
        goes_on, chunks = asyncio.Event(), 0

        class Slow(Visitor):
            async def on_message(self, message: Any) -> None:
                nonlocal chunks
                chunks += 1
                if chunks == 3:
                    await goes_on.wait()

        search = asyncio.create_task(Slow(visitor.app).get("/api/topics/many/messages?start=oldest&limit=10000"))
        while chunks < 3 or console.searches._running:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        goes_on.set()
        response = await search
        assert 0 < len(rows_of(response.body)) <= (messages.EVENTS_AHEAD + 3) * ROWS_PER_EVENT, "no more was kept"

    run_console({"bootstrap.servers": broker.bootstrap}, work)


def test_the_broker_goes_and_comes_back() -> None:
    with Broker() as broker:
        broker.create_topic("orders", 1)

        async def work(visitor: Visitor, console: Console) -> None:
            async def error() -> Any:
                return (await visitor.get("/api/overview")).json["error"]

            assert await error() is None
            await asyncio.to_thread(broker.stop)
            while await error() is None:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
            overview = (await visitor.get("/api/overview")).json
            assert overview["problems"][0]["text"].startswith("The cluster does not respond")
            assert [each["name"] for each in (await visitor.get("/api/topics")).json["items"]] == ["orders"]
            await asyncio.to_thread(broker.start)
            while await error() is not None:  # noqa: ASYNC110
                await asyncio.sleep(0.05)

        run_console({"bootstrap.servers": broker.bootstrap}, work)
