"""A wait that times out says why: the address of the broker and what was wrong with it, or its response."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fake_cluster import FakeCluster
from produce_broker import ProduceBroker
from sending import Sending, sendings

from barnabas.client.errors import ClientTimeoutError, UnreachableError
from barnabas.client.retry import Deadline
from barnabas.errors import ErrorCode
from barnabas.protocol import ApiKey
from barnabas.protocol.messages.init_producer_id import InitProducerIdResponse

SOON: dict[str, Any] = {"delivery_timeout_ms": 60, "request_timeout_ms": 50, "reconnect_backoff_ms": 1}
REFUSED = UnreachableError("broker-0:9092", "connection refused, nothing listens there")
WORDS = r"; last error: broker-0:9092: connection refused, nothing listens there$"


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster(topics={"t": 1})


@pytest.fixture
def broker(cluster: FakeCluster) -> ProduceBroker:
    return ProduceBroker(cluster)


@pytest.fixture
def sending(cluster: FakeCluster, broker: ProduceBroker) -> Iterator[Callable[..., Sending]]:
    with sendings(**SOON) as make:
        yield functools.partial(make, cluster)


@pytest.fixture
def disconnect(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    async def refused(*_: Any, **__: Any) -> Any:
        raise REFUSED

    def disconnect() -> None:
        monkeypatch.setattr(cluster, "is_ready", lambda node_id: False)
        monkeypatch.setattr(cluster, "version_of", refused)
        monkeypatch.setattr(cluster, "refresh_metadata", refused)

    return disconnect


@pytest.mark.parametrize("idempotent", [True, False])
def test_a_delivery_to_a_broker_that_is_gone(
    sending: Callable[..., Sending], disconnect: Callable[[], None], idempotent: bool
) -> None:
    made = sending(enable_idempotence=idempotent)
    made.send("t", b"0").result(20)
    disconnect()
    delivery = made.send("t", b"1")
    with pytest.raises(ClientTimeoutError, match=WORDS):
        delivery.result(20)


def test_a_delivery_without_a_producer_id(
    cluster: FakeCluster, sending: Callable[..., Sending], disconnect: Callable[[], None]
) -> None:
    made = sending()
    made.io.wait(made.core.load_topic("t", Deadline(1000)))
    disconnect()
    delivery = made.send("t", b"1")
    with pytest.raises(ClientTimeoutError, match=WORDS):
        delivery.result(20)


def test_a_delivery_without_a_leader(
    cluster: FakeCluster, sending: Callable[..., Sending], disconnect: Callable[[], None]
) -> None:
    made = sending(enable_idempotence=False)
    cluster.set_leader("t", 0, leader=-1, leader_epoch=1)
    made.publish()
    made.io.wait(made.core.load_topic("t", Deadline(1000)))
    disconnect()
    delivery = made.send("t", b"1", partition=0)
    with pytest.raises(ClientTimeoutError, match=f"no leader of the partition is known.*{WORDS}"):
        delivery.result(20)


def test_a_delivery_that_is_refused_again_and_again(broker: ProduceBroker, sending: Callable[..., Sending]) -> None:
    made = sending(retry_backoff_ms=60_000, retry_backoff_max_ms=60_000)
    made.send("t", b"0").result(20)
    broker.errors.append(ErrorCode.NOT_ENOUGH_REPLICAS)
    delivery = made.send("t", b"1")
    with pytest.raises(ClientTimeoutError, match="; last error: partition t-0: fewer replicas are in sync"):
        delivery.result(20)


def test_an_old_error_is_not_reported(
    cluster: FakeCluster,
    sending: Callable[..., Sending],
    disconnect: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = sending()
    made.send("t", b"0").result(20)
    disconnect()
    assert made.send("t", b"1").exception(20)
    monkeypatch.undo()
    made.send("t", b"2").result(20)
    cluster.set_leader("t", 0, leader=-1, leader_epoch=1)
    made.publish()
    error = made.send("t", b"3", partition=0).exception(20)
    assert isinstance(error, ClientTimeoutError) and "last error" not in error.message


def test_a_flush(sending: Callable[..., Sending], disconnect: Callable[[], None]) -> None:
    made = sending(delivery_timeout_ms=60_000)
    made.send("t", b"0").result(20)
    disconnect()
    made.send("t", b"1")
    with pytest.raises(ClientTimeoutError, match=WORDS):
        made.producer().flush(0.05)


def test_the_start_of_transactions(
    cluster: FakeCluster, sending: Callable[..., Sending], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The look-up of the coordinator retries by itself: it must come back to say why."""
    deadlines = []

    async def refused(kind: Any, key: str, deadline: Deadline | None = None) -> int:
        deadlines.append(deadline)
        raise REFUSED

    monkeypatch.setattr(cluster, "coordinator", refused)
    producer = sending(transactional_id="x", max_block_ms=30).producer()
    with pytest.raises(ClientTimeoutError, match=WORDS):
        producer.init_transactions()
    assert all(each is not None and each.expired for each in deadlines)


def test_a_commit_that_waits_for_its_records(
    cluster: FakeCluster, sending: Callable[..., Sending], disconnect: Callable[[], None]
) -> None:
    cluster.always(ApiKey.INIT_PRODUCER_ID, InitProducerIdResponse(producer_id=9, producer_epoch=0))
    producer = sending(transactional_id="x", max_block_ms=30, delivery_timeout_ms=60_000).producer()
    with pytest.raises(ClientTimeoutError, match=WORDS), producer.transaction():
        producer.send("t", b"0").result(20)
        disconnect()
        producer.send("t", b"1")
