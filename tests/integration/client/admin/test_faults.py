"""Errors, lost responses, closed connections and restarts on the way of admin calls."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas import Admin, ClosedError, ErrorCode, KafkaError, UnreachableError
from barnabas.aio import Admin as AsyncAdmin
from barnabas.client.admin.types import OffsetSpec
from barnabas.testing import Broker


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def admin(broker: Broker) -> Iterator[Admin]:
    with Admin(broker.bootstrap, retry_backoff_ms=5) as admin:
        yield admin


def test_a_controller_that_is_not_one_yet(broker: Broker, admin: Admin) -> None:
    broker.fault("CreateTopics", error="NOT_CONTROLLER", count=2)
    assert admin.create_topic("t", 2).partitions == 2


def test_the_response_to_a_creation_is_lost(broker: Broker, admin: Admin) -> None:
    broker.fault("CreateTopics", drop_answer=True)
    assert not admin.create_topic("t", 2).existed
    assert len(admin.describe_topic("t").partitions) == 2
    broker.fault("CreatePartitions", drop_answer=True)
    admin.add_partitions("t", 3)
    broker.fault("DeleteTopics", drop_answer=True)
    admin.delete_topic("t")
    assert admin.list_topics() == {}


def test_a_connection_that_closes(broker: Broker, admin: Admin) -> None:
    admin.create_topic("t")
    for api in ("Metadata", "DescribeTopicPartitions", "DescribeConfigs", "ListOffsets"):
        broker.fault(api, close=True)
    assert list(admin.list_topics()) == ["t"]
    assert admin.describe_topic("t").name == "t"
    assert admin.list_offsets({("t", 0): OffsetSpec.LATEST})["t", 0].offset == 0


def test_a_coordinator_that_loads_or_moved(broker: Broker, admin: Admin) -> None:
    admin.create_topic("t")
    broker.fault("FindCoordinator", error="COORDINATOR_NOT_AVAILABLE", count=2)
    broker.fault("OffsetCommit", error="NOT_COORDINATOR")
    broker.fault("OffsetCommit", error="COORDINATOR_LOAD_IN_PROGRESS")
    admin.alter_group_offsets("g", {("t", 0): 3})
    broker.fault("OffsetFetch", error="NOT_COORDINATOR")
    assert [each.offset for each in admin.list_group_offsets("g").values() if each] == [3]
    broker.fault("DeleteGroups", drop_answer=True)
    admin.delete_group("g")


def test_a_leader_that_moved(broker: Broker, admin: Admin) -> None:
    admin.create_topic("t")
    broker.fault("ListOffsets", error="NOT_LEADER_OR_FOLLOWER", count=2)
    assert admin.list_offsets({("t", 0): OffsetSpec.EARLIEST})["t", 0].offset == 0


def test_the_time_is_over(broker: Broker, admin: Admin) -> None:
    broker.fault("CreateTopics", error="NOT_CONTROLLER", count=None)
    with pytest.raises(TimeoutError, match="NOT_CONTROLLER"):
        admin.create_topic("t", timeout=1.0)
    broker.clear_faults()
    broker.fault("CreateTopics", delay_ms=300)
    with pytest.raises(KafkaError) as raised:
        admin.create_topic("u", timeout=0.05)
    assert raised.value.code is ErrorCode.REQUEST_TIMED_OUT


def test_a_broker_that_restarts(tmp_path: Path) -> None:
    settings = {"listeners": "PLAINTEXT://127.0.0.1:0"}
    broker = Broker(settings, data_dir=tmp_path).start()
    port = broker.port
    with Admin(broker.bootstrap, retry_backoff_ms=5, reconnect_backoff_ms=5) as admin:
        admin.create_topic("t")
        broker.stop()
        again = Broker({"listeners": f"PLAINTEXT://127.0.0.1:{port}"}, data_dir=tmp_path)
        starting = threading.Timer(0.2, again.start)
        starting.start()
        try:
            with Admin(f"127.0.0.1:{port}") as fresh:
                assert "t" in fresh.list_topics(timeout=20)
            admin.create_topic("u", timeout=20)
            assert "u" in admin.list_topics()
        finally:
            starting.join()
            again.stop()


def test_nothing_listens() -> None:
    before = time.monotonic()
    with Admin("127.0.0.1:1") as admin, pytest.raises(UnreachableError, match=r"127\.0\.0\.1:1.*refused"):
        admin.list_topics()
    assert time.monotonic() - before < 10


def test_something_listens_that_never_responds() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        before = time.monotonic()
        with Admin(address) as admin, pytest.raises(TimeoutError):
            admin.list_topics(timeout=0.3)
    assert time.monotonic() - before < 5


def test_a_closed_client(broker: Broker) -> None:
    admin = Admin(broker.bootstrap)
    admin.list_topics()
    admin.close()
    admin.close()
    with pytest.raises(ClosedError):
        admin.list_topics()


def test_the_awaitable_twin(broker: Broker) -> None:
    async def use() -> None:
        async with AsyncAdmin(broker.bootstrap) as admin:
            made = await asyncio.gather(*(admin.create_topic(f"t{number}") for number in range(3)))
            assert [topic.name for topic in made] == ["t0", "t1", "t2"]
            assert list(await admin.list_topics()) == ["t0", "t1", "t2"]
            with pytest.raises(KafkaError, match="TOPIC_ALREADY_EXISTS"):
                await admin.create_topic("t0")
            broker.fault("Metadata", delay_ms=300, count=None)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await admin.list_topics()
            broker.clear_faults()

    asyncio.run(use())
