"""The admin client against Barnabas and against Apache Kafka: the same tests, with librdkafka's admin as the judge."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from kafka_process import QuickKafka

from barnabas import Admin
from barnabas.testing import Broker

QUICK_GROUPS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.min.heartbeat.interval.ms": "300",
    "group.consumer.heartbeat.interval.ms": "300",
    "group.consumer.min.session.timeout.ms": "6000",
    "group.consumer.session.timeout.ms": "6000",
}


@pytest.fixture(scope="session", params=["barnabas", pytest.param("kafka", marks=pytest.mark.java)])
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Which of the two: tests of what only one of them can do ask for its name."""
    yield request.param


@pytest.fixture(scope="session")
def bootstrap(cluster: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if cluster == "barnabas":
        with Broker(QUICK_GROUPS) as broker:
            yield broker.bootstrap
        return
    directory = tmp_path_factory.mktemp("kafka")
    settings = QUICK_GROUPS | {
        "log.dirs": f"{directory / 'data'},{directory / 'data2'}",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "allow.everyone.if.no.acl.found": "true",
    }
    with QuickKafka(directory, settings) as kafka:
        yield kafka.bootstrap


@pytest.fixture(scope="session")
def admin(bootstrap: str) -> Iterator[Admin]:
    with Admin(bootstrap) as admin:
        yield admin


@pytest.fixture(scope="session")
def judge(bootstrap: str) -> AdminClient:
    """Somebody else's admin client, which must see the same."""
    return AdminClient({"bootstrap.servers": bootstrap})


@pytest.fixture
def new_name(request: pytest.FixtureRequest) -> str:
    """A name that no other test or run uses, which says whose it is."""
    test = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)
    return f"{test[:80]}.{os.urandom(4).hex()}"


@pytest.fixture
def topic(admin: Admin, judge: Any, new_name: str) -> str:
    """An empty topic with two partitions."""
    from eventually import eventually

    admin.create_topic(new_name, partitions=2, replication_factor=1)
    eventually(lambda: new_name in judge.list_topics(timeout=10).topics)
    return new_name
