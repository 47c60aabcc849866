"""pytest fixtures that come with the package; nothing is imported until one is used.

`@pytest.mark.barnabas_settings({"num.partitions": 3})` gives `barnabas_broker` and `barnabas_cluster` settings of
the test's own, on a function, a class or (`pytestmark`) a module; the closest one wins, setting by setting.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from barnabas.testing.broker import Broker
    from barnabas.testing.cluster import Cluster

MARKER = "barnabas_settings"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", f"{MARKER}(settings): broker settings of the fixtures barnabas_broker and barnabas_cluster"
    )


@pytest.fixture
def barnabas_broker(request: pytest.FixtureRequest) -> "Iterator[Broker]":
    """A broker of the test's own; `barnabas_broker.bootstrap` is its address."""
    from barnabas.testing.broker import Broker

    with Broker(_settings(request)) as broker:
        yield broker


@pytest.fixture
def barnabas_cluster(request: pytest.FixtureRequest) -> "Iterator[Cluster]":
    """Three brokers of the test's own; `barnabas_cluster.bootstrap` is their addresses."""
    from barnabas.testing.cluster import Cluster

    with Cluster(settings=_settings(request)) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def barnabas_session_broker() -> "Iterator[Broker]":
    """One broker for all tests of a run: quicker, and each test has to use topics and groups of its own."""
    from barnabas.testing.broker import Broker

    with Broker() as broker:
        yield broker


def _settings(request: pytest.FixtureRequest) -> dict[str, object]:
    settings: dict[str, object] = {}
    for marker in reversed(list(request.node.iter_markers(MARKER))):
        for given in marker.args:
            settings.update(given)
    return settings
