"""Spark's official Kafka connector beside ours: the same questions to both, on Barnabas and on Apache Kafka.

Each runs in a process of its own with the PySpark that it is for. `same(...)` asks both and compares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from kafka_process import KafkaProcess
from spark_worker import OFFICIAL, OURS, SparkFailed, SparkWorker, why_no_official

from barnabas.testing import Broker


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.soak)


@pytest.fixture(scope="session")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SparkWorker, SparkWorker]]:
    reason = why_no_official()
    if reason is not None:
        pytest.skip(reason)
    with ExitStack() as stack:
        directories = [tmp_path_factory.mktemp(f"spark-{kind}") for kind in (OFFICIAL, OURS)]
        official = stack.enter_context(SparkWorker(OFFICIAL, directories[0]))
        yield official, stack.enter_context(SparkWorker(OURS, directories[1]))


@pytest.fixture(scope="session")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], str]]:
    """Of a broker by its name; each is started once, whatever the order of the tests."""
    started: dict[str, str] = {}
    with ExitStack() as stack:

        def address(name: str) -> str:
            if name not in started:
                kafka = name == "Apache Kafka"
                broker = KafkaProcess(tmp_path_factory.mktemp("kafka") / "broker") if kafka else Broker()
                started[name] = stack.enter_context(broker).bootstrap
            return started[name]

        yield address


@pytest.fixture(scope="session", params=["Barnabas", pytest.param("Apache Kafka", marks=pytest.mark.java)])
def bootstrap(request: pytest.FixtureRequest, addresses: Callable[[str], str]) -> str:
    return addresses(request.param)


Ask = Callable[..., Any]


@pytest.fixture
def same(workers: tuple[SparkWorker, SparkWorker], bootstrap: str) -> Ask:
    """Ask both the same; the response, once it is seen to be one and the same."""

    def ask(do: str, options: dict[str, str], **more: Any) -> Any:
        options = {"kafka.bootstrap.servers": bootstrap, **options}
        theirs, ours = (worker.ask(do, options=options, **more) for worker in workers)
        assert ours == theirs
        return ours

    return ask


@pytest.fixture
def both_refuse(workers: tuple[SparkWorker, SparkWorker], bootstrap: str) -> Ask:
    """What each says to something that it must refuse: (the official one, ours)."""

    def ask(do: str, options: dict[str, str], **more: Any) -> tuple[str, str]:
        said = []
        for worker in workers:
            with pytest.raises(SparkFailed) as caught:
                worker.ask(do, options={"kafka.bootstrap.servers": bootstrap, **options}, **more)
            said.append(str(caught.value))
        return said[0], said[1]

    return ask
