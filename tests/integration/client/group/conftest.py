"""Group membership against Barnabas and against Apache Kafka: the same tests, with foreign members as the judges."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from barnabas_members import OurMember
from confluent import make_topic
from confluent_kafka.admin import AdminClient
from kafka_process import QuickKafka

from barnabas.testing import Broker

# kafka-python reads its schemas, when imported, through a deprecated call; our warnings stay errors.
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka  # noqa: F401

QUICK_GROUPS = {
    "group.initial.rebalance.delay.ms": "50",
    "group.min.session.timeout.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "200",
    "group.consumer.heartbeat.interval.ms": "200",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "6000",
    "offsets.topic.num.partitions": "1",
}


@pytest.fixture(scope="session", params=["barnabas", pytest.param("kafka", marks=pytest.mark.java)])
def bootstrap(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if request.param == "barnabas":
        with Broker(QUICK_GROUPS) as broker:
            yield broker.bootstrap
    else:
        with QuickKafka(tmp_path_factory.mktemp("kafka"), QUICK_GROUPS) as kafka:
            yield kafka.bootstrap


@pytest.fixture(scope="session")
def judge(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap})


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A name that no other test or run uses, which says whose it is."""
    test = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)
    return f"{test[:60]}.{os.urandom(4).hex()}"


@pytest.fixture
def topic(judge: AdminClient, name: str) -> str:
    """Four partitions; the group has the same name."""
    return make_topic(judge, name, partitions=4)


@pytest.fixture
def join(bootstrap: str, name: str) -> Iterator[Callable[..., OurMember]]:
    """Members of the group that is called like the topic, closed at the end."""
    made: list[OurMember] = []

    def make(topics: Any = None, **options: Any) -> OurMember:
        options.setdefault("client_id", f"member-{len(made)}")
        made.append(OurMember(options.pop("address", bootstrap), name, topics or [name], **options))
        return made[-1]

    yield make
    for member in made:
        member.close()
