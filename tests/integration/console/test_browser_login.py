"""The login page in a real browser: a shared link survives it, a wrong password says so, logging out ends it."""

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

playwright = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
CHROMIUM = shutil.which("chromium-headless-shell")
pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(CHROMIUM is None, reason="apt-get install chromium-headless-shell fonts-dejavu-core"),
]

from barnabas.console.login.password_file import VIEWER, Cost, PasswordEntry, write_entries  # noqa: E402
from barnabas.console.process import listen, make_server  # noqa: E402
from barnabas.console.settings import ConsoleSettings  # noqa: E402
from barnabas.testing import Broker  # noqa: E402


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    path: Path = tmp_path_factory.mktemp("login") / "users.txt"
    write_entries(path, {"ann": PasswordEntry.make("ann", VIEWER, "secret", Cost(2, 1, 1))})
    with Broker() as broker, listen("127.0.0.1", 0) as listener:
        broker.create_topic("orders", 2)
        port = listener.getsockname()[1]
        config = {"bootstrap.servers": broker.bootstrap}
        server = make_server(config, "127.0.0.1", port, ConsoleSettings(users=path))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            server.should_exit = True
            thread.join()


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_log_in_and_out(address: str, scheme: str, width: int, tmp_path: Path) -> None:
    expect = playwright.expect
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
        faults: list[str] = []
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.goto(f"{address}/topics/orders?tab=settings")
        expect(page.get_by_label("Password")).to_be_visible()
        page.screenshot(path=str(tmp_path / "login.png"))
        page.get_by_label("User").fill("ann")
        page.get_by_label("Password").fill("wrong")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("the user or the password is wrong")
        page.get_by_label("Password").fill("secret")
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="orders")).to_be_visible()
        expect(page.get_by_text("retention.ms").first).to_be_visible()
        assert page.url.endswith("/topics/orders?tab=settings")
        expect(page.get_by_text("ann (may look only)")).to_be_visible()
        page.screenshot(path=str(tmp_path / "in.png"))
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.get_by_role("button", name="Log out").click()
        expect(page.get_by_label("Password")).to_be_visible()
        page.goto(f"{address}/login?to=//evil.example/x")
        page.get_by_label("User").fill("ann")
        page.get_by_label("Password").fill("secret")
        page.keyboard.press("Enter")
        expect(page.get_by_text("All is well")).to_be_visible()
        assert page.url == f"{address}/" and faults == []
        browser.close()
