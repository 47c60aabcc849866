"""What the pages ask for and change, on a cluster of three brokers: Barnabas, and Apache Kafka where it is there."""

import csv
import io
import json
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import pytest

pytest.importorskip("starlette", reason="the console needs starlette")
pytest.importorskip("pyarrow", reason="the console needs pyarrow")

from eventually import eventually
from kafka_cluster import KafkaCluster
from raw_client import RawClient, batch, produce_request
from running_console import RunningConsole

from barnabas import Admin, Producer
from barnabas.pipeline.checkpoint import claim_checkpoint
from barnabas.pipeline.progress import Heartbeat, ProgressFile, UnroutedChanges
from barnabas.pipeline.routing_log import RoutingLog
from barnabas.testing import Cluster

SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "transaction.partition.verification.enable": "false",
}
KAFKA = pytest.param("kafka", marks=[pytest.mark.java, pytest.mark.soak])
SCRIPT = "<script>alert(1)</script>"
ROUTING = '[tables.order_info]\nkind = "fact"\n[tables.user_info]\nkind = "dimension"\n'


@pytest.fixture(scope="module", params=["barnabas", KAFKA])
def bootstrap(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if request.param == "kafka":
        with KafkaCluster(tmp_path_factory.mktemp("kafka"), settings=SETTINGS) as kafka:
            yield kafka.bootstrap
    else:
        with Cluster(3, SETTINGS) as cluster:
            yield cluster.bootstrap


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("checkpoint"))


@pytest.fixture(scope="module")
def console(bootstrap: str, checkpoint: str) -> Iterator[RunningConsole]:
    with Admin(bootstrap) as admin:
        admin.create_topic("orders", 6, 2)
        admin.create_topic("payments", 1, 1)
    with Producer(bootstrap, compression_type="lz4") as producer:
        for number in range(300):
            value = json.dumps({"price": number, "note": "x" * 100}).encode()
            producer.send("orders", value, key=str(number % 7).encode(), headers=[("trace", SCRIPT.encode())])
        producer.send("orders", b"\xff\x00", key=None, partition=5)
        producer.flush()
    with RunningConsole(bootstrap, pipelines=(checkpoint,)) as running:
        soon(lambda: running.get("/overview")["brokers"] == 3 and "orders" in names(running))
        yield running


def soon(look: Callable[[], object]) -> None:
    eventually(look, timeout=120)


def names(console: RunningConsole) -> list[str]:
    return [each["name"] for each in console.get("/topics?size=500")["items"]]


def replicas(console: RunningConsole, topic: str) -> list[list[int]]:
    return [row["replicas"] for row in console.get(f"/partitions?filter={topic}-&size=500")["items"]]


def test_brokers(console: RunningConsole) -> None:
    rows = console.get("/brokers")["items"]
    assert [row["state"] for row in rows] == ["running"] * 3
    assert sum(row["isController"] for row in rows) <= 1  # Kafka's controllers need not be known to clients
    assert sum(row["leaders"] for row in rows) == console.get("/overview")["partitions"]
    assert sum(row["preferred"] for row in rows) == console.get("/overview")["partitions"]
    soon(lambda: all(row["directories"] for row in console.get("/brokers")["items"]))
    broker = rows[0]["id"]
    path = f"/brokers/{broker}/settings"
    console.post(path, {"name": "log.cleaner.threads", "value": "2"})
    soon(lambda: setting(console, path, "log.cleaner.threads")["value"] == "2")
    assert setting(console, path, "log.cleaner.threads")["source"] == "DYNAMIC_BROKER_CONFIG"
    console.post(path, {"name": "log.cleaner.threads", "value": None})
    soon(lambda: setting(console, path, "log.cleaner.threads")["value"] == "1")
    for wrong, status in (("x", 400), ("123456789012", 400)):
        assert console.ask("GET", f"/brokers/{wrong}/settings")[0] == status
    assert "drain" in refused(console, f"/brokers/{broker}/decommission", {"confirm": str(broker)})
    assert "match" in refused(console, f"/brokers/{broker}/decommission", {"confirm": "7777"})
    assert console.ask("POST", "/brokers/7777/decommission", {"confirm": "7777"})[0] != 200


def setting(console: RunningConsole, path: str, name: str) -> dict[str, Any]:
    return next(row for row in console.get(path)["items"] if row["name"] == name)


def refused(console: RunningConsole, path: str, body: object) -> str:
    status, content = console.ask("POST", path, body)
    assert status == 400, content
    return str(content["error"]["message"])


def test_partitions_are_paged_filtered_and_sorted(console: RunningConsole) -> None:
    page = console.get("/partitions?filter=orders-&size=4&page=1")
    assert (page["total"], page["pages"], [row["partition"] for row in page["items"]]) == (6, 2, [4, 5])
    most = console.get("/partitions?filter=orders-&sort=records&order=desc")["items"]
    assert [row["records"] for row in most] == sorted((row["records"] for row in most), reverse=True)
    assert sum(row["records"] for row in most) == 301
    assert console.get("/partitions?state=offline")["total"] == 0
    leader = most[0]["leader"]
    of_broker = console.get(f"/partitions?broker={leader}&filter=orders-&size=500")["items"]
    assert all(leader in row["replicas"] for row in of_broker)
    for wrong in ("state=ill", "broker=x", "sort=colour"):
        assert console.ask("GET", f"/partitions?{wrong}")[0] == 400


def test_partitions_move_with_a_throttle_and_the_leaders_are_elected(console: RunningConsole, bootstrap: str) -> None:
    with Admin(bootstrap) as admin:
        admin.create_topic("moving", 3, 1)
    soon(lambda: len(replicas(console, "moving")) == 3)
    brokers = [row["id"] for row in console.get("/brokers")["items"]]
    for wrong in (
        {"kind": "x"},
        {"kind": "reassign", "topics": ["moving"], "brokers": [99]},
        {"kind": "drain", "broker": "x"},
    ):
        assert console.ask("POST", "/moves/plan", wrong)[0] == 400
    assert console.ask("POST", "/moves/plan", {"kind": "reassign", "topics": ["none"], "brokers": brokers})[0] == 404
    target = brokers[-1]
    plan = console.post("/moves/plan", {"kind": "reassign", "topics": ["moving"], "brokers": [target]})
    assert {tuple(move["to"]) for move in plan["moves"]} == {(target,)}
    assert {row["id"] for row in plan["brokers"]} == set(brokers)
    moves = [{"topic": each["topic"], "partition": each["partition"], "to": each["to"]} for each in plan["moves"]]
    assert console.ask("POST", "/moves", {"moves": [{**moves[0], "to": [98]}]})[0] == 400
    assert console.ask("POST", "/moves", {"moves": moves, "throttle": 1})[0] == 400
    console.post("/moves", {"moves": moves, "throttle": 50_000_000})
    soon(lambda: replicas(console, "moving") == [[target]] * 3)
    soon(lambda: console.get("/moves") == {"items": [], "total": 0, "throttle": None})
    path = "/topics/moving/settings"
    soon(lambda: not setting(console, path, "leader.replication.throttled.replicas")["value"])


def test_a_move_is_cancelled(console: RunningConsole, bootstrap: str) -> None:
    with Admin(bootstrap) as admin:
        admin.create_topic("heavy", 1, 1)
    with Producer(bootstrap, linger_ms=50) as producer:
        for _ in range(80):
            producer.send("heavy", b"x" * 100_000)
        producer.flush()
    soon(lambda: len(replicas(console, "heavy")) == 1)
    (before,) = replicas(console, "heavy")
    other = next(row["id"] for row in console.get("/brokers")["items"] if row["id"] not in before)
    console.post("/moves", {"moves": [{"topic": "heavy", "partition": 0, "to": [other]}], "throttle": 2000})
    (move,) = console.get("/moves")["items"]
    assert (move["topic"], move["adding"], move["removing"]) == ("heavy", [other], before)
    soon(lambda: console.get("/moves")["items"][0]["totalBytes"] > 8_000_000)
    assert console.get("/moves")["throttle"] == 2000
    assert "under way" in refused(console, "/moves", {"moves": [{"topic": "heavy", "partition": 0, "to": [other]}]})
    assert console.post("/moves/cancel", {}) == {"cancelled": 1}
    soon(lambda: replicas(console, "heavy") == [before])
    soon(lambda: console.get("/moves")["throttle"] is None)


def test_a_throttle_that_was_left_behind_is_removed(console: RunningConsole) -> None:
    broker = console.get("/brokers")["items"][0]["id"]
    name = "leader.replication.throttled.rate"
    console.post(f"/brokers/{broker}/settings", {"name": name, "value": "4096"})
    soon(lambda: console.get("/moves")["throttle"] == 4096)
    console.post("/moves/unthrottle", {})
    soon(lambda: console.get("/moves")["throttle"] is None)


def test_leaders_are_elected(console: RunningConsole) -> None:
    assert console.post("/partitions/elect", {"partitions": [{"topic": "orders", "partition": 0}]}) == {
        "elected": 0,
        "notNeeded": 1,
    }
    assert "needs the partitions" in refused(console, "/partitions/elect", {"partitions": None, "unclean": True})
    for wrong in ([], [{"topic": "orders"}], [{"topic": "", "partition": 0}], [1], "x"):
        assert console.ask("POST", "/partitions/elect", {"partitions": wrong})[0] == 400


def test_transactions(console: RunningConsole, bootstrap: str) -> None:
    with Producer(bootstrap, transactional_id=SCRIPT) as producer:
        producer.begin_transaction()
        producer.send("payments", b"1").result()
        (row,) = console.get("/transactions?filter=script&state=Ongoing")["items"]
        assert (row["transactionalId"], row["state"], row["partitions"]) == (SCRIPT, "Ongoing", ["payments-0"])
        assert row["ageSeconds"] >= 0
        assert console.ask("GET", "/transactions?state=odd")[0] == 400
        assert console.ask("POST", "/transactions/fence", {"id": SCRIPT, "confirm": "x"})[0] == 400
        console.post("/transactions/fence", {"id": SCRIPT, "confirm": SCRIPT})
        soon(lambda: console.get("/transactions?filter=script&state=Ongoing")["items"] == [])
        with pytest.raises(Exception, match=r"(?i)fenced|epoch|abort"):
            producer.send("payments", b"2").result()
            producer.commit_transaction()


def test_a_hanging_transaction_is_found_and_aborted(console: RunningConsole, bootstrap: str) -> None:
    with Admin(bootstrap) as admin:
        admin.create_topic("stuck", 1, 1)
        soon(lambda: admin.describe_topic("stuck"))
        leader = admin.describe_topic("stuck").partitions[0].leader
        address = next(each.node.address for each in admin.describe_cluster().brokers if each.node.id == leader)
    old = time.time_ns() // 1_000_000 - 3_600_000
    records = batch(b"1", timestamp=old, producer_id=987_654, producer_epoch=0, base_sequence=0, transactional=True)
    request = produce_request("stuck", records)
    request.transactional_id = "forgotten"
    with RawClient(address) as client:
        produced = client.ask(request, 9).responses[0].partition_responses[0]
        assert produced.error_code == 0, produced
    soon(lambda: "stuck" in names(console))
    (found,) = console.get("/transactions/hanging?minutes=15")["items"]
    assert (found["topic"], found["startOffset"], found["producerId"]) == ("stuck", 0, 987_654)
    assert found["ageSeconds"] > 3000
    console.post("/transactions/abort", {"topic": "stuck", "partition": 0, "startOffset": 0})
    soon(lambda: console.get("/transactions/hanging?minutes=15")["items"] == [])
    assert console.ask("POST", "/transactions/abort", {"topic": "stuck", "partition": 0, "startOffset": 0})[0] == 502


def test_users(console: RunningConsole) -> None:
    user = {"user": SCRIPT, "password": "secret", "mechanism": "SCRAM-SHA-512", "iterations": 4096}
    console.post("/users", user)
    soon(lambda: console.get("/users?filter=script")["total"] == 1)
    assert console.get("/users?filter=script")["items"] == [
        {"user": SCRIPT, "mechanism": "SCRAM-SHA-512", "iterations": 4096}
    ]
    for wrong in ({"iterations": 1}, {"mechanism": "PLAIN"}, {"password": ""}, {"user": 7}):
        assert console.ask("POST", "/users", {**user, **wrong})[0] == 400
    console.post("/users/delete", {"user": SCRIPT, "mechanism": "SCRAM-SHA-512"})
    soon(lambda: console.get("/users?filter=script")["total"] == 0)


def test_rules(console: RunningConsole) -> None:
    rule = {
        "resourceType": "TOPIC",
        "resourceName": "ord",
        "patternType": "PREFIXED",
        "principal": f"User:{SCRIPT}",
        "host": "*",
        "operation": "READ",
        "permission": "DENY",
    }
    console.post("/acls", rule)
    soon(lambda: console.get("/topics/orders/acls")["items"] == [rule])
    assert rule in console.get("/acls?filter=script")["items"]
    assert console.get("/topics/payments/acls")["items"] == []
    for wrong in ({"operation": "ANY"}, {"patternType": "MATCH"}, {"principal": ""}, {"resourceType": "CAR"}):
        assert console.ask("POST", "/acls", {**rule, **wrong})[0] == 400
    assert console.ask("POST", "/acls", {**rule, "principal": "no principal"})[0] == 502
    console.post("/acls/delete", rule)
    soon(lambda: console.get("/topics/orders/acls")["items"] == [])
    assert console.ask("POST", "/acls/delete", rule)[0] == 404


def test_quotas(console: RunningConsole) -> None:
    whom = {"user": SCRIPT, "clientId": "", "ip": None}
    console.post("/quotas", {**whom, "values": {"producer_byte_rate": 1000.0, "request_percentage": 50}})
    values = {"producer_byte_rate": 1000.0, "request_percentage": 50.0}
    soon(lambda: console.get("/quotas?filter=script")["items"] == [{**whom, "values": values}])
    for wrong in (
        {},
        {"colour": 1},
        {"producer_byte_rate": -1},
        {"producer_byte_rate": "x"},
        {"producer_byte_rate": True},
    ):
        assert console.ask("POST", "/quotas", {**whom, "values": wrong})[0] == 400
    assert console.ask("POST", "/quotas", {"values": values})[0] == 400
    console.post("/quotas", {**whom, "values": dict.fromkeys(values)})
    soon(lambda: console.get("/quotas?filter=script")["items"] == [])


def test_producers_and_statistics(console: RunningConsole) -> None:
    rows = console.get("/topics/orders/producers?size=500")["items"]
    assert {row["partition"] for row in rows} <= set(range(6))
    assert rows
    soon(lambda: console.get("/topics/orders/statistics")["storedPerRecord"])
    found = console.get("/topics/orders/statistics?sample=10000")
    assert (found["records"], found["nullKeys"], found["keys"]) == (301, 1, 7)
    assert found["value"]["min"] == 2
    assert found["value"]["max"] == len(json.dumps({"price": 100, "note": "x" * 100}))
    assert sum(each["records"] for each in found["histogram"]) == 301
    assert 0 < found["storedPerRecord"] < found["payloadPerRecord"]  # they are compressed
    assert console.get("/topics/payments/statistics?sample=1")["records"] <= 1
    assert console.ask("GET", "/topics/orders/statistics?sample=0")[0] == 400


def test_export(console: RunningConsole) -> None:
    path = "/api/topics/orders/export?start=oldest&limit=1000&"
    status, text = console.raw("GET", path + "format=jsonl")
    rows = [json.loads(line) for line in text.splitlines()]
    assert (status, len(rows)) == (200, 301)
    assert [row["valueBase64"] for row in rows if "valueBase64" in row] == ["/wA="]
    assert rows[0]["headers"] == [{"name": "trace", "value": SCRIPT}]
    _, text = console.raw("GET", path + "format=csv&filter=" + quote("value.price == 17"))
    head, row = csv.reader(io.StringIO(text))
    assert head == ["partition", "offset", "timestamp", "key", "value", "headers"]
    assert json.loads(row[4])["price"] == 17
    for wrong in ("format=xml", "format=csv&start=live", "limit=x"):
        assert console.raw("GET", "/api/topics/orders/export?" + wrong)[0] == 400


def test_a_message_is_produced_again(console: RunningConsole) -> None:
    _, text = console.raw("GET", "/api/topics/orders/export?limit=1&format=jsonl&filter=" + quote("value.price == 33"))
    record = json.loads(text)
    place = {"partition": record["partition"], "offset": record["offset"]}
    done = console.post("/topics/orders/again", {**place, "to": "payments"})
    again = console.get(f"/topics/payments/message?partition=0&offset={done['offset']}")
    assert again["value"]["text"] == record["value"]
    assert again["headers"][0]["value"]["text"] == SCRIPT
    assert console.ask("POST", "/topics/orders/again", {**place, "to": "nowhere"})[0] == 404
    assert console.ask("POST", "/topics/orders/again", {"partition": 99, "offset": 0})[0] == 400


def test_delayed_messages(console: RunningConsole, bootstrap: str, request: pytest.FixtureRequest) -> None:
    if "kafka" in request.node.callspec.id:
        assert console.get("/topics/orders")["isIntake"] is False
        return
    with Admin(bootstrap) as admin:
        admin.create_topic("later", 2, 3, {"delay.target.topic": "payments"})
    now_ms = time.time_ns() // 1_000_000
    with Producer(bootstrap) as producer:
        for key, minutes in (("b", 90), ("a", 2)):
            producer.send(
                "later", key.encode(), key=b"k", headers=[("deliver-at", str(now_ms + minutes * 60_000).encode())]
            )
        producer.send("later", b"old", key=b"k", headers=[("deliver-after", b"1h"), ("schedule-id", b"s")])
        producer.send("later", b"new", key=b"k", headers=[("deliver-after", b"2h"), ("schedule-id", b"s")])
        producer.send("later", b"at once", key=b"k")
        producer.flush()
    soon(lambda: "later" in names(console))
    assert console.get("/topics/later")["isIntake"] is True
    soon(lambda: console.get("/topics/later/delayed")["pending"] == 3)
    found = console.get("/topics/later/delayed")
    assert [row["value"]["text"] for row in found["items"]] == ["a", "b", "new"]
    assert (found["target"], found["isComplete"]) == ("payments", True)
    assert {each["label"]: each["records"] for each in found["buckets"]} == {"an hour": 1, "a day": 2}


def test_pipeline(console: RunningConsole, checkpoint: str, bootstrap: str) -> None:
    (nothing,) = console.get("/pipeline")["items"]
    assert nothing["state"].get("state") in (None, "unknown")
    claim_checkpoint(checkpoint, "warehouse")
    RoutingLog(checkpoint).write(0, ROUTING)
    UnroutedChanges(checkpoint).add(0, {SCRIPT: 12})
    Heartbeat(checkpoint).beat()
    done = {
        "batch": 0,
        "at": "2026-01-31T12:00:00.000Z",
        "rows": 10,
        "rows_out": 20,
        "seconds": 0.5,
        "rows_per_second": 20.0,
    }
    ProgressFile(checkpoint).add(done)
    with Admin(bootstrap) as admin:
        admin.create_topic("ods_dirty", 1, 1)
        admin.alter_group_offsets("warehouse", {("orders", 0): 1})
    with Producer(bootstrap) as producer:
        for reason in ("broken", "broken", SCRIPT):
            origin = [("topic", b"orders"), ("partition", b"0"), ("offset", b"3")]
            producer.send("ods_dirty", b"{", headers=[("reason", reason.encode()), *origin])
        producer.flush()
    soon(lambda: console.get("/pipeline")["dirtyTopic"] == "ods_dirty")
    soon(lambda: console.get("/pipeline")["items"][0]["sources"])
    (found,) = console.get("/pipeline")["items"]
    assert (found["name"], found["state"]["state"], found["problem"]) == ("warehouse", "running", None)
    assert [(each["table"], each["topic"]) for each in found["routes"]] == [
        ("order_info", "dwd_order_info"),
        ("user_info", "dim_user_info"),
    ]
    assert found["unrouted"] == [{"table": SCRIPT, "changes": 12}]
    assert found["batches"] == [done]
    assert found["lag"] == found["sources"][0]["lag"]
    dirty = console.get("/pipeline/dirty")
    assert dirty["reasons"] == [{"reason": "broken", "records": 2}, {"reason": SCRIPT, "records": 1}]
    assert dirty["items"][0]["origin"] == {"topic": "orders", "partition": "0", "offset": "3"}


def test_capacity(console: RunningConsole) -> None:
    found = console.get(
        "/capacity?peak_records=100000&record_bytes=1000&replicas=2&headroom=0.5&broker_bytes=100000000"
    )
    assert found["size"]["brokers_for_rate"] == 4
    assert found["size"]["brokers"] == 4
    assert found["now"]["brokers"] == 3
    assert console.get("/capacity")["load"]["record_bytes"] > 0
    for wrong in ("replicas=0", "headroom=1", "record_bytes=x", "peak_records=nan", "peak_records=-1"):
        assert console.ask("GET", "/capacity?" + wrong)[0] == 400


def test_read_only_refuses_every_change(bootstrap: str) -> None:
    with RunningConsole(bootstrap, read_only=True) as console:
        for path in (
            "/moves",
            "/moves/cancel",
            "/users",
            "/acls",
            "/quotas",
            "/partitions/elect",
            "/transactions/abort",
        ):
            assert console.ask("POST", path, {})[0] == 403
