"""The whole console in front of a real broker, asked as a browser asks it, without a socket in between."""

import asyncio
import gzip
import hashlib
import json
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest

pytest.importorskip("starlette", reason="the console needs starlette")
pytest.importorskip("pyarrow", reason="the console needs pyarrow")

from barnabas import Consumer, Producer
from barnabas.console.alarms.rules import AlarmSettings, ChannelSettings, Rule
from barnabas.console.app import make_app, static_files
from barnabas.console.console import Console
from barnabas.console.database import Database
from barnabas.console.history_store import HistoryStore
from barnabas.console.settings import ConsoleSettings
from barnabas.testing import Broker

HOST = "127.0.0.1:9080"
GROUP = "billing/<script>"
SCRIPT = b"<script>alert(1)</script>"


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Browser:
    """Keeps the session's cookie and token."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self._cookie = ""
        self.token = ""

    async def get(self, path: str, **headers: str) -> Answer:
        return await self._ask("GET", path, b"", headers)

    async def post(self, path: str, body: object, **headers: str) -> Answer:
        return await self._ask("POST", path, json.dumps(body).encode(), {"x-csrf-token": self.token, **headers})

    async def _ask(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> Answer:
        sent = {"host": HOST, "cookie": self._cookie, **headers}
        plain, _, query = path.partition("?")
        scope = {
            "type": "http",
            "method": method,
            "path": plain,
            "raw_path": plain.encode(),
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in sent.items() if value],
            "http_version": "1.1",
            "scheme": "http",
        }
        given = [{"type": "http.request", "body": body, "more_body": False}]
        answers: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            if given:
                return given.pop()
            await asyncio.Event().wait()  # the browser stays
            return {}

        async def send(message: dict[str, Any]) -> None:
            answers.append(message)

        await self._app(scope, receive, send)
        received = {name.decode(): value.decode() for name, value in answers[0]["headers"]}
        if "set-cookie" in received:
            self._cookie = received["set-cookie"].partition(";")[0]
        return Answer(answers[0]["status"], received, b"".join(each.get("body", b"") for each in answers[1:]))


@pytest.fixture(scope="module")
def broker() -> Any:
    with Broker() as broker:
        broker.create_topic("orders", 2)
        with Producer(broker.bootstrap) as producer:
            for number in range(100):
                value = json.dumps({"price": number}).encode()
                producer.send("orders", value, key=str(number).encode(), partition=number % 2, headers=[("by", SCRIPT)])
            producer.send("orders", b"\xff\xfe" * 5_000, key=SCRIPT, partition=0)
            producer.flush()
        with Consumer(broker.bootstrap, group_id=GROUP, enable_auto_commit=False) as consumer:
            consumer.assign([("orders", 0), ("orders", 1)])
            consumer.commit({("orders", 0): 21, ("orders", 1): 50})
        yield broker


def in_console(broker: Broker, work: Callable[[Browser, Console], Awaitable[None]], **options: Any) -> None:
    async def run() -> None:
        console = Console({"bootstrap.servers": broker.bootstrap}, "127.0.0.1", 9080, ConsoleSettings(**options))
        console.start()
        try:
            await console.collector.first_look.wait()
            await console.collector.refresh()
            browser = Browser(make_app(console))
            await browser.get("/")
            browser.token = (await browser.get("/api/session")).json["token"]
            await work(browser, console)
        finally:
            await console.close()

    asyncio.run(run())


def events(answer: Answer) -> list[tuple[str, Any]]:
    found = []
    for block in answer.body.decode().split("\n\n")[:-1]:
        kind, data = block.split("\n")
        found.append((kind.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found


def found_rows(answer: Answer) -> list[Any]:
    return [row for kind, content in events(answer) if kind == "rows" for row in content["rows"]]


def test_overview_topics_and_groups(broker: Broker) -> None:
    async def work(browser: Browser, console: Console) -> None:
        overview = (await browser.get("/api/overview")).json
        assert (overview["brokers"], overview["topics"], overview["problems"]) == (1, 1, [])
        (topic,) = (await browser.get("/api/topics?filter=ORD")).json["items"]
        assert (topic["records"], topic["lag"], topic["groups"]) == (101, 30, 1)
        detail = (await browser.get("/api/topics/orders")).json
        assert [row["end"] for row in detail["partitionRows"]] == [51, 50]
        (group,) = (await browser.get("/api/groups?sort=lag&order=desc")).json["items"]
        assert (group["groupId"], group["lag"], group["state"]) == (GROUP, 30, "Empty")
        rows = (await browser.get("/api/group?id=" + quote(GROUP))).json["partitionRows"]
        assert [(row["offset"], row["lag"]) for row in rows] == [(21, 30), (50, 0)]
        assert (await browser.get("/api/brokers")).json["items"][0]["leaders"] >= 2

    in_console(broker, work)


def test_time_lag_is_the_age_of_the_first_record_not_committed(broker: Broker) -> None:
    truth = next(
        record.timestamp for record in broker.records("orders") if (record.partition, record.offset) == (0, 21)
    )

    async def work(browser: Browser, console: Console) -> None:
        group = console.collector.view.groups[GROUP]
        while group.lag_seconds is None:  # a look-up is given up after two seconds, and made again
            await console.collector.ensure_groups([GROUP], max_age=0)
        (known,) = [at for (partition, offset), at in console.collector._times._known.items() if offset == 21]
        assert known == truth

    in_console(broker, work)


def test_messages(broker: Broker) -> None:
    async def work(browser: Browser, console: Console) -> None:
        path = "/api/topics/orders/messages?"
        newest = found_rows(await browser.get(path + "start=newest&limit=10&partition=1"))
        assert [row["offset"] for row in newest] == list(range(49, 39, -1))
        matched = found_rows(await browser.get(path + "start=oldest&filter=" + quote("value.price >= 98")))
        assert sorted(json.loads(row["value"]["text"])["price"] for row in matched) == [98, 99]
        at = found_rows(await browser.get(path + "start=offset&at=48&partition=1"))
        assert [row["offset"] for row in at] == [48, 49]
        assert found_rows(await browser.get(path + "start=time&at=99999999999999")) == []
        whole = await browser.get(path + "start=oldest&limit=10000")
        assert len(found_rows(whole)) == 101
        assert events(whole)[-1][0] == "done"
        assert (events(whole)[-1][1]["scanned"], events(whole)[-1][1]["matched"]) == (101, 101)
        binary = (await browser.get("/api/topics/orders/message?partition=0&offset=50")).json
        assert (binary["value"]["kind"], binary["value"]["size"], binary["value"]["cut"]) == ("hex", 10_000, True)
        assert binary["key"]["text"] == SCRIPT.decode()

    in_console(broker, work)


def test_bad_requests_say_what_is_wrong(broker: Broker) -> None:
    async def work(browser: Browser, console: Console) -> None:
        wrong = await browser.get("/api/topics/orders/messages?filter=" + quote("colour == 1"))
        assert (wrong.status, wrong.json["error"]["position"]) == (400, 0)
        for path in ("/api/topics?sort=x", "/api/topics?page=x", "/api/topics/orders/messages?start=never"):
            assert (await browser.get(path)).status == 400
        for path in ("/api/topics/none", "/api/group?id=none", "/api/topics/orders/message?partition=1&offset=999"):
            assert (await browser.get(path)).status == 404

    in_console(broker, work)


def test_paths_outside_of_the_page_do_not_exist(broker: Broker) -> None:
    async def work(browser: Browser, console: Console) -> None:
        for path in ("/static/../app.py", "/static/%2e%2e/app.py", "/static//etc/passwd", "/api", "/api//topics", "/x"):
            answer = await browser.get(path)
            assert (answer.status, b"import" in answer.body) == (404, False)
            assert answer.headers["content-security-policy"]

    in_console(broker, work)


def test_changes(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    async def work(browser: Browser, console: Console) -> None:
        new = {"name": "made-here", "partitions": 3}
        assert (await browser.post("/api/topics", new, **{"x-csrf-token": "x"})).status == 403
        assert (await browser.post("/api/topics", new, origin="http://evil.example")).status == 403
        assert "made-here" not in console.collector.view.topics
        assert (await browser.post("/api/topics", new)).status == 200
        assert len(console.collector.view.topics["made-here"].partitions) == 3
        setting = {"name": "retention.ms", "value": "60000"}
        assert (await browser.post("/api/topics/made-here/settings", setting)).status == 200
        entries = {each["name"]: each for each in (await browser.get("/api/topics/made-here/settings")).json["items"]}
        assert (entries["retention.ms"]["value"], entries["retention.ms"]["isDefault"]) == ("60000", False)
        refused = await browser.post("/api/topics/made-here/settings", {"name": "retention.ms", "value": "soon"})
        assert (refused.status, refused.json["error"]["code"]) == (502, "INVALID_CONFIG")
        assert (await browser.post("/api/topics/made-here/delete", {"confirm": "other"})).status == 400
        assert (await browser.post("/api/topics/made-here/delete", {"confirm": "made-here"})).status == 200
        assert "made-here" not in console.collector.view.topics

    with caplog.at_level("INFO", logger="barnabas.console.audit"):
        in_console(broker, work)
    assert [each.getMessage() for each in caplog.records if each.name == "barnabas.console.audit"] == [
        "- from ?: POST '/api/topics': refused",
        "- from ?: POST '/api/topics': refused",
        "- from ?: create topic 'made-here': done",
        "- from ?: set 'made-here retention.ms=60000': done",
        "- from ?: POST '/api/topics/made-here/settings': failed: topic made-here: retention.ms: 'soon' is not allowed,"
        " it must be a whole number (long)",
        "- from ?: POST '/api/topics/made-here/delete': failed: the name does not match",
        "- from ?: delete topic 'made-here': done",
    ]


def test_read_only(broker: Broker) -> None:
    async def work(browser: Browser, console: Console) -> None:
        answer = await browser.post("/api/topics", {"name": "not-made"})
        assert (answer.status, answer.json["error"]["message"]) == (403, "this console is read-only")

    in_console(broker, work, read_only=True)


def test_the_page_is_small_and_the_vendored_file_is_the_one_that_was_made() -> None:
    files = static_files()
    assert sum(len(gzip.compress(body)) for body in files.values()) < 150_000
    sums = Path(__file__).parents[3] / "src/barnabas/console/static/vendor/SHA256SUMS"
    for line in sums.read_text().splitlines():
        digest, name = line.split()
        assert hashlib.sha256(files[f"vendor/{name}"]).hexdigest() == digest


def test_history_on_disk_and_alarms(broker: Broker, tmp_path: Path) -> None:
    alarms = AlarmSettings(
        rules=(Rule(name="late", kind="lag", above=10),),
        channels=(ChannelSettings("webhook", {"url": "http://user:secret@127.0.0.1:1/secret"}),),
    )

    async def work(browser: Browser, console: Console) -> None:
        console.alarms.evaluate(console.collector.view)
        found = (await browser.get("/api/alarms")).json
        assert [(each["rule"], each["subject"], each["value"]) for each in found["firing"]] == [("late", GROUP, 30)]
        assert [each["event"] for each in found["events"]] == ["firing"]
        assert "secret" not in json.dumps(found)
        assert (await browser.get("/api/overview")).json["alarms"] == 1
        wanted = {"rule": "late", "subject": GROUP, "minutes": 60}
        assert (await browser.post("/api/alarms/silence", wanted)).status == 200
        assert (await browser.get("/api/alarms")).json["firing"][0]["isSilenced"]
        assert (await browser.post("/api/alarms/silence", {**wanted, "rule": "x"})).status == 404
        assert (await browser.post("/api/alarms/silence", {**wanted, "minutes": -1})).status == 400
        assert "90d" in (await browser.get("/api/session")).json["ranges"]
        await console.collector._look_at_offsets()  # the first one came before the groups were known
        series = "/api/history?series=" + quote(f"group.lag/{GROUP}")
        assert any((await browser.get(series + "&range=6h")).json["values"])
        assert (await browser.get(series + "&range=7y")).status == 400

    settings = {"history": tmp_path / "history.sqlite", "alarms": alarms}
    in_console(broker, work, **settings)

    database = Database(tmp_path / "history.sqlite")
    now = time.time()
    assert any(value > 0 for value in HistoryStore(database).read(f"group.lag/{GROUP}", now - 3600, now)[1])
    database.close()

    async def again(browser: Browser, console: Console) -> None:
        events = (await browser.get("/api/alarms")).json["events"]
        assert events[-1]["subject"] == GROUP

    in_console(broker, again, **settings)


def test_clone_produce_and_empty(broker: Broker) -> None:
    async def work(browser: Browser, console: Console) -> None:
        assert (await browser.post("/api/topics", {"name": "first", "partitions": 2})).status == 200
        await browser.post("/api/topics/first/settings", {"name": "retention.ms", "value": "60000"})
        assert (await browser.post("/api/topics/first/clone", {"name": "second"})).status == 200
        assert (await browser.post("/api/topics/first/clone", {"name": "second"})).status == 502
        entries = (await browser.get("/api/topics/second/settings")).json["items"]
        own = {each["name"]: each["value"] for each in entries if each["source"] == "DYNAMIC_TOPIC_CONFIG"}
        assert (own, len(console.collector.view.topics["second"].partitions)) == ({"retention.ms": "60000"}, 2)
        record = {"key": "k", "value": SCRIPT.decode(), "partition": 1, "headers": [["by", "hand"]]}
        written = await browser.post("/api/topics/second/produce", record)
        assert (written.status, written.json) == (200, {"partition": 1, "offset": 0})
        assert (await browser.post("/api/topics/second/produce", {"partition": 1})).json["offset"] == 1
        for wrong in ([], {"key": 1}, {"partition": 2}, {"partition": True}, {"headers": [["a"]]}, {"headers": "x"}):
            assert (await browser.post("/api/topics/second/produce", wrong)).status == 400
        assert (await browser.post("/api/topics/none/produce", {})).status == 404
        assert (await browser.post("/api/topics/second/empty", {"confirm": "first"})).status == 400
        assert (await browser.get("/api/topics/second")).json["records"] == 2
        assert (await browser.post("/api/topics/second/empty", {"confirm": "second"})).status == 200
        emptied = (await browser.get("/api/topics/second")).json
        assert (emptied["records"], emptied["partitionRows"][1]["start"]) == (0, 2)
        for name in ("first", "second"):
            await browser.post(f"/api/topics/{name}/delete", {"confirm": name})

    in_console(broker, work)


def test_reset_and_delete_a_group(broker: Broker) -> None:
    with Consumer(broker.bootstrap, group_id="resets", enable_auto_commit=False) as consumer:
        consumer.assign([("orders", 0), ("orders", 1)])
        consumer.commit({("orders", 0): 10, ("orders", 1): 20})

    async def work(browser: Browser, console: Console) -> None:
        async def plan(more: str) -> list[tuple[int, int]]:
            answer = await browser.get("/api/group/plan?id=resets&" + more)
            return [(row["from"], row["to"]) for row in answer.json["items"]]

        assert await plan("to=earliest") == [(10, 0), (20, 0)]
        assert await plan("to=latest&topic=orders") == [(10, 51), (20, 50)]
        assert await plan("to=offset&value=50") == [(10, 50), (20, 50)]
        assert await plan("to=offset&value=5000") == [(10, 51), (20, 50)]
        assert await plan("to=time&value=0") == [(10, 0), (20, 0)]
        assert await plan("to=time&value=99999999999999") == [(10, 51), (20, 50)]
        assert await plan("to=earliest") == [(10, 0), (20, 0)]  # a plan changes nothing
        for path, status in (("to=never", 400), ("to=offset&value=x", 400), ("to=latest&topic=none", 404)):
            assert (await browser.get("/api/group/plan?id=resets&" + path)).status == status
        wanted = {"id": "resets", "offsets": [{"topic": "orders", "partition": 0, "offset": 50}]}
        assert (await browser.post("/api/group/offsets", wanted)).status == 200
        assert await plan("to=earliest") == [(50, 0), (20, 0)]
        for wrong in ([], [1], [{"topic": "orders", "partition": 0, "offset": -1}], [{"partition": 0, "offset": 1}]):
            assert (await browser.post("/api/group/offsets", {"id": "resets", "offsets": wrong})).status == 400
        assert (await browser.post("/api/group/delete", {"id": "resets", "confirm": "x"})).status == 400
        assert (await browser.post("/api/group/delete", {"id": "resets", "confirm": "resets"})).status == 200
        assert "resets" not in console.collector.view.groups

    in_console(broker, work)
