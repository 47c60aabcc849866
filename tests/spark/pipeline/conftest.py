"""The pipeline as people run it: `barnabas pipeline run` in processes of its own, with its own Spark and broker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from barnabas_process import BarnabasProcess

from barnabas.pipeline.java import why_no_java


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(600))


@pytest.fixture(autouse=True, scope="session")
def java() -> None:
    reason = why_no_java()
    if reason is not None:
        pytest.skip(reason)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BarnabasProcess]:
    with BarnabasProcess(tmp_path / "broker") as process:
        yield process
