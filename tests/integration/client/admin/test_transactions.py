"""Transactions through the admin client, made by librdkafka's producer."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaException, Producer
from eventually import eventually

from barnabas import Admin, ErrorCode, KafkaError
from barnabas.client.admin import AdminError
from barnabas.client.admin.types import OffsetSpec, TransactionState


@pytest.fixture
def open_transaction(bootstrap: str, topic: str) -> Iterator[Producer]:
    """A producer whose transactional id is the topic's name, with one record in partition 0 that is not committed."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic, "transaction.timeout.ms": 60000})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce(topic, b"open", partition=0)
    producer.flush()
    yield producer
    # A producer that lives on says on stderr that its broker is gone.
    del producer


def test_an_open_transaction(admin: Admin, topic: str, open_transaction: Producer) -> None:
    listed = admin.list_transactions()[topic]
    assert listed.state is TransactionState.ONGOING
    described = admin.describe_transaction(topic)
    assert (described.producer_id, described.coordinator_id) == (listed.producer_id, listed.coordinator_id)
    assert (described.state, described.transaction_timeout_ms) == (TransactionState.ONGOING, 60000)
    assert described.partitions == {(topic, 0)}
    assert described.start_time_ms is not None
    assert admin.describe_transactions([topic]) == {topic: described}
    open_transaction.commit_transaction()
    done = eventually(
        lambda: admin.describe_transaction(topic), lambda each: each.state is TransactionState.COMPLETE_COMMIT
    )
    assert done.partitions == frozenset()


def test_filters(admin: Admin, topic: str, open_transaction: Producer) -> None:
    producer_id = admin.describe_transaction(topic).producer_id
    assert topic in admin.list_transactions(states=["Ongoing"], producer_ids=[producer_id], longer_than_ms=0)
    assert topic not in admin.list_transactions(states=[TransactionState.EMPTY])
    assert topic not in admin.list_transactions(producer_ids=[producer_id + 1000])
    assert topic not in admin.list_transactions(longer_than_ms=3_600_000)
    open_transaction.abort_transaction()


def test_by_a_pattern(admin: Admin, cluster: str, topic: str, open_transaction: Producer) -> None:
    pattern = f"{topic[:-8]}.*"
    if cluster == "barnabas":
        assert topic in admin.list_transactions(transactional_id_pattern=pattern)
        assert topic not in admin.list_transactions(transactional_id_pattern="nothing")
    open_transaction.abort_transaction()


def test_an_id_that_is_not_there(admin: Admin) -> None:
    with pytest.raises(KafkaError, match=r"missing.*list_transactions shows") as raised:
        admin.describe_transaction("missing")
    assert raised.value.code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


def test_producers_of_a_partition(admin: Admin, topic: str, open_transaction: Producer) -> None:
    described = admin.describe_transaction(topic)
    producers = admin.describe_producers([(topic, 0), (topic, 1)])
    (producer,) = producers[topic, 0]
    assert producers[topic, 1] == ()
    assert (producer.producer_id, producer.producer_epoch) == (described.producer_id, described.producer_epoch)
    assert (producer.last_sequence, producer.current_transaction_start_offset) == (0, 0)
    assert producer.last_timestamp > 0
    broker = admin.describe_cluster().brokers[0].node.id
    assert admin.describe_producers([(topic, 0)], broker_id=broker)[topic, 0] == (producer,)
    open_transaction.commit_transaction()
    eventually(lambda: admin.describe_producers([(topic, 0)])[topic, 0][0].current_transaction_start_offset is None)


def test_fenced(admin: Admin, topic: str, open_transaction: Producer) -> None:
    before = admin.describe_transaction(topic)
    fenced = admin.fence_producers([topic])[topic]
    assert (fenced.producer_id, fenced.producer_epoch > before.producer_epoch) == (before.producer_id, True)
    with pytest.raises(KafkaException, match="fenced"):
        open_transaction.commit_transaction()


def test_a_transaction_ended_by_hand(admin: Admin, topic: str, open_transaction: Producer) -> None:
    with pytest.raises(KafkaError, match="starts at offset 5"):
        admin.abort_transaction((topic, 0), start_offset=5)
    admin.abort_transaction((topic, 0), start_offset=0)
    (producer,) = admin.describe_producers([(topic, 0)])[topic, 0]
    assert producer.current_transaction_start_offset is None
    stable = admin.list_offsets({(topic, 0): OffsetSpec.LATEST}, isolation_level="read_committed")
    assert stable[topic, 0].offset == 2  # the record and the marker
    with pytest.raises(ValueError, match="start_offset"):
        admin.abort_transaction((topic, 0))


def test_a_transaction_that_its_coordinator_covers_does_not_hang(
    admin: Admin, topic: str, open_transaction: Producer
) -> None:
    assert admin.find_hanging_transactions(topic=topic, max_transaction_timeout_ms=-60_000) == []
    broker = admin.describe_cluster().brokers[0].node.id
    assert admin.find_hanging_transactions([(topic, 0)], broker_id=broker) == []
    with pytest.raises(ValueError, match="limit the search"):
        admin.find_hanging_transactions()
    with pytest.raises(AdminError):
        admin.find_hanging_transactions(topic="missing")
    open_transaction.abort_transaction()
