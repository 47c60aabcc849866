"""Pictures of every page of the console for docs/console.md, from a small cluster with sample data: `make screenshots`.

Needs the Debian packages chromium-headless-shell and fonts-dejavu-core. `--all FOLDER` takes every page in light and
dark, wide and narrow, to look at.
"""

import argparse
import json
import random
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from chromium import QuietNetwork
from playwright.sync_api import Browser, Page, expect
from running_console import RunningConsole

from barnabas import Admin, Consumer, Producer
from barnabas.client.admin.types import (
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    QuotaEntity,
    ResourceType,
    ScramMechanism,
    ScramUpsertion,
)
from barnabas.pipeline.checkpoint import claim_checkpoint
from barnabas.pipeline.progress import Heartbeat, ProgressFile, UnroutedChanges
from barnabas.pipeline.routing_log import RoutingLog
from barnabas.testing import Cluster

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
HISTORY_SECONDS = 40
PIPELINE = "warehouse"
ROUTING = """\
[tables.order_info]
kind = "fact"
[tables.order_detail]
kind = "fact"
columns = ["id", "order_id", "sku_id", "sku_num"]
[tables.user_info]
kind = "dimension"
"""
PAGES = {
    "overview": "/",
    "topics": "/topics",
    "messages": "/topics/orders",
    "message": "/topics/orders?q=" + "value.price > 40".replace(" ", "%20"),
    "topic-partitions": "/topics/orders?tab=partitions",
    "topic-settings": "/topics/orders?tab=settings",
    "topic-producers": "/topics/orders?tab=producers",
    "topic-acls": "/topics/orders?tab=acls",
    "topic-statistics": "/topics/orders?tab=statistics",
    "topic-delayed": "/topics/orders.delayed?tab=delayed",
    "groups": "/groups",
    "group": "/group?id=billing",
    "brokers": "/brokers",
    "broker": "/brokers/1",
    "partitions": "/partitions?sort=sizeBytes&order=desc",
    "reassign": "/reassign?kind=drain&broker=2",
    "transactions": "/transactions",
    "users": "/users",
    "acls": "/acls",
    "quotas": "/quotas",
    "pipeline": "/pipeline",
    "capacity": "/capacity",
    "alarms": "/alarms",
}
IN_DOCS = {
    "topics": ("light", 1280),
    "message": ("dark", 1280),
    "topic-statistics": ("light", 1280),
    "brokers": ("light", 1280),
    "reassign": ("light", 1280),
    "transactions": ("light", 1280),
    "acls": ("light", 1280),
    "quotas": ("light", 1280),
    "partitions": ("light", 1280),
    "topic-settings": ("light", 1280),
    "topic-delayed": ("light", 1280),
    "pipeline": ("dark", 1280),
    "capacity": ("light", 1280),
    "alarms": ("light", 1280),
    "topics-phone": ("dark", 390),
    # At the end, when there is some history.
    "group": ("light", 1280),
    "overview": ("light", 1280),
}


def fill(cluster: Cluster, checkpoint: str) -> Producer:
    """Topics with records, groups that lag, users, rules, quotas, delayed messages, and the files of a pipeline.

    The producer has a transaction open.
    """
    source = random.Random(7)
    names = ["orders", "payments", "shipments", "clicks", "inventory", "dwd_order_info", "dim_user_info", "ods_dirty"]
    for name in names:
        cluster.create_topic(name, 6 if name in ("orders", "clicks") else 3, replication_factor=2)
    with Admin(cluster.bootstrap) as admin:
        admin.create_topic("orders.delayed", 1, 2, {"delay.target.topic": "orders"})
        admin.create_topic("ods_base_db_m", 3, 2)
        for user in ("alice", "billing", "warehouse"):
            change = ScramUpsertion(user=user, password="secret", mechanism=ScramMechanism.SCRAM_SHA_512)
            admin.alter_user_scram_credentials([change])
        admin.create_acls(rules())
        admin.alter_client_quotas(
            {QuotaEntity(user="billing"): {"producer_byte_rate": 10e6, "consumer_byte_rate": 20e6}}
        )
        admin.alter_client_quotas({QuotaEntity(user=""): {"request_percentage": 50.0}})
    with Producer(cluster.bootstrap, compression_type="lz4") as producer:
        for number in range(4000):
            topic = source.choice(["orders", "orders", "clicks", "payments", "shipments", "inventory", "ods_base_db_m"])
            producer.send(
                topic,
                json.dumps(order(source, number)).encode(),
                key=str(source.randrange(500)).encode(),
                headers=[("trace", f"{source.getrandbits(48):012x}".encode()), ("source", b"shop")],
            )
        for number, minutes in enumerate((2, 9, 45, 200, 1500)):
            producer.send(
                "orders.delayed",
                f"reminder {number}".encode(),
                key=b"42",
                headers=[("deliver-after", f"{minutes}m".encode())],
            )
        for reason, value in (
            ("not JSON: Expecting value", b"{oops"),
            ("an event without start, page or err", b"{}"),
            ("no route for table coupon", b'{"table":"coupon"}'),
        ):
            origin = [("reason", reason.encode()), ("topic", b"ods_base_db_m"), ("partition", b"1"), ("offset", b"17")]
            producer.send("ods_dirty", value, headers=origin)
        producer.flush()
    for group, done in (("billing", 60), ("shipping", 250), (PIPELINE, 90)):
        topic = "ods_base_db_m" if group == PIPELINE else "orders"
        with Consumer(cluster.bootstrap, group_id=group) as consumer:
            consumer.assign([(topic, 0), (topic, 1), (topic, 2)])
            consumer.commit({(topic, 0): done, (topic, 1): done, (topic, 2): done})
    open_transaction = Producer(cluster.bootstrap, transactional_id="billing-1", transaction_timeout_ms=600_000)
    open_transaction.begin_transaction()
    open_transaction.send("payments", b"held").result()
    pipeline_files(checkpoint)
    return open_transaction


def rules() -> list[AclBinding]:
    wanted = [
        ("User:alice", "orders", PatternType.LITERAL, AclOperation.READ, AclPermission.ALLOW),
        ("User:billing", "orders", PatternType.LITERAL, AclOperation.READ, AclPermission.ALLOW),
        ("User:warehouse", "dwd_", PatternType.PREFIXED, AclOperation.WRITE, AclPermission.ALLOW),
        ("User:guest", "payments", PatternType.LITERAL, AclOperation.READ, AclPermission.DENY),
        ("User:ANONYMOUS", "*", PatternType.LITERAL, AclOperation.ALL, AclPermission.ALLOW),
    ]
    return [
        AclBinding(
            resource_type=ResourceType.TOPIC,
            resource_name=name,
            principal=who,
            operation=what,
            permission=permission,
            pattern_type=pattern,
        )
        for who, name, pattern, what, permission in wanted
    ]


def order(source: random.Random, number: int) -> dict[str, Any]:
    status = source.choice(["paid", "open", "shipped"])
    return {
        "id": number,
        "user": source.randrange(500),
        "price": round(source.random() * 50, 2),
        "status": status,
        "items": [
            {"sku": source.randrange(90), "count": source.randrange(1, 4)} for _ in range(source.randrange(1, 4))
        ],
    }


def pipeline_files(checkpoint: str) -> None:
    claim_checkpoint(checkpoint, PIPELINE)
    RoutingLog(checkpoint).write(0, ROUTING)
    UnroutedChanges(checkpoint).add(3, {"coupon": 120, "refund": 8})
    Heartbeat(checkpoint).beat()
    progress = ProgressFile(checkpoint)
    for batch in range(6):
        progress.add(
            {
                "batch": batch,
                "at": f"2026-01-31T12:00:{batch * 5:02}.000Z",
                "rows": 900 + 40 * batch,
                "rows_out": 2100 + 60 * batch,
                "seconds": 1.2 + batch / 10,
                "rows_per_second": 760.0,
                "lag": 300 - 30 * batch,
            }
        )


@contextmanager
def traffic(bootstrap: str) -> Iterator[None]:
    """So that rates and charts have something to show."""
    stop = threading.Event()

    def run() -> None:
        source, number = random.Random(1), 0
        with Producer(bootstrap, compression_type="lz4") as producer:
            while not stop.wait(0.05):
                for _ in range(source.randrange(2, 20)):
                    number += 1
                    producer.send(
                        source.choice(["orders", "clicks"]),
                        json.dumps(order(source, number)).encode(),
                        key=str(number % 500).encode(),
                    )

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def open_page(browser: Browser, address: str, name: str, scheme: str, width: int) -> Page:
    page = browser.new_page(viewport={"width": width, "height": 760}, color_scheme=scheme)  # type: ignore[arg-type]
    page.set_default_timeout(60_000)
    page.on("pageerror", lambda error: print(f"{name}: {error}"))
    page.on("console", lambda message: print(f"{name}: {message.text}") if message.type == "error" else None)
    page.goto(address + PAGES[name])
    expect(page.locator("h1")).to_be_visible()
    for word in ("Loading …", "Searching …"):
        expect(page.locator("main")).not_to_contain_text(word)
    buttons = {"message": "Open offset", "reassign": "Make a plan", "transactions": "Search all partitions"}
    if name in buttons:
        page.get_by_role("button", name=buttons[name]).first.click()
    page.wait_for_timeout(500)
    return page


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--all", metavar="FOLDER", type=Path)
    parser.add_argument("--only", metavar="PAGE", action="append", default=[])
    options = parser.parse_args()
    expect.set_options(timeout=60_000)
    folder = options.all or IMAGES
    folder.mkdir(parents=True, exist_ok=True)
    authorizer = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "offsets.topic.replication.factor": "2",
        "transaction.state.log.replication.factor": "2",
        "transaction.state.log.min.isr": "1",
    }
    wanted = (
        {
            f"{page}-{scheme}-{width}": (page, scheme, width)
            for page in PAGES
            for scheme, width in (("light", 1280), ("dark", 1280), ("light", 390), ("dark", 390))
        }
        if options.all
        else {name: (name.removesuffix("-phone"), *how) for name, how in IN_DOCS.items()}
    )
    if options.only:
        wanted = {name: how for name, how in wanted.items() if how[0] in options.only}
    with tempfile.TemporaryDirectory() as checkpoint, Cluster(3, authorizer) as cluster, QuietNetwork() as network:
        open_transaction = fill(cluster, checkpoint)
        listener = network.listen()
        with (
            RunningConsole(cluster.bootstrap, listener=listener, pipelines=(checkpoint,)) as console,
            traffic(cluster.bootstrap),
            network.chromium() as browser,
        ):
            time.sleep(HISTORY_SECONDS)
            for name, (page_name, scheme, width) in wanted.items():
                Heartbeat(checkpoint).beat()
                page = open_page(browser, console.address, page_name, scheme, width)
                page.screenshot(path=folder / f"{name}.png")
                page.close()
        open_transaction.abort_transaction()
        open_transaction.close()


if __name__ == "__main__":
    main()
