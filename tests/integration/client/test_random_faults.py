"""A producer and a consumer behind a proxy that cuts, loses, delays and slices at random, while the broker restarts.

The checker knows lost, doubled, reordered, wrong offset and aborted read (FAULTS 9, 10, 11). The seed of a failed run
is in its name and message; `BARNABAS_SEED` runs another one.
"""

from __future__ import annotations

import os
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from faulty_proxy import FaultyProxy
from random_faults import Faults, Seen, judge

from barnabas import Admin, Consumer, Producer, TopicPartition
from barnabas.client.errors import AbortableTransactionError, ClientTimeoutError
from barnabas.client.producer.fast_path import Delivery
from barnabas.errors import KafkaError
from barnabas.testing import Broker

TOPIC = "t"
COPY = "copy"
PARTITIONS = 3
PATIENT: dict[str, Any] = {
    "request_timeout_ms": 700,
    "retry_backoff_ms": 5,
    "retry_backoff_max_ms": 60,
    "reconnect_backoff_ms": 5,
    "reconnect_backoff_max_ms": 60,
}
SETTINGS = {"transaction.state.log.replication.factor": "1", "group.initial.rebalance.delay.ms": "0"}
SEED = int(os.environ.get("BARNABAS_SEED", "0"))


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with Broker({"listeners": f"PLAINTEXT://127.0.0.1:{port}", **SETTINGS}, data_dir=tmp_path) as broker:
        with Admin(broker.bootstrap) as admin:
            admin.create_topic(TOPIC, partitions=PARTITIONS)
        yield broker


@pytest.fixture
def proxy(broker: Broker) -> Iterator[FaultyProxy]:
    with FaultyProxy(broker.bootstrap) as proxy:
        yield proxy


class Reader(threading.Thread):
    """Reads all partitions from the beginning, once, and notes what it gets."""

    def __init__(self, bootstrap: str, isolation_level: str, topic: str = TOPIC) -> None:
        super().__init__(name="reader")
        self._topic = topic
        self._address = bootstrap
        self._isolation_level: Any = isolation_level
        self._count: int | None = None
        self.seen: dict[int, list[Seen]] = {partition: [] for partition in range(PARTITIONS)}
        self.error: BaseException | None = None
        self._given_up = threading.Event()

    def run(self) -> None:
        try:
            options = {"isolation_level": self._isolation_level, "auto_offset_reset": "earliest", **PATIENT}
            with Consumer(self._address, fetch_max_wait_ms=100, **options) as consumer:
                consumer.assign([TopicPartition(self._topic, partition) for partition in self.seen])
                while not self._given_up.is_set() and not self._is_enough():
                    for record in consumer.poll(0.2):
                        self.seen[record.partition].append(Seen(record.offset, record.value))
        except BaseException as error:
            self.error = error

    def finish(self, count: int, timeout: float) -> None:
        """Waits until that many records were read, and a moment longer for one too many."""
        self._count = count
        self.join(timeout)
        self._given_up.set()
        self.join()
        if self.error is not None:
            raise self.error

    def _is_enough(self) -> bool:
        return self._count is not None and sum(map(len, self.seen.values())) >= self._count


def read_again(broker: Broker, isolation_level: str, count: int, topic: str = TOPIC) -> dict[int, list[Seen]]:
    """What is in the broker, past the proxy."""
    reader = Reader(broker.bootstrap, isolation_level, topic)
    reader.start()
    reader.finish(count, 20)
    return reader.seen


def idempotent_run(broker: Broker, proxy: FaultyProxy, seed: int, seconds: float) -> None:
    chance = random.Random(seed)
    sent: dict[int, list[tuple[bytes, Delivery]]] = {partition: [] for partition in range(PARTITIONS)}
    reader = Reader(proxy.bootstrap, "read_uncommitted")
    limits: dict[str, Any] = {"batch_size": 400, "max_request_size": 4000, "linger_ms": 1, **PATIENT}
    with Producer(proxy.bootstrap, delivery_timeout_ms=120_000, buffer_memory=100_000, **limits) as producer:
        producer.partitions_for(TOPIC)
        reader.start()
        faults = Faults(broker, proxy, seed=seed)
        with faults:
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                partition = chance.randrange(PARTITIONS)
                value = b"%d:%06d" % (partition, len(sent[partition]))
                sent[partition].append((value, producer.send(TOPIC, value, partition=partition)))
                if chance.random() < 0.2:
                    time.sleep(chance.uniform(0, 0.004))
        producer.flush(60)
    offsets = {value: delivery.result(0).offset for each in sent.values() for value, delivery in each}
    expected = {partition: [value for value, _ in each] for partition, each in sent.items()}
    reader.finish(len(offsets), 30)
    for who, seen in (("through", reader.seen), ("behind", read_again(broker, "read_uncommitted", len(offsets)))):
        wrong = judge(expected, offsets, seen)
        assert not wrong, f"seed {seed}, {who} the proxy, {len(offsets)} records: {wrong[:10]} {faults.history[-20:]}"


def persist(call: Callable[[], object]) -> None:
    """A call that ran out of time goes on, and is asked again how it ended."""
    while True:
        try:
            call()
            return
        except ClientTimeoutError:
            continue


class Transactor:
    """Transactions of random size, committed or aborted; knows what must be seen and what must not."""

    def __init__(self, producer: Producer, chance: random.Random) -> None:
        self._producer = producer
        self._chance = chance
        self._number = 0
        self.committed: dict[int, list[bytes]] = {partition: [] for partition in range(PARTITIONS)}
        self.offsets: dict[bytes, int] = {}
        self.aborted: set[bytes] = set()
        self.commits = 0

    def one(self) -> None:
        persist(self._producer.begin_transaction)
        made: list[tuple[int, bytes, Delivery]] = []
        try:
            for _ in range(self._chance.randrange(1, 20)):
                partition = self._chance.randrange(PARTITIONS)
                self._number += 1
                value = b"%06d" % self._number
                self.aborted.add(value)  # until it is committed
                made.append((partition, value, self._producer.send(TOPIC, value, partition=partition)))
            if self._chance.random() < 0.3:
                persist(self._producer.abort_transaction)
                return
            persist(self._producer.commit_transaction)
        except AbortableTransactionError:
            persist(self._producer.abort_transaction)
            return
        self.commits += 1
        for partition, value, delivery in made:
            self.aborted.discard(value)
            self.committed[partition].append(value)
            self.offsets[value] = delivery.result(0).offset


def transactional_run(broker: Broker, proxy: FaultyProxy, seed: int, seconds: float) -> None:
    reader = Reader(proxy.bootstrap, "read_committed")
    limits: dict[str, Any] = {"batch_size": 400, "max_request_size": 4000, "linger_ms": 1, **PATIENT}
    options: dict[str, Any] = {"transactional_id": "tx", "delivery_timeout_ms": 30_000, "max_block_ms": 2000}
    with Producer(proxy.bootstrap, **options, **limits) as producer:
        transactor = Transactor(producer, random.Random(seed))
        reader.start()
        faults = Faults(broker, proxy, seed=seed)
        try:
            with faults:
                end = time.monotonic() + seconds
                while time.monotonic() < end:
                    transactor.one()
        except KafkaError as error:
            raise AssertionError(f"seed {seed}: {error!r} after {faults.history[-20:]}") from error
    assert transactor.commits > 2
    count = len(transactor.offsets)
    reader.finish(count, 30)
    for who, seen in (("through", reader.seen), ("behind", read_again(broker, "read_committed", count))):
        wrong = judge(transactor.committed, transactor.offsets, seen, frozenset(transactor.aborted))
        assert not wrong, f"seed {seed}, {who} the proxy, {count} records: {wrong[:10]} {faults.history[-20:]}"


def older_transactional_run(broker: Broker, proxy: FaultyProxy, seed: int, seconds: float) -> None:
    """transaction.version 1: partitions are added by requests, and the epoch stays from one transaction to the next."""

    def lower(response: Any) -> None:
        for feature in response.finalized_features:
            if feature.name == "transaction.version":
                feature.max_version_level = 1

    proxy.on_answer("ApiVersions", lower, count=None)
    transactional_run(broker, proxy, seed, seconds)
    assert "AddPartitionsToTxn" in proxy.requests


class Copier:
    """Consume, transform, produce: what was read, what is written and the offsets in one transaction."""

    def __init__(self, bootstrap: str) -> None:
        limits: dict[str, Any] = {"batch_size": 400, "linger_ms": 1, "max_block_ms": 2000, **PATIENT}
        self._producer = Producer(bootstrap, transactional_id="copier", delivery_timeout_ms=30_000, **limits)
        about: dict[str, Any] = {"auto_offset_reset": "earliest", "enable_auto_commit": False, "max_poll_records": 10}
        self._consumer = Consumer(
            bootstrap,
            group_id="copier",
            isolation_level="read_committed",
            heartbeat_interval_ms=200,
            **about,
            **PATIENT,
        )
        self._consumer.subscribe([TOPIC])
        self.copied = 0
        self.retries = 0

    def close(self) -> None:
        self._consumer.close(5)
        self._producer.close(5)

    def step(self) -> None:
        try:
            records = self._consumer.poll(0.2)
            if records:
                self._copy(records)
        except KafkaError:
            self.retries += 1
            self._go_back()

    def _copy(self, records: Any) -> None:
        persist(self._producer.begin_transaction)
        try:
            for record in records:
                self._producer.send(COPY, record.value, partition=record.partition)
            self._producer.send_offsets(self._consumer)
        except KafkaError:
            persist(self._producer.abort_transaction)
            raise
        try:
            persist(self._producer.commit_transaction)
        except AbortableTransactionError:
            persist(self._producer.abort_transaction)
            raise
        self.copied += len(records)

    def _go_back(self) -> None:
        """To what is committed, as the transaction that read further is not."""
        while True:
            try:
                for partition, found in self._consumer.committed(self._consumer.assignment()).items():
                    if found is None:
                        self._consumer.seek_to_beginning([partition])
                    else:
                        self._consumer.seek(partition, found)
                return
            except KafkaError as error:
                if not error.retriable:
                    raise


def copying_run(broker: Broker, proxy: FaultyProxy, seed: int, seconds: float) -> None:
    each = round(150 * seconds)
    expected = {partition: [b"%d:%d" % (partition, n) for n in range(each)] for partition in range(PARTITIONS)}
    with Producer(broker.bootstrap) as filler, Admin(broker.bootstrap) as admin:
        admin.create_topic(COPY, partitions=PARTITIONS)
        for partition, values in expected.items():
            for value in values:
                filler.send(TOPIC, value, partition=partition)
    copier = Copier(proxy.bootstrap)
    faults = Faults(broker, proxy, seed=seed)
    try:
        with faults:
            end = time.monotonic() + seconds
            while time.monotonic() < end and copier.copied < each * PARTITIONS:
                copier.step()
        end = time.monotonic() + 30
        while time.monotonic() < end and copier.copied < each * PARTITIONS:
            copier.step()
    finally:
        copier.close()
    seen = read_again(broker, "read_committed", each * PARTITIONS, COPY)
    wrong = judge(expected, {}, seen)
    assert not wrong, f"seed {seed}, {copier.retries} aborted: {wrong[:10]} {faults.history[-20:]}"


RUNS = {
    "copying": copying_run,
    "idempotent": idempotent_run,
    "transactional": transactional_run,
    "older transactional": older_transactional_run,
}


@pytest.mark.parametrize("kind", RUNS)
def test_random_faults(broker: Broker, proxy: FaultyProxy, kind: str) -> None:
    RUNS[kind](broker, proxy, SEED or 20, 1.5)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(SEED or 1, (SEED or 1) + 10))
@pytest.mark.parametrize("kind", RUNS)
def test_random_faults_for_long(broker: Broker, proxy: FaultyProxy, kind: str, seed: int) -> None:
    RUNS[kind](broker, proxy, seed, 15.0)


def test_the_checker_knows_what_is_wrong() -> None:
    expected, offsets = {0: [b"a", b"b", b"c"]}, {b"a": 0, b"b": 1, b"c": 2}

    def wrong(*got: tuple[int, bytes]) -> str:
        return " ".join(judge(expected, offsets, {0: [Seen(*each) for each in got]}, frozenset([b"x"])))

    assert wrong((0, b"a"), (1, b"b"), (2, b"c")) == ""
    assert "lost" in wrong((0, b"a"), (2, b"c"))
    assert "2 times" in wrong((0, b"a"), (1, b"b"), (2, b"c"), (3, b"c"))
    assert "out of order" in wrong((0, b"b"), (1, b"a"), (2, b"c"))
    assert "before" in wrong((0, b"a"), (2, b"b"), (1, b"c"))
    assert "acknowledged at 2" in wrong((0, b"a"), (1, b"b"), (3, b"c"))
    assert "aborted and read" in wrong((0, b"a"), (1, b"b"), (2, b"c"), (3, b"x"))
    assert "nobody sent" in wrong((0, b"a"), (1, b"b"), (2, b"c"), (3, b"y"))
