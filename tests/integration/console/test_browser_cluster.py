"""The pages about several brokers in a real browser: every page, and the reassign wizard from the choice to the end.

Against Barnabas, and against Apache Kafka.
"""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

pytest.importorskip("playwright.sync_api", reason="pip install playwright")
pytest.importorskip("starlette", reason="the console needs starlette")

from browser_pages import Watched
from chromium import QuietNetwork, why_no_chromium
from kafka_cluster import KafkaCluster
from playwright.sync_api import expect
from running_console import RunningConsole

from barnabas import Admin, Consumer, Producer
from barnabas.testing import Cluster

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(why_no_chromium() is not None, reason=str(why_no_chromium())),
    pytest.mark.timeout(900),
]
SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
PAGES = {
    "/": "All is well",
    "/topics": "orders",
    "/topics/orders": "matched 100",
    "/topics/orders?tab=partitions": "First offset",
    "/topics/orders?tab=groups": "billing",
    "/topics/orders?tab=producers": "Last sequence",
    "/topics/orders?tab=settings": "retention.ms",
    "/topics/orders?tab=acls": "No rule names this topic",
    "/topics/orders?tab=statistics": "Different keys",
    "/group?id=billing": "Lag in seconds",
    "/brokers/1": "online",
    "/brokers/1?tab=settings": "log.retention.ms",
    "/brokers/all": "Settings",
    "/partitions": "orders",
    "/transactions": "No transactional ids",
    "/users": "No user has a SCRAM password",
    "/acls": "There are no rules",
    "/quotas": "Nobody has a quota",
    "/pipeline": "This console shows no pipeline",
    "/capacity": "Page cache per broker",
    "/alarms": "disk nearly full",
}


class World(NamedTuple):
    address: str
    browser: "Browser"

    def open(self, path: str, **options: Any) -> Watched:
        return Watched(self.browser, self.address, path, **options)


@pytest.fixture(scope="module", params=["barnabas", pytest.param("kafka", marks=pytest.mark.java)])
def world(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    expect.set_options(timeout=60_000)
    if request.param == "kafka":
        cluster: Any = KafkaCluster(tmp_path_factory.mktemp("kafka"), settings=SETTINGS)
    else:
        cluster = Cluster(3, SETTINGS)
    with cluster, QuietNetwork() as network, network.chromium() as browser:
        fill(cluster.bootstrap)
        with RunningConsole(cluster.bootstrap, listener=network.listen()) as console:
            yield World(console.address, browser)


def fill(bootstrap: str) -> None:
    with Admin(bootstrap) as admin:
        admin.create_topic("orders", 3, 2)
        admin.create_topic("moved", 2, 1)
    with Producer(bootstrap) as producer:
        for number in range(100):
            producer.send("orders", json.dumps({"price": number}).encode(), key=str(number).encode())
            producer.send("moved", b"x" * 80_000)
        producer.flush()
    with Consumer(bootstrap, group_id="billing") as consumer:
        consumer.assign([("orders", 0)])
        consumer.commit({("orders", 0): 0})


def test_every_page_shows_its_data(world: World) -> None:
    page = world.open("/")
    for path, text in PAGES.items():
        page.go(path)
        expect(page.locator("main").get_by_text(text).first).to_be_visible()
        expect(page.locator("main")).not_to_contain_text("Loading …")
        expect(page.get_by_role("alert")).to_have_count(0)
    page.close()


def test_partitions_are_chosen_planned_moved_and_watched(world: World) -> None:
    page = world.open("/brokers")
    rows = page.get_by_role("region", name="Brokers").get_by_role("row")
    expect(rows).to_have_count(4)
    target = rows.last.get_by_role("link").first.inner_text()
    page.go("/partitions?filter=moved-")
    page.get_by_label("Choose all on this page").check()
    page.get_by_role("button", name="Move to other brokers").click()
    boxes = page.get_by_role("group", name="2. To which brokers").get_by_role("checkbox")
    expect(boxes).to_have_count(3)
    for box in boxes.all():
        box.uncheck()
    boxes.last.check()
    page.get_by_role("button", name="Make a plan").click()
    expect(page.get_by_role("heading", name="3. Look at it")).to_be_visible()
    page.get_by_label("Throttle in MB/s").fill("0.5")
    expect(page.get_by_text("Takes about")).to_be_visible()
    page.get_by_role("button", name="Move").last.click()
    expect(page.get_by_text("began to move")).to_be_visible()
    expect(page.get_by_role("button", name="Cancel all moves")).to_be_visible()
    expect(page.get_by_role("button", name="Cancel all moves")).to_have_count(0)
    page.go("/partitions?filter=moved-")
    for number in range(2):
        row = page.get_by_role("row").nth(number + 1)
        expect(row.get_by_role("cell").nth(4)).to_have_text(target)
    page.close()


def test_a_move_is_cancelled_in_the_page(world: World) -> None:
    page = world.open("/reassign")
    page.get_by_label("Topics, or").fill("moved")
    boxes = page.get_by_role("group", name="2. To which brokers").get_by_role("checkbox")
    expect(boxes).to_have_count(3)
    for box in boxes.all()[1:]:
        box.uncheck()
    page.get_by_role("button", name="Make a plan").click()
    page.get_by_label("Throttle in MB/s").fill("0.002")
    page.get_by_role("button", name="Move").last.click()
    page.get_by_role("button", name="Cancel all moves").click()
    expect(page.get_by_role("button", name="Cancel all moves")).to_have_count(0)
    expect(page.get_by_text("throttle of")).to_have_count(0)
    page.close()
