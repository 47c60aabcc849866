"""A page of the console in a browser, and what must never happen on any of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SCRIPT = "<script>document.title='stolen'</script><img src=x onerror=alert(1)>"
AXE = Path(__file__).resolve().parents[2] / ".build/node/node_modules/axe-core/axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]


class Watched:
    """A page whose errors, dialogs and stolen titles are found when it is closed. Otherwise as a Playwright page."""

    def __init__(self, browser: Browser, address: str, path: str, scheme: str = "light", width: int = 1280) -> None:
        # A context of its own: what one test keeps in the browser is not there for the next.
        self._context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
        self._page: Page = self._context.new_page()
        self._page.set_default_timeout(20_000)
        self._address = address
        self.accepts_dialogs = self.silent = False
        self.faults: list[str] = []
        self._page.on("pageerror", lambda error: self.faults.append(str(error)))
        self._page.on("console", self._on_console)
        self._page.on("dialog", self._on_dialog)
        self.go(path)

    def go(self, path: str, *, silent: bool = False) -> None:
        """`silent`: requests of this page are meant to be refused."""
        self.silent = silent
        self._page.goto(self._address + path)

    def visit(self, path: str) -> None:
        """Without loading the page again, as a link in it does."""
        self._page.evaluate(
            "path => { history.pushState(null, '', path); dispatchEvent(new Event('popstate')); }", path
        )

    def _on_dialog(self, dialog: Any) -> None:
        if self.accepts_dialogs:
            dialog.accept()
        else:
            self.faults.append(f"a dialog: {dialog.message}")
            dialog.dismiss()

    def _on_console(self, message: Any) -> None:
        if message.type == "error" and not self.silent:
            self.faults.append(f"{message.text} at {message.location.get('url')}")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._page, name)

    def close(self) -> None:
        title = self._page.title()
        self._context.close()
        assert title != "stolen"
        assert not self.faults, "\n".join(self.faults)


def too_wide(page: Any) -> list[str]:
    """Elements that make the page wider than the window; what scrolls by itself does not."""
    return page.evaluate(
        """() => document.documentElement.scrollWidth <= innerWidth ? [] :
        [...document.querySelectorAll("main *, header *")]
        .filter((each) => each.getBoundingClientRect().right > innerWidth && !each.closest(".scroll, .tabs"))
        .slice(0, 5).map((each) => "too wide: " + each.outerHTML.slice(0, 120))
        .concat("the page is wider than the window")"""
    )


def why_no_axe() -> str | None:
    return None if AXE.exists() else "axe-core is not in .build/node (tests/foreign/install.sh gets it)"


def axe_faults(page: Any) -> list[str]:
    """Violations of the accessibility rules, as "rule: element"."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text())
    found = page.evaluate(
        "rules => axe.run(document, {runOnly: {type: 'tag', values: rules}, resultTypes: ['violations']})", RULES
    )
    return [f"{each['id']}: {node['html'][:120]}" for each in found["violations"] for node in each["nodes"][:3]]
