"""The broker that foreign clients talk to: one `barnabas server` process a session, or any other by its address.

`BARNABAS_TEST_BOOTSTRAP=host:port pytest tests/clients` runs the same tests against, say, Apache Kafka with the
settings QUICK_GROUPS: a test that fails there expects something that Kafka does not do.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator

import pytest
from barnabas_process import BarnabasProcess
from confluent import make_topic
from confluent_kafka.admin import AdminClient
from kafka_commands import KafkaTools

# kafka-python reads its schemas, when imported, through a deprecated call; our warnings stay errors.
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka  # noqa: F401


# Kafka's waits for more members, between heartbeats and for members that crashed would be most of the time that the
# tests of groups take.
QUICK_GROUPS = {
    "group.initial.rebalance.delay.ms": "100",
    "group.min.session.timeout.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "300",
    "group.consumer.heartbeat.interval.ms": "300",
    "group.consumer.min.session.timeout.ms": "2500",
    "group.consumer.session.timeout.ms": "2500",
}


@pytest.fixture(scope="session")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    given = os.environ.get("BARNABAS_TEST_BOOTSTRAP")
    if given:
        yield given
        return
    with BarnabasProcess(tmp_path_factory.mktemp("barnabas"), settings=QUICK_GROUPS) as broker:
        yield broker.bootstrap


@pytest.fixture(scope="session")
def admin(bootstrap: str) -> AdminClient:
    """librdkafka's admin client: for its own tests and to prepare topics for others'."""
    return AdminClient({"bootstrap.servers": bootstrap})


@pytest.fixture(scope="session")
def kafka_tools() -> Iterator[KafkaTools]:
    """Apache Kafka's commands, all in one JVM."""
    tools = KafkaTools()
    yield tools
    tools.close()


@pytest.fixture
def new_name(request: pytest.FixtureRequest) -> str:
    """A topic name that no other test or run uses, which says whose it is."""
    test = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)
    return f"{test[:80]}.{os.urandom(4).hex()}"


@pytest.fixture
def topic(admin: AdminClient, new_name: str) -> str:
    """An empty topic with two partitions."""
    return make_topic(admin, new_name, 2)
