"""The producer against Barnabas and against Apache Kafka: the same tests, with librdkafka as the one who reads."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent import make_topic
from confluent_kafka.admin import AdminClient
from faulty_proxy import FaultyProxy
from kafka_process import QuickKafka

from barnabas import Producer
from barnabas.testing import Broker

QUICK = {"group.initial.rebalance.delay.ms": "0", "transaction.state.log.replication.factor": "1"}


@pytest.fixture(scope="session", params=["barnabas", pytest.param("kafka", marks=pytest.mark.java)])
def bootstrap(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if request.param == "barnabas":
        with Broker(QUICK) as broker:
            yield broker.bootstrap
    else:
        with QuickKafka(tmp_path_factory.mktemp("kafka"), QUICK) as kafka:
            yield kafka.bootstrap


@pytest.fixture
def proxy(bootstrap: str) -> Iterator[FaultyProxy]:
    with FaultyProxy(bootstrap) as proxy:
        yield proxy


@pytest.fixture(scope="session")
def judge(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap})


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A name that no other test or run uses, which says whose it is."""
    test = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)
    return f"{test[:80]}.{os.urandom(4).hex()}"


@pytest.fixture
def topic(judge: AdminClient, name: str) -> str:
    """One partition, so that order is total."""
    return make_topic(judge, name)


@pytest.fixture
def new_producer() -> Iterator[Callable[..., Producer]]:
    """Producers that are closed at the end, those that a test broke included."""
    made: list[Producer] = []

    def make(bootstrap: str, **options: Any) -> Producer:
        made.append(Producer(bootstrap, **options))
        return made[-1]

    yield make
    for producer in made:
        producer.close(0)
