from pathlib import Path

from barnabas.client.metrics.docs import PAGES, main, metrics_page
from barnabas.client.metrics.table import TABLE

DOCS = Path(__file__).parents[3] / "docs"


def test_the_committed_page_is_up_to_date() -> None:
    assert (DOCS / "client-metrics.md").read_text() == metrics_page()


def test_main_writes_the_page(tmp_path: Path) -> None:
    assert main([str(tmp_path)]) == 0
    assert [path.name for path in tmp_path.iterdir()] == list(PAGES)


def test_no_metric_is_named_twice() -> None:
    for table in TABLE.values():
        names = [(row.group, name, row.tags) for row in table for name in row.names]
        assert len(set(names)) == len(names)
