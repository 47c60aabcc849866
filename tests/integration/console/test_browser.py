"""The console in a real browser: every page and action, hostile names that stay text, keyboard, accessibility.

One broker, one console and one browser for all of it. What needs several brokers is in test_browser_cluster.py.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

import pytest

pytest.importorskip("playwright.sync_api", reason="pip install playwright")
pytest.importorskip("starlette", reason="the console needs starlette")

from browser_pages import SCRIPT, Watched, axe_faults, too_wide, why_no_axe
from chromium import QuietNetwork, why_no_chromium
from playwright.sync_api import expect
from running_console import RunningConsole

from barnabas import Admin, Consumer, Producer
from barnabas.client.admin.types import (
    AclBinding,
    AclOperation,
    QuotaEntity,
    ResourceType,
    ScramUpsertion,
)
from barnabas.pipeline.checkpoint import claim_checkpoint
from barnabas.pipeline.progress import Heartbeat, ProgressFile, UnroutedChanges
from barnabas.pipeline.routing_log import RoutingLog
from barnabas.testing import Broker

pytestmark = pytest.mark.skipif(why_no_chromium() is not None, reason=str(why_no_chromium()))
if TYPE_CHECKING:
    from playwright.sync_api import Browser

SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
GROUP = f"g/{SCRIPT}"
SLOW_MS = 60_000
PAGES = {
    "/": "All is well",
    "/topics": "orders",
    "/topics/orders": "matched",
    "/topics/orders?tab=partitions": "First offset",
    "/topics/orders?tab=groups": GROUP,
    "/topics/orders?tab=producers": "Last sequence",
    "/topics/orders?tab=settings": "retention.ms",
    "/topics/orders?tab=acls": SCRIPT,
    "/topics/orders?tab=statistics": "Different keys",
    "/topics/later?tab=delayed": "Next deliveries",
    "/groups": GROUP,
    "/group?id=" + quote(GROUP): "Lag in seconds",
    "/brokers": "controller",
    "/brokers/0": "online",
    "/brokers/0?tab=settings": "log.retention.ms",
    "/brokers/0?tab=remove": "Drain it",
    "/partitions": "orders",
    "/reassign": "To which brokers",
    "/transactions": SCRIPT,
    "/users": SCRIPT,
    "/acls": SCRIPT,
    "/quotas": SCRIPT,
    "/alarms": "disk nearly full",
    "/pipeline": SCRIPT,
    "/capacity": "Page cache per broker",
}


class World(NamedTuple):
    broker: Broker
    address: str
    browser: "Browser"

    def open(self, path: str, **options: Any) -> Watched:
        return Watched(self.browser, self.address, path, **options)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    expect.set_options(timeout=SLOW_MS)
    checkpoint = str(tmp_path_factory.mktemp("checkpoint"))
    with Broker(SETTINGS) as broker, QuietNetwork() as network, network.chromium() as browser:
        fill(broker.bootstrap, checkpoint)
        held = Producer(broker.bootstrap, transactional_id=f"t-{SCRIPT}")
        held.begin_transaction()
        held.send("payments", b"1").result()
        with RunningConsole(broker.bootstrap, listener=network.listen(), pipelines=(checkpoint,)) as console:
            yield World(broker, console.address, browser)
        held.abort_transaction()
        held.close()


def fill(bootstrap: str, checkpoint: str) -> None:
    with Admin(bootstrap) as admin:
        admin.create_topic("orders", 2)
        for name in ("payments", "ods_dirty"):
            admin.create_topic(name, 1)
        admin.create_topic("later", 1, config={"delay.target.topic": "payments"})
        admin.alter_user_scram_credentials([ScramUpsertion(user=SCRIPT, password="secret")])
        rule = AclBinding(
            resource_type=ResourceType.TOPIC,
            resource_name="orders",
            principal=f"User:{SCRIPT}",
            operation=AclOperation.READ,
        )
        admin.create_acls([rule])
        admin.alter_client_quotas({QuotaEntity(user=SCRIPT): {"producer_byte_rate": 1e6}})
    with Producer(bootstrap) as producer:
        for number in range(50):
            value = json.dumps({"price": number, "note": SCRIPT}).encode()
            producer.send("orders", value, key=SCRIPT.encode(), headers=[(SCRIPT, SCRIPT.encode()), ("trace", b"t-1")])
        producer.send("later", SCRIPT.encode(), headers=[("deliver-after", b"1h")])
        producer.send("ods_dirty", SCRIPT.encode(), headers=[("reason", SCRIPT.encode()), ("topic", SCRIPT.encode())])
        producer.flush()
    with Consumer(bootstrap, group_id=GROUP) as consumer:
        consumer.assign([("orders", 0)])
        consumer.commit({("orders", 0): 0})
    claim_checkpoint(checkpoint, GROUP)
    RoutingLog(checkpoint).write(0, '[tables.order_info]\nkind = "fact"\n')
    UnroutedChanges(checkpoint).add(0, {SCRIPT: 3})
    Heartbeat(checkpoint).beat()
    done = {"batch": 0, "at": "2026-01-31T12:00:00Z", "rows": 9, "rows_out": 9, "seconds": 0.1, "rows_per_second": 90.0}
    ProgressFile(checkpoint).add(done)


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_every_page_shows_its_data(world: World, scheme: str, width: int) -> None:
    page = world.open("/", scheme=scheme, width=width)
    faults: dict[str, list[str]] = {}
    for path, text in PAGES.items():
        page.visit(path)
        expect(page.locator("main").get_by_text(text).first).to_be_visible()
        expect(page.locator("main")).not_to_contain_text("Loading …")
        faults.setdefault(path, []).extend(too_wide(page))
        if why_no_axe() is None:
            faults[path] += axe_faults(page)
    assert "\n".join(f"{path} {each}" for path, found in faults.items() for each in found) == ""
    page.close()


def test_a_topic_is_created_used_and_deleted(world: World) -> None:
    page = world.open("/topics")
    page.get_by_text("Create a topic").click()
    page.get_by_label("Name", exact=True).fill("by-hand")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", name="by-hand")).to_be_visible()
    page.get_by_text("Produce a message").click()
    page.get_by_label("Value", exact=True).fill("hello")
    page.get_by_label("Headers, one").fill(f"trace: {SCRIPT}")
    page.get_by_role("button", name="Produce", exact=True).click()
    expect(page.get_by_text("at offset 0.")).to_be_visible()
    page.get_by_role("button", name="Search").click()
    page.get_by_role("button", name="Open offset 0 of partition 0").click()
    drawer = page.get_by_role("dialog")
    expect(drawer).to_contain_text("hello")
    expect(drawer).to_contain_text(SCRIPT)
    drawer.get_by_role("button", name="Produce again").click()
    expect(drawer).to_contain_text("at offset 1.")
    page.go("/topics/by-hand?tab=settings")
    page.get_by_label("retention.ms", exact=True).fill("4242")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("retention.ms is 4242 now.")).to_be_visible()
    page.get_by_label("Only what is set here").check()
    expect(page.get_by_role("row")).to_have_count(2)
    page.get_by_role("button", name="Reset retention.ms").click()
    expect(page.get_by_text("back to its default")).to_be_visible()
    page.get_by_text("Empty this topic").click()
    page.get_by_label("Type its name to empty it").fill("by-hand")
    page.get_by_role("button", name="Delete all records").click()
    expect(page.get_by_text("It is empty.")).to_be_visible()
    page.get_by_text("Delete this topic").click()
    page.get_by_label("Type its name to delete it").fill("by-hand")
    page.silent = True  # the page may ask for the topic once more
    page.get_by_role("button", name="Delete with").click()
    expect(page.get_by_role("link", name="orders")).to_be_visible()
    expect(page.get_by_role("link", name="by-hand")).to_have_count(0)
    page.close()


def test_messages_are_searched_saved_and_exported(world: World, tmp_path: Path) -> None:
    page = world.open("/topics/orders")
    expect(page.get_by_text("matched 50")).to_be_visible()
    page.get_by_label("Filter").fill("value.price >= 48")
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_text("matched 2")).to_be_visible()
    assert "q=value.price" in page.url  # a link that can be shared
    with page.expect_download() as download:
        page.get_by_role("link", name="Export JSON lines").click()
    download.value.save_as(tmp_path / "rows")
    rows = [json.loads(line) for line in (tmp_path / "rows").read_text().splitlines()]
    assert sorted(json.loads(row["value"])["price"] for row in rows) == [48, 49]
    page.get_by_text("Saved filters (0)").click()
    page.get_by_role("button", name="Save this filter").click()
    page.get_by_role("button", name="Open offset").first.click()
    drawer = page.get_by_role("dialog")
    expect(drawer).to_contain_text('"price": 49')
    drawer.get_by_role("button", name="Only messages with this trace").click()
    expect(page.get_by_label("Filter")).to_have_value('header.trace == "t-1"')
    expect(page.get_by_text("matched 50")).to_be_visible()
    page.reload()
    page.get_by_text("Saved filters (1)").click()
    page.get_by_role("button", name="value.price >= 48", exact=True).click()
    expect(page.get_by_text("matched 2")).to_be_visible()
    page.go("/topics/orders?q=" + quote("colour == 1"), silent=True)
    expect(page.get_by_role("alert")).to_contain_text("there is no field colour")
    page.close()


def test_a_live_search_shows_every_record_of_a_burst_and_keeps_them(world: World) -> None:
    with Admin(world.broker.bootstrap) as admin:
        admin.create_topic("burst", 2)
    page = world.open("/topics")
    page.get_by_role("link", name="burst").click()
    page.get_by_label("From").select_option("live")
    page.get_by_role("button", name="Search").click()
    # Only what is written after the search has begun is live: the first progress says that it has.
    expect(page.get_by_text("scanned 0, matched 0")).to_be_visible()
    with Producer(world.broker.bootstrap) as producer:
        for number in range(3000):
            producer.send("burst", b"record %d" % number)
    expect(page.get_by_text("scanned 3,000, matched 3,000")).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_text("200 of 3,000 are shown")).to_be_visible()
    expect(page.get_by_role("button", name="Open offset")).to_have_count(200)
    page.get_by_role("button", name="Show 200 more").click()
    expect(page.get_by_role("button", name="Open offset")).to_have_count(400)
    page.close()


def test_a_group_is_reset_after_a_look_at_the_plan(world: World) -> None:
    page = world.open("/group?id=" + quote(GROUP))
    page.get_by_text("Reset offsets").click()
    page.get_by_role("combobox", name="To", exact=True).select_option("latest")
    page.get_by_role("button", name="Show what would change").click()
    expect(page.get_by_role("region", name="What would change")).to_contain_text("orders")
    page.get_by_text("Apply this reset").click()
    page.get_by_role("button", name="Reset 1 partitions").click()
    expect(page.locator(".card", has_text="Lag").first).to_contain_text("0")
    expect(page.get_by_role("region", name="What would change")).to_have_count(0)
    page.close()


def test_users_rules_and_quotas_are_edited(world: World) -> None:
    page = world.open("/users")
    page.accepts_dialogs = True
    page.get_by_text("Add a user").click()
    page.get_by_label("User", exact=True).fill("alice")
    page.get_by_label("Password").fill("secret")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("cell", name="alice", exact=True)).to_be_visible()
    page.get_by_role("button", name="Delete alice SCRAM-SHA-512").click()
    expect(page.get_by_role("cell", name="alice", exact=True)).to_have_count(0)
    page.go("/acls")
    page.get_by_text("Add a rule").click()
    page.get_by_label("Principal").fill("User:alice")
    page.get_by_label("Name", exact=True).fill("orders")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_role("cell", name="User:alice", exact=True)).to_be_visible()
    page.get_by_role("button", name="Delete the rule of User:alice").click()
    expect(page.get_by_role("cell", name="User:alice", exact=True)).to_have_count(0)
    page.go("/quotas")
    page.get_by_text("Set a quota").click()
    page.get_by_label("Client id").fill("alice")
    page.get_by_label("Number").fill("2000000")
    page.get_by_role("button", name="Set", exact=True).click()
    row = page.get_by_role("row", name=re.compile("client alice"))
    expect(row).to_contain_text("2.0 MB/s")
    row.get_by_role("button", name="Remove producer byte rate").click()
    expect(row).to_have_count(0)
    page.close()


def test_transactions_are_searched_and_fenced(world: World) -> None:
    with Producer(world.broker.bootstrap, transactional_id="fenced") as producer:
        producer.begin_transaction()
        producer.send("payments", b"1").result()
        page = world.open("/transactions?state=Ongoing")
        page.get_by_role("button", name="fenced", exact=True).click()
        drawer = page.get_by_role("dialog")
        expect(drawer).to_contain_text("payments-0")
        drawer.get_by_text("Fence the producer").click()
        drawer.get_by_label("Type the transactional id").fill("fenced")
        drawer.get_by_role("button", name="Fence", exact=True).click()
        expect(page.get_by_role("cell", name="fenced")).to_have_count(0)
        page.get_by_role("button", name="Search all partitions").click()
        expect(page.get_by_text("None: every open transaction is known")).to_be_visible()
        page.close()
        with pytest.raises(Exception, match=r"(?i)fenced|epoch|abort"):
            producer.commit_transaction()


def test_leaders_are_elected_and_a_plan_is_made(world: World) -> None:
    page = world.open("/partitions?filter=orders")
    page.get_by_label("Choose orders:1").check()
    page.get_by_role("button", name="Elect preferred leader").click()
    expect(page.get_by_text("0 elected, 1 had the right leader already.")).to_be_visible()
    page.get_by_role("button", name="Move to other brokers").click()
    expect(page.get_by_label("Topics, or")).to_have_value("orders:1")
    page.get_by_role("button", name="Make a plan").click()
    expect(page.get_by_text("Nothing has to move")).to_be_visible()
    page.close()


def test_capacity_follows_what_is_typed_and_the_address_keeps_it(world: World) -> None:
    page = world.open("/capacity")
    page.get_by_label("Records/s at the peak").fill("1000000")
    page.get_by_label("Bytes per record").fill("1000")
    page.get_by_label("Replicas").fill("2")
    brokers = page.locator(".card", has_text="Brokers").first
    expect(brokers).to_contain_text("58")  # 2 GB/s over 70 % of 50 MB/s
    page.reload()
    expect(brokers).to_contain_text("58")
    page.close()


def test_the_keyboard_alone_is_enough(world: World) -> None:
    page = world.open("/topics")
    expect(page.get_by_role("link", name="orders")).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the page")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("/")
    expect(page.get_by_label("Filter by name")).to_be_focused()
    page.keyboard.type("orders")
    expect(page.get_by_role("link", name="payments")).to_have_count(0)
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent") == "orders":
            break
    page.keyboard.press("Enter")
    opener = page.get_by_role("button", name="Open offset").first
    opener.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(opener).to_be_focused()
    page.close()


def test_the_colours_are_chosen_and_kept(world: World) -> None:
    page = world.open("/", scheme="light")
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.get_by_label("Colours").select_option("dark")
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert light != dark
    page.reload()
    expect(page.get_by_label("Colours")).to_have_value("dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == dark
    page.close()


@pytest.mark.soak
def test_a_broker_that_is_away_is_reported_and_comes_back(world: World) -> None:
    page = world.open("/topics")
    expect(page.get_by_role("link", name="orders")).to_be_visible()
    world.broker.stop()
    try:
        expect(page.get_by_role("alert")).to_be_visible()
        expect(page.get_by_role("link", name="orders")).to_be_visible()  # what was known stays
    finally:
        world.broker.start()
    expect(page.get_by_role("alert")).to_have_count(0)
    page.faults.clear()
    page.close()
