from pathlib import Path

from barnabas.server.metrics.docs import PAGES, main

DOCS = Path(__file__).parents[4] / "docs"


def test_the_committed_page_is_up_to_date() -> None:
    for name, page in PAGES.items():
        assert (DOCS / name).read_text(encoding="utf-8") == page(), "run: make docs"


def test_main_writes_the_page(tmp_path: Path) -> None:
    assert main([str(tmp_path)]) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["metrics.md"]
