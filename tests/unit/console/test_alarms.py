"""Alarms: rules, hysteresis, silence, and what the channels send."""

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from barnabas.client.admin.types import LogDirDescription
from barnabas.console.alarms.alarms import Alarm, AlarmEvent, Alarms
from barnabas.console.alarms.channels import Channel, alertmanager_json, message_text
from barnabas.console.alarms.event_log import EventLog
from barnabas.console.alarms.notifier import Notifier
from barnabas.console.alarms.rules import (
    DEFAULT_RULES,
    KINDS,
    AlarmFileError,
    ChannelSettings,
    Rule,
    read_alarm_file,
)
from barnabas.console.database import Database
from barnabas.console.view import ClusterView, GroupView, TopicView


class Told:
    """Remembers what a real channel would be given."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def __call__(self, alarms: list[Alarm]) -> None:
        self.lines += [f"{'on' if each.ended_at is None else 'off'} {each.subject}" for each in alarms]


def view_with(lag: int = 0, members: int = 1, rate: float = 0.0) -> ClusterView:
    group = GroupView("billing", None, None, "consumer", members=members, lag=lag)
    topic = TopicView("orders", "id", False, (), [], [], rate=rate, measured_at=1.0)
    return ClusterView(collected_at=1.0, groups={"billing": group}, topics={"orders": topic})


def test_hysteresis() -> None:
    told = Told()
    alarms = Alarms((Rule(name="late", kind="lag", above=100, clear=50, for_seconds=10),), told)
    for now, lag in ((0, 101), (5, 200), (6, 100), (7, 101), (16, 101)):
        alarms.evaluate(view_with(lag), now)
        assert told.lines == []  # never 10 s in a row
    alarms.evaluate(view_with(150), 17)
    assert told.lines == ["on billing"]
    alarms.evaluate(view_with(60), 18)
    assert [each.value for each in alarms.firing] == [60]
    alarms.evaluate(view_with(50), 19)
    assert told.lines == ["on billing", "off billing"]
    assert [each.event for each in alarms.events] == ["firing", "resolved"]


def test_a_subject_that_is_gone_ends_its_alarm() -> None:
    told = Told()
    alarms = Alarms((Rule(name="late", kind="lag", above=1),), told)
    alarms.evaluate(view_with(5), 0)
    alarms.evaluate(ClusterView(collected_at=1.0), 1)
    assert told.lines == ["on billing", "off billing"]


def test_silence() -> None:
    told = Told()
    alarms = Alarms((Rule(name="late", kind="lag", above=1),), told)
    alarms.silence("late", "billing", 100)
    alarms.evaluate(view_with(5), 0)
    assert (told.lines, len(alarms.firing), len(alarms.silences(99))) == ([], 1, 1)
    alarms.evaluate(view_with(0), 101)
    assert (told.lines, alarms.silences(101)) == (["off billing"], [])


def test_what_is_known_of_a_cluster_that_does_not_respond_is_not_judged() -> None:
    told = Told()
    alarms = Alarms((Rule(name="late", kind="lag", above=1), Rule(name="down", kind="unreachable", above=15)), told)
    view = view_with(5)
    view.error, view.error_since = "refused", 100.0
    alarms.evaluate(view, 115)
    assert told.lines == []
    alarms.evaluate(view, 116)
    assert told.lines == ["on cluster"]


@pytest.mark.parametrize(
    ("kind", "bad", "good"),
    [
        ("lag-not-falling", {"lag": 10}, {"lag": 9}),
        ("no-traffic", {"rate": 0.0}, {"rate": 1.0}),
        ("consumer-gone", {"lag": 1, "members": 0}, {"lag": 1, "members": 1}),
    ],
)
def test_how_long_something_has_lasted(kind: str, bad: dict[str, Any], good: dict[str, Any]) -> None:
    told = Told()
    alarms = Alarms((Rule(name="x", kind=kind, above=60),), told)
    for now in (0, 30, 60):
        alarms.evaluate(view_with(**bad), now)
    assert told.lines == []
    alarms.evaluate(view_with(**bad), 61)
    assert [each[:3] for each in told.lines] == ["on "]
    alarms.evaluate(view_with(**good), 62)
    assert [each[:3] for each in told.lines] == ["on ", "off"]


def test_disk() -> None:
    told = Told()
    alarms = Alarms((Rule(name="full", kind="disk", above=90),), told)
    for usable in (10, 9):
        directory = LogDirDescription(path="/data", error=None, replicas={}, total_bytes=100, usable_bytes=usable)
        alarms.evaluate(ClusterView(collected_at=1.0, log_dirs={3: {"/data": directory}}), 0)
    assert told.lines == ["on broker 3 /data"]


def test_every_kind_can_be_evaluated() -> None:
    alarms = Alarms(tuple(Rule(name=kind, kind=kind) for kind in KINDS), Told())
    alarms.evaluate(view_with(5, 0), 0)
    assert {each.rule.kind for each in alarms.firing} == {"lag"}


# --- the file ---
def test_a_file_of_alarms(tmp_path: Path) -> None:
    path = tmp_path / "alarms.toml"
    path.write_text(
        """
        [[alarm]]
        name = "billing is late"
        kind = "time-lag"
        match = "billing*"
        above = 60
        clear = 30
        for = 5
        [[channel]]
        kind = "mail"
        host = "mail.example"
        from = "a@example"
        to = ["b@example"]
        """
    )
    settings = read_alarm_file(path)
    expected = Rule(name="billing is late", kind="time-lag", match="billing*", above=60, clear=30, for_seconds=5)
    assert settings.rules == (expected,)
    assert settings.channels[0].kind == "mail"
    path.write_text("")
    assert read_alarm_file(path).rules == DEFAULT_RULES


def test_all_faults_of_a_file_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "alarms.toml"
    path.write_text(
        """
        other = 1
        [[alarm]]
        kind = "lags"
        above = "many"
        [[alarm]]
        name = "a"
        kind = "lag"
        above = 1
        clear = 2
        [[alarm]]
        name = "a"
        kind = "lag"
        [[channel]]
        kind = "webhook"
        url = "file:///etc/passwd"
        [[channel]]
        kind = "mail"
        to = []
        [[channel]]
        kind = "pigeon"
        """
    )
    with pytest.raises(AlarmFileError) as raised:
        read_alarm_file(path)
    for fault in (
        "unknown: other",
        "alarm 1: kind is one of",
        "alarm 1: above is a number",
        "alarm 2: clear is higher",
        "two alarms are called 'a'",
        "channel 1: url begins with",
        "channel 2: from is missing",
        "channel 2: host is missing",
        "channel 2: to is a list",
        "channel 3: kind is one of",
    ):
        assert fault in str(raised.value)


# --- channels ---
@pytest.fixture
def server() -> Iterator[HTTPServer]:
    """Keeps what is posted; replies with `status` and `reply`."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            served.posted.append((self.path, body))  # type: ignore[attr-defined]
            self.send_response(served.status)  # type: ignore[attr-defined]
            self.send_header("location", "/elsewhere")
            self.end_headers()
            self.wfile.write(served.reply)  # type: ignore[attr-defined]

        def log_message(self, *args: Any) -> None: ...

    served = HTTPServer(("127.0.0.1", 0), Handler)
    served.posted, served.status, served.reply = [], 200, b"{}"  # type: ignore[attr-defined]
    thread = threading.Thread(target=served.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield served
    served.shutdown()
    thread.join()
    served.server_close()


def channel(server: HTTPServer, kind: str, **more: str) -> Channel:
    url = f"http://127.0.0.1:{server.server_port}/hook?key=secret"
    return Channel(ChannelSettings(kind, {"url": url, **more}), sleep=lambda _: None)


ALARM = Alarm(Rule(name="late", kind="lag", above=10), "bil\nling", 12, 0.0, is_firing=True)


def test_webhook(server: HTTPServer) -> None:
    hook = channel(server, "webhook")
    hook.send([ALARM])
    ((path, body),) = server.posted  # type: ignore[attr-defined]
    assert (path, body, hook.last_error) == ("/hook?key=secret", alertmanager_json([ALARM]), None)
    assert (body["version"], body["status"]) == ("4", "firing")
    assert body["alerts"][0]["labels"] == {"alertname": "late", "kind": "lag", "subject": "bil\nling"}
    assert (body["alerts"][0]["startsAt"], body["alerts"][0]["endsAt"]) == (
        "1970-01-01T00:00:00.000Z",
        "0001-01-01T00:00:00Z",
    )
    assert hook.place == f"127.0.0.1:{server.server_port}"


def test_chat_services(server: HTTPServer) -> None:
    channel(server, "wecom").send([ALARM])
    channel(server, "dingtalk", secret="s").send([ALARM])
    channel(server, "feishu", secret="s").send([ALARM])
    (_, wecom), (path, dingtalk), (_, feishu) = server.posted  # type: ignore[attr-defined]
    assert wecom == dingtalk == {"msgtype": "text", "text": {"content": message_text([ALARM])}}
    assert "&timestamp=" in path and "&sign=" in path
    assert (feishu["msg_type"], feishu["content"]) == ("text", {"text": message_text([ALARM])})
    assert feishu["sign"]


@pytest.mark.parametrize(("status", "reply"), [(500, b"{}"), (302, b"{}"), (200, b'{"errcode": 310000}'), (200, b"<")])
def test_a_channel_that_refuses_is_tried_again_and_named(server: HTTPServer, status: int, reply: bytes) -> None:
    server.status, server.reply = status, reply  # type: ignore[attr-defined]
    hook = channel(server, "wecom")
    hook.send([ALARM])
    assert len(server.posted) == 3  # type: ignore[attr-defined]
    assert hook.last_error
    server.status, server.reply = 200, b"{}"  # type: ignore[attr-defined]
    hook.send([ALARM])
    assert hook.last_error is None


def test_mail(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Any] = []

    class Smtp:
        def __init__(self, host: str, port: int, timeout: float) -> None:
            sent.append((host, port))

        def __enter__(self) -> "Smtp":
            return self

        def __exit__(self, *_: object) -> None: ...

        def starttls(self) -> None:
            sent.append("starttls")

        def login(self, user: str, password: str) -> None:
            sent.append((user, password))

        def send_message(self, message: Any) -> None:
            sent.append(message)

    monkeypatch.setattr("smtplib.SMTP", Smtp)
    values = {"host": "mail.example", "from": "a@example", "to": ["b@example", "c@example"], "user": "u"}
    post = Channel(ChannelSettings("mail", values))
    post.send([ALARM])
    assert post.last_error is None
    assert sent[:3] == [("mail.example", 25), "starttls", ("u", "")]
    assert (sent[3]["To"], sent[3]["Subject"]) == ("b@example, c@example", "Barnabas: 1 firing, 0 resolved")
    assert "late" in sent[3].get_content()


def test_what_begins_together_is_one_message() -> None:
    messages: list[list[str]] = []

    class Kept(Channel):
        def send(self, alarms: Any) -> None:
            messages.append([each.subject for each in alarms])
            loop.call_soon_threadsafe(arrived.set)

    async def run() -> None:
        nonlocal loop
        loop = asyncio.get_running_loop()
        notifier = Notifier([Kept(ChannelSettings("webhook", {"url": "http://x"}))], group_seconds=0)
        notifier.start()
        notifier.tell([ALARM, ALARM])
        await arrived.wait()
        await notifier.close()

    loop: Any = None
    arrived = asyncio.Event()
    asyncio.run(run())
    assert messages == [["bil\nling", "bil\nling"]]


def test_events_are_kept_in_the_file(tmp_path: Path) -> None:
    database = Database(tmp_path / "history.sqlite")
    log = EventLog(database)
    old, first, second = (AlarmEvent(at, "late", "x", "firing", "text") for at in (0.0, 1e9, 1e9 + 1))
    for event in (old, first, second):
        log.add(event)
    assert log.newest() == [first, second]
    database.close()
