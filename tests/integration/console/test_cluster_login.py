"""Users of the cluster log in to the console: what they see and may change is what the cluster's rules say."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest

pytest.importorskip("starlette", reason="the console needs starlette")
pytest.importorskip("pyarrow", reason="the console needs pyarrow")

from console_client import Visitor, run_console

from barnabas import Admin, Consumer, Producer
from barnabas.client.admin.types import AclBinding, AclOperation, AclPermission, ResourceType
from barnabas.client.errors import AuthenticationError
from barnabas.console.alarms.alarms import Alarm
from barnabas.console.alarms.rules import Rule
from barnabas.console.console import Console
from barnabas.console.login.actor import Actor, acting
from barnabas.pipeline.checkpoint import claim_checkpoint
from barnabas.pipeline.routing_log import RoutingLog
from barnabas.testing import Broker

USERS = {"root": "root-secret", "ann": "ann-secret", "bob": "bob-secret"}
SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:root;User:barnabas-testing",
}

ROUTING = '[tables.orders]\nkind = "fact"\ntopic = "orders"\n[tables.salaries]\nkind = "fact"\ntopic = "salaries"\n'


def rule(kind: ResourceType, name: str, user: str, operation: AclOperation) -> AclBinding:
    return AclBinding(
        resource_type=kind,
        resource_name=name,
        principal=f"User:{user}",
        operation=operation,
        permission=AclPermission.ALLOW,
    )


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with secured_broker() as running:
        yield running


@pytest.fixture
def own_broker() -> Iterator[Broker]:
    """For a test whose topics and rules others would see."""
    with secured_broker() as running:
        yield running


@contextmanager
def secured_broker() -> Iterator[Broker]:
    with Broker(SETTINGS, listeners=["SASL_PLAINTEXT"], users=USERS) as broker:
        root = broker.client_options("root")
        with Admin(broker.bootstrap, **root) as admin:  # type: ignore[arg-type]
            for name in ("orders", "salaries"):
                admin.create_topic(name, 1)
            admin.create_acls(
                [
                    rule(ResourceType.TOPIC, "orders", "ann", AclOperation.READ),
                    rule(ResourceType.GROUP, "billing", "ann", AclOperation.DESCRIBE),
                    rule(ResourceType.TOPIC, "orders", "bob", AclOperation.ALL),
                ]
            )
        with Producer(broker.bootstrap, **root) as producer:  # type: ignore[arg-type]
            for topic in ("orders", "salaries"):
                producer.send(topic, b"1")
            producer.flush()
        for group in ("billing", "payroll"):
            with Consumer(broker.bootstrap, group_id=group, **root) as consumer:  # type: ignore[arg-type]
                consumer.commit({("orders", 0): 0, ("salaries", 0): 0})
        yield broker


def config(broker: Broker) -> dict[str, str]:
    options = {name.replace("_", "."): value for name, value in broker.client_options("root").items()}
    return {"bootstrap.servers": broker.bootstrap, **options}


def test_a_user_sees_what_the_cluster_shows_to_that_user(broker: Broker) -> None:
    async def work(visitor: Visitor, console: Console) -> None:
        assert (await visitor.get("/api/topics")).status == 401
        assert (await visitor.log_in("ann", "wrong")).status == 401
        assert (await visitor.log_in("nobody", "ann-secret")).status == 401
        assert (await visitor.log_in("ann", "ann-secret")).status == 200
        assert (await visitor.get("/api/session")).json["user"] == "ann"
        topics = (await visitor.get("/api/topics?internal=1")).json["items"]
        assert [each["name"] for each in topics] == ["orders"]
        groups = (await visitor.get("/api/groups")).json["items"]
        assert [(each["groupId"], each["topics"]) for each in groups] == [("billing", ["orders"])]
        assert (await visitor.get("/api/overview")).json["topics"] == 1
        for path in (
            "/api/topics/salaries",
            "/api/topics/salaries/messages",
            "/api/topics/salaries/settings",
            "/api/group?id=payroll",
            "/api/history?series=" + quote("topic.rate/salaries"),
            "/api/history?series=" + quote("group.lag/payroll"),
        ):
            assert (await visitor.get(path)).status == 404, path
        assert (await visitor.get("/api/history?series=" + quote("topic.rate/orders"))).status == 200
        messages = await visitor.get("/api/topics/orders/messages?start=oldest")
        assert b'"text": "1"' in messages.body
        everybody = {name for name in console.collector.view.topics if not name.startswith("__")}
        assert everybody == {"orders", "salaries"}, "the console itself still sees all"

    run_console(config(broker), work, cluster_login=True)


def test_changes_have_the_rights_of_the_user(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    async def work(visitor: Visitor, console: Console) -> None:
        setting = {"name": "retention.ms", "value": "3600000"}
        silence = {"rule": "disk nearly full", "subject": "x", "minutes": 1}
        assert (await visitor.log_in("ann", "ann-secret")).status == 200
        for path, body in (
            ("/api/topics", {"name": "new"}),
            ("/api/topics/orders/settings", setting),
            ("/api/topics/orders/produce", {"value": "x"}),
            ("/api/topics/orders/empty", {"confirm": "orders"}),
            ("/api/topics/orders/delete", {"confirm": "orders"}),
            ("/api/group/delete", {"id": "billing", "confirm": "billing"}),
            ("/api/alarms/silence", silence),
        ):
            assert (await visitor.post(path, body)).status == 403, path
        assert (await visitor.post("/api/logout", {})).status == 200
        assert (await visitor.log_in("bob", "bob-secret")).status == 200
        assert (await visitor.post("/api/topics/orders/settings", setting)).status == 200
        assert (await visitor.post("/api/topics/orders/produce", {"value": "x"})).status == 200
        assert (await visitor.post("/api/group/delete", {"id": "billing", "confirm": "billing"})).status == 403
        assert (await visitor.log_in("root", "root-secret")).status == 200
        if console.alarms.rules:
            silence["rule"] = console.alarms.rules[0].name
            assert (await visitor.post("/api/alarms/silence", silence)).status == 200

    with caplog.at_level("INFO", logger="barnabas.console.audit"):
        run_console(config(broker), work, cluster_login=True)
    lines = [each.getMessage() for each in caplog.records if each.name == "barnabas.console.audit"]
    assert "ann from 127.0.0.1: log in as 'ann': done" in lines
    assert any(line.startswith("ann from 127.0.0.1: POST '/api/topics': refused: ") for line in lines)
    assert "bob from 127.0.0.1: set 'orders retention.ms=3600000': done" in lines
    assert not any("secret" in line for line in lines)


def test_clients_of_users_end_with_their_last_session(broker: Broker) -> None:
    async def work(visitor: Visitor, console: Console) -> None:
        second = Visitor(visitor.app)
        for each in (visitor, second):
            assert (await each.log_in("ann", "ann-secret")).status == 200
        assert console._own_clients.users == 1
        await visitor.post("/api/logout", {})
        assert console._own_clients.users == 1 and (await second.get("/api/topics")).status == 200
        await second.post("/api/logout", {})
        await console.login._background.close()
        assert console._own_clients.users == 0
        for _ in range(3):
            await visitor.log_in("ann", "wrong")
        assert console._own_clients.users == 0

    run_console(config(broker), work, cluster_login=True)


def test_a_request_has_no_rights_after_its_user_has_logged_out(broker: Broker) -> None:
    async def work(visitor: Visitor, console: Console) -> None:
        assert (await visitor.log_in("ann", "ann-secret")).status == 200
        (session,) = console.login.sessions._sessions.values()
        with acting(Actor("id", "127.0.0.1", session)):
            assert console.clients.admin() is console._own_clients.admin(session.credentials)
            await visitor.post("/api/logout", {})
            await console.login._background.close()
            for make in (console.clients.admin, console.clients.consumer, console.clients.producer):
                with pytest.raises(AuthenticationError):
                    make()
        assert console._own_clients.users == 0

    run_console(config(broker), work, cluster_login=True)


def test_what_one_user_has_looked_at_is_not_shown_to_another(own_broker: Broker) -> None:
    with Admin(own_broker.bootstrap, **own_broker.client_options("root")) as admin:  # type: ignore[arg-type]
        admin.create_topic("later", 1, 1, {"delay.target.topic": "salaries"})
        admin.create_acls([rule(ResourceType.TOPIC, "later", "ann", AclOperation.READ)])

    async def work(visitor: Visitor, console: Console) -> None:
        assert (await visitor.log_in("root", "root-secret")).status == 200
        assert (await visitor.get("/api/topics/later")).json["isIntake"] is True
        assert (await visitor.get("/api/topics/later/delayed")).json["target"] == "salaries"
        other = Visitor(visitor.app)
        assert (await other.log_in("ann", "ann-secret")).status == 200
        # Settings need another right than reading does: the rest of the topic is shown all the same.
        assert (await other.get("/api/topics/later")).json["isIntake"] is False

    run_console(config(own_broker), work, cluster_login=True)


def test_pipelines_are_shown_to_those_who_see_their_group(broker: Broker, tmp_path: Path) -> None:
    for name in ("billing", "payroll"):
        claim_checkpoint(str(tmp_path / name), name)
        RoutingLog(str(tmp_path / name)).write(0, ROUTING)

    async def work(visitor: Visitor, console: Console) -> None:
        async def shown(user: str) -> tuple[list[str], set[str], set[str]]:
            assert (await visitor.log_in(user, f"{user}-secret")).status == 200
            items = (await visitor.get("/api/pipeline")).json["items"]
            targets = {each["topic"] for item in items for each in item["targets"]}
            return (
                [each["name"] for each in items],
                targets,
                {each["topic"] for item in items for each in item["routes"]},
            )

        everything = {"orders", "salaries"}
        assert await shown("root") == (["billing", "payroll"], everything, everything)
        assert await shown("ann") == (["billing"], {"orders"}, {"orders"})
        assert await shown("bob") == ([], set(), set())

    run_console(
        config(broker), work, cluster_login=True, pipelines=(str(tmp_path / "billing"), str(tmp_path / "payroll"))
    )


def test_alarms_are_counted_that_the_user_may_see(broker: Broker) -> None:
    async def work(visitor: Visitor, console: Console) -> None:
        alarm = Rule(name="stalled", kind="no-traffic", above=1)
        for subject in ("orders", "salaries"):
            console.alarms._alarms[alarm.name, subject] = Alarm(alarm, subject, 2.0, 0.0, is_firing=True)
        for user, count in (("root", 2), ("ann", 1)):
            assert (await visitor.log_in(user, f"{user}-secret")).status == 200
            assert (await visitor.get("/api/overview")).json["alarms"] == count

    run_console(config(broker), work, cluster_login=True)
