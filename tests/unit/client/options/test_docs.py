"""The page of client options: committed as it is written, and nothing left out."""

from pathlib import Path

import pytest

from barnabas.client.options import AdminOptions, ConsumerOptions, ProducerOptions
from barnabas.client.options.docs import PAGES, main, options_page
from barnabas.client.options.option import Option
from barnabas.client.options.reading import OptionsTable

DOCS = Path(__file__).parents[4] / "docs"


@pytest.mark.parametrize("name", PAGES)
def test_the_committed_page_is_up_to_date(name: str) -> None:
    committed = (DOCS / name).read_text(encoding="utf-8")
    assert committed == PAGES[name](), "run: make docs"


@pytest.mark.parametrize("table", [ProducerOptions, ConsumerOptions, AdminOptions])
def test_every_option_has_a_row(table: type[OptionsTable]) -> None:
    page = options_page()
    missing = [
        setting.field
        for setting in table.settings.values()
        if isinstance(setting, Option) and f"\n| `{setting.field}` |" not in page
    ]
    assert missing == []


def test_a_default_that_differs_stands_with_its_client() -> None:
    shared, *clients = options_page().split("\n## ")[1:5]
    assert "`connections_max_idle_ms`" not in shared
    assert ["`connections_max_idle_ms` | int | `540000`" in page for page in clients] == [True, True, False]


def test_main_writes_every_page(tmp_path: Path) -> None:
    assert main([str(tmp_path)]) == 0
    assert {path.name for path in tmp_path.iterdir()} == set(PAGES)
    assert main([]) == 2
