"""The consumer against Barnabas and against Apache Kafka: the same tests, with librdkafka as the one who writes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from confluent import make_topic
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from faulty_proxy import FaultyProxy
from kafka_process import QuickKafka

from barnabas import Consumer
from barnabas.testing import Broker

QUICK = {
    "group.initial.rebalance.delay.ms": "0",
    "transaction.state.log.replication.factor": "1",
    "group.consumer.min.heartbeat.interval.ms": "300",
    "group.consumer.heartbeat.interval.ms": "300",
    "group.consumer.min.session.timeout.ms": "6000",
    "group.consumer.session.timeout.ms": "6000",
}
Fill = Callable[..., list[bytes]]


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
    """Two partitions."""
    return make_topic(judge, name, partitions=2)


@pytest.fixture(scope="session")
def fill(bootstrap: str) -> Iterator[Fill]:
    """Writes values to a partition and returns them."""
    # Idempotent: else a batch that is refused because the topic is new, and sent again, comes after later ones.
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 1, "enable.idempotence": True})

    def write(topic: str, values: Iterable[bytes] | int, partition: int = 0, **about: Any) -> list[bytes]:
        made = [b"%05d" % number for number in range(values)] if isinstance(values, int) else list(values)
        for value in made:
            producer.produce(topic, value, partition=partition, **about)
        assert producer.flush(30) == 0
        return made

    yield write


@pytest.fixture
def new_consumer(bootstrap: str) -> Iterator[Callable[..., Consumer]]:
    """Consumers that are closed at the end, those that a test broke included."""
    made: list[Consumer] = []

    def make(address: str = bootstrap, **options: Any) -> Consumer:
        made.append(Consumer(address, **{"retry_backoff_ms": 20, "fetch_max_wait_ms": 100, **options}))
        return made[-1]

    yield make
    for consumer in made:
        consumer.close(5)
