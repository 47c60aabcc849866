"""The console in a real browser: pages show their data, and hostile names stay text."""

import json
import shutil
import threading
from collections.abc import Iterator
from urllib.parse import quote

import pytest

playwright = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
CHROMIUM = shutil.which("chromium-headless-shell")
pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(CHROMIUM is None, reason="apt-get install chromium-headless-shell fonts-dejavu-core"),
]

from barnabas import Consumer, Producer  # noqa: E402
from barnabas.console.process import listen, make_server  # noqa: E402
from barnabas.testing import Broker  # noqa: E402

SCRIPT = "<script>document.title='stolen'</script><img src=x onerror=alert(1)>"
GROUP = f"g/{SCRIPT}"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with Broker() as broker:
        broker.create_topic("orders", 2)
        with Producer(broker.bootstrap) as producer:
            for number in range(50):
                value = json.dumps({"price": number, "note": SCRIPT}).encode()
                producer.send("orders", value, key=SCRIPT.encode(), headers=[(SCRIPT, SCRIPT.encode())])
            producer.flush()
        with Consumer(broker.bootstrap, group_id=GROUP) as consumer:
            consumer.assign([("orders", 0)])
            consumer.commit({("orders", 0): 0})
        listener = listen("127.0.0.1", 0)
        port = listener.getsockname()[1]
        server = make_server({"bootstrap.servers": broker.bootstrap}, "127.0.0.1", port)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            server.should_exit = True
            thread.join()
            listener.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_pages(browser: object, address: str, scheme: str, width: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)  # type: ignore[attr-defined]
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    page.on("dialog", lambda dialog: faults.append("a dialog"))
    expect = playwright.expect
    page.goto(address + "/")
    expect(page.get_by_text("All is well")).to_be_visible()
    page.get_by_role("link", name="Topics", exact=True).click()
    page.get_by_role("link", name="orders").click()
    expect(page.get_by_text("matched 50")).to_be_visible()
    expect(page.get_by_role("cell", name=SCRIPT, exact=True).first).to_be_visible()
    page.get_by_label("Filter").fill("value.price >= 48")
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_text("matched 2")).to_be_visible()
    page.get_by_role("button", name="Open offset").first.click()
    expect(page.get_by_label("Message", exact=True)).to_contain_text('"price": 49')
    page.goto(address + "/group?id=" + quote(GROUP))
    expect(page.get_by_role("heading", name=GROUP)).to_be_visible()
    expect(page.get_by_role("link", name="orders").first).to_be_visible()
    for path, text in (
        ("/groups", GROUP),
        ("/brokers", "127.0.0.1"),
        ("/alarms", "disk nearly full"),
        ("/topics/orders?tab=settings", "retention.ms"),
    ):
        page.goto(address + path)
        expect(page.get_by_text(text).first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.title() != "stolen"
    assert faults == []
    page.goto(address + "/topics/orders?q=" + quote("colour == 1"))
    expect(page.get_by_role("alert")).to_contain_text("there is no field colour")
    page.close()


def test_a_topic_is_created_and_deleted(browser: object, address: str) -> None:
    page = browser.new_page()  # type: ignore[attr-defined]
    page.goto(address + "/topics")
    page.get_by_text("Create a topic").click()
    page.get_by_label("Name", exact=True).fill("made-here")
    page.get_by_role("button", name="Create").click()
    playwright.expect(page.get_by_role("heading", name="made-here")).to_be_visible()
    page.goto(address + "/topics/made-here?tab=settings")
    page.get_by_text("Delete this topic").click()
    page.get_by_label("Type its name to delete it").fill("made-here")
    page.get_by_role("button", name="Delete with").click()
    playwright.expect(page.get_by_role("link", name="orders")).to_be_visible()
    playwright.expect(page.get_by_role("link", name="made-here")).to_have_count(0)
    page.close()


def test_a_message_is_produced_and_its_topic_emptied(browser: object, address: str) -> None:
    expect = playwright.expect
    page = browser.new_page()  # type: ignore[attr-defined]
    page.goto(address + "/topics")
    page.get_by_text("Create a topic").click()
    page.get_by_label("Name", exact=True).fill("by-hand")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", name="by-hand")).to_be_visible()
    page.get_by_text("Produce a message").click()
    page.get_by_label("Value", exact=True).fill("hello")
    page.get_by_role("button", name="Produce").click()
    expect(page.get_by_text("at offset 0.")).to_be_visible()
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_role("cell", name="hello")).to_be_visible()
    page.goto(address + "/topics/by-hand?tab=settings")
    page.get_by_text("Empty this topic").click()
    page.get_by_label("Type its name to empty it").fill("by-hand")
    page.get_by_role("button", name="Delete all records").click()
    expect(page.get_by_text("It is empty.")).to_be_visible()
    page.close()


def test_a_group_is_reset_after_a_look_at_the_plan(browser: object, address: str) -> None:
    expect = playwright.expect
    page = browser.new_page()  # type: ignore[attr-defined]
    page.goto(address + "/group?id=" + quote(GROUP))
    page.get_by_text("Reset offsets").click()
    page.get_by_label("To", exact=True).select_option("latest")
    page.get_by_role("button", name="Show what would change").click()
    expect(page.get_by_role("region", name="What would change")).to_contain_text("orders")
    page.get_by_text("Apply this reset").click()
    page.get_by_role("button", name="Reset 1 partitions").click()
    expect(page.locator(".card", has_text="Lag").first).to_contain_text("0")
    expect(page.get_by_role("region", name="What would change")).to_have_count(0)
    page.close()
