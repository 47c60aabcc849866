from pathlib import Path

import pytest

from barnabas.config.docs import PAGES, main

DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize("name", PAGES)
def test_the_committed_page_is_up_to_date(name: str) -> None:
    committed = (DOCS / name).read_text(encoding="utf-8")
    assert committed == PAGES[name](), "run: python -m barnabas.config.docs docs/"


def test_main_writes_every_page(tmp_path: Path) -> None:
    assert main([str(tmp_path)]) == 0
    assert {path.name for path in tmp_path.iterdir()} == set(PAGES)
    assert main([]) == 2
