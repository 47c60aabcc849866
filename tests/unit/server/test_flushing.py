"""Flushes and failing disks, as clients see them: no acknowledgement before its flush, none after a failed one."""

import errno
import select
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from eventually import eventually
from faulty_files import FaultyFiles
from raw_client import RawClient, base_offsets, batch, fetch_request, produce_request

from barnabas.errors import ErrorCode
from barnabas.protocol.messages import describe_log_dirs as dirs
from barnabas.protocol.messages.fetch import FetchRequest
from barnabas.protocol.messages.produce import ProduceRequest
from barnabas.testing import Broker


class GatedFiles(FaultyFiles):
    """Flushes of the topic `gated` wait until the gate is opened, and are counted."""

    def __init__(self) -> None:
        super().__init__()
        self.flushes = 0
        self.entered = threading.Event()
        self.gate = threading.Event()
        self.gate.set()

    def step(self, operation: str, path: str, size: int) -> int | None:
        if operation == "fsync" and "/gated-" in path and path.endswith(".log"):
            self.flushes += 1
            self.entered.set()
            self.gate.wait(30)
        return super().step(operation, path, size)


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> GatedFiles:
    layer = GatedFiles()
    monkeypatch.setattr("barnabas.server.broker_parts.Files", lambda: layer)
    return layer


@pytest.fixture
def broker(files: GatedFiles, tmp_path: Path) -> Iterator[Broker]:
    """Two log directories, so that one may fail."""
    with Broker({"log.dirs": f"{tmp_path / 'one'},{tmp_path / 'two'}"}) as running:
        yield running
        files.gate.set()
        files.error = None


@pytest.fixture
def client(broker: Broker) -> Iterator[RawClient]:
    with RawClient(broker.bootstrap) as connection:
        yield connection


def has_answer(client: RawClient, other: RawClient) -> bool:
    """Whether there is something to read, once the broker has had its turn."""
    other.metadata()
    return bool(select.select([client.socket], [], [], 0)[0])


def log_end_offset(broker: Broker) -> int:
    return broker._running().replicas.find("gated", 0).log.log_end_offset


@pytest.mark.parametrize("acks", [1, -1])
def test_an_acknowledgement_waits_for_the_flush(
    broker: Broker, files: GatedFiles, client: RawClient, acks: int
) -> None:
    client.create_topic("gated", flush_messages="1")
    files.gate.clear()
    with RawClient(broker.bootstrap) as writer:
        writer.post(produce_request("gated", batch(), acks=acks), 12)
        assert files.entered.wait(10)
        assert not has_answer(writer, client)
        files.gate.set()
        (answer,) = writer.answer(ProduceRequest, 12).responses[0].partition_responses
        assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, 0)


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_nobody_reads_what_is_not_flushed_yet(broker: Broker, files: GatedFiles, client: RawClient, acks: int) -> None:
    """Or a power loss could take back what a consumer has seen."""
    client.create_topic("gated", flush_messages="1")
    files.gate.clear()
    with RawClient(broker.bootstrap) as writer, RawClient(broker.bootstrap) as reader:
        reader.post(fetch_request("gated", 0, min_bytes=1, max_wait_ms=600_000), 12)
        writer.post(produce_request("gated", batch(), acks=acks), 12)
        assert files.entered.wait(10)
        assert client.fetch("gated", 0).high_watermark == 0
        assert not has_answer(reader, client)
        files.gate.set()
        answer = reader.answer(FetchRequest, 12).responses[0].partitions[0]
        assert (base_offsets(answer.records), answer.high_watermark) == ([0], 1)


def test_without_flush_messages_nobody_waits(files: GatedFiles, client: RawClient) -> None:
    client.create_topic("gated")
    files.gate.clear()
    assert client.produce("gated", batch()).error_code == ErrorCode.NONE
    assert files.flushes == 0


def test_a_flush_that_takes_long_hinders_nobody_else(broker: Broker, files: GatedFiles, client: RawClient) -> None:
    client.create_topic("gated", flush_messages="1")
    client.create_topic("other", flush_messages="1")
    files.gate.clear()
    with RawClient(broker.bootstrap) as writer:
        writer.post(produce_request("gated", batch()), 12)
        assert files.entered.wait(10)
        assert client.produce("other", batch()).error_code == ErrorCode.NONE
        files.gate.set()
        writer.answer(ProduceRequest, 12)


def test_one_flush_serves_all_who_wait(broker: Broker, files: GatedFiles, client: RawClient) -> None:
    client.create_topic("gated", flush_messages="1")
    files.gate.clear()
    writers = [RawClient(broker.bootstrap) for _ in range(6)]
    writers[0].post(produce_request("gated", batch()), 12)
    assert files.entered.wait(10)
    for writer in writers[1:]:
        writer.post(produce_request("gated", batch()), 12)
    eventually(lambda: log_end_offset(broker), lambda offset: offset == 6)
    files.gate.set()
    for writer in writers:
        answer = writer.answer(ProduceRequest, 12).responses[0].partition_responses[0]
        assert answer.error_code == ErrorCode.NONE
        writer.close()
    assert files.flushes == 2  # the one that ran, and one for the five who came meanwhile


def test_every_so_many_messages(files: GatedFiles, client: RawClient) -> None:
    client.create_topic("gated", flush_messages="3")
    for count, flushes in ((1, 0), (2, 0), (3, 1), (4, 1), (5, 1), (6, 2)):
        client.produce("gated", batch())
        assert files.flushes == flushes, count


def test_what_nobody_waits_for_is_flushed_too(broker: Broker, files: GatedFiles, client: RawClient) -> None:
    client.create_topic("gated", flush_messages="2")
    files.gate.clear()
    for _ in range(2):
        client.produce("gated", batch(), acks=0)
    assert files.entered.wait(10)
    for _ in range(2):  # while that flush runs
        client.produce("gated", batch(), acks=0)
    eventually(lambda: log_end_offset(broker), lambda offset: offset == 4)
    files.gate.set()
    eventually(lambda: files.flushes, lambda flushes: flushes == 2)


def test_a_flush_slower_than_the_client_waits_is_a_time_out(
    broker: Broker, files: GatedFiles, client: RawClient
) -> None:
    client.create_topic("gated", flush_messages="1")
    files.gate.clear()
    assert client.produce("gated", batch(), timeout_ms=50).error_code == ErrorCode.REQUEST_TIMED_OUT
    files.gate.set()
    assert client.produce("gated", batch(), timeout_ms=30_000).base_offset == 1


def two_partitions(client: RawClient, topic: str, **configs: str) -> None:
    """A partition in each log directory."""
    client.create_topic(topic, 2, **configs)
    counts = [len(each.topics[0].partitions) for each in log_directories(client) if each.topics]
    assert counts == [1, 1]


def log_directories(client: RawClient) -> list[dirs.DescribeLogDirsResult]:
    results: list[dirs.DescribeLogDirsResult] = client.ask(dirs.DescribeLogDirsRequest(topics=None), 4).results
    return results


@pytest.mark.parametrize("operation", ["fsync", "write"])
def test_a_disk_that_fails_takes_its_directory_offline_and_no_other(
    files: GatedFiles, client: RawClient, operation: str
) -> None:
    two_partitions(client, "t", flush_messages="1")
    for partition in (0, 1):
        assert client.produce("t", batch(b"before"), partition=partition).error_code == ErrorCode.NONE
    files.error = (operation, "t-0/", errno.EIO)
    assert client.produce("t", batch(b"lost"), partition=0).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    files.error = None
    assert client.produce("t", batch(b"still off"), partition=0).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert client.fetch("t", 0, partition=0).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert client.produce("t", batch(b"goes on"), partition=1).base_offset == 1
    assert base_offsets(client.fetch("t", 0, partition=1).records) == [0, 1]
    codes = sorted(each.error_code for each in log_directories(client))
    assert codes == [ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR]


def test_all_who_wait_for_a_flush_that_fails_are_told(broker: Broker, files: GatedFiles, client: RawClient) -> None:
    client.create_topic("gated", flush_messages="1")
    files.gate.clear()
    writers = [RawClient(broker.bootstrap) for _ in range(3)]
    for writer in writers:
        writer.post(produce_request("gated", batch()), 12)
    assert files.entered.wait(10)
    eventually(lambda: log_end_offset(broker), lambda offset: offset == 3)
    files.error = ("fsync", "gated-0/", errno.EIO)
    files.gate.set()
    for writer in writers:
        answer = writer.answer(ProduceRequest, 12).responses[0].partition_responses[0]
        assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        writer.close()


def test_a_fetch_that_waits_on_a_failed_directory_is_told(broker: Broker, files: GatedFiles, client: RawClient) -> None:
    client.create_topic("t")
    with RawClient(broker.bootstrap) as reader:
        reader.post(fetch_request("t", 0, min_bytes=1, max_wait_ms=600_000), 12)
        client.metadata()
        files.error = ("write", "t-0/", errno.EIO)
        assert client.produce("t", batch()).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        answer = reader.answer(FetchRequest, 12).responses[0].partitions[0]
        assert answer.error_code == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_full_disk_is_waited_out(files: GatedFiles, client: RawClient) -> None:
    client.create_topic("t")
    client.produce("t", batch(b"before"))
    files.error = ("write", "t-0/", errno.ENOSPC)
    for _ in range(2):
        assert client.produce("t", batch(b"no room")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert base_offsets(client.fetch("t", 0).records) == [0]
    files.error = None
    assert client.produce("t", batch(b"room again")).base_offset == 1
    assert base_offsets(client.fetch("t", 0).records) == [0, 1]


def test_a_repeated_batch_waits_for_the_flush_of_the_first(
    broker: Broker, files: GatedFiles, client: RawClient
) -> None:
    """The first answer never came, so the retry may not be told before the disk has it."""
    client.create_topic("gated", flush_messages="1")
    records = batch(producer_id=3, producer_epoch=0, base_sequence=0)
    files.gate.clear()
    with RawClient(broker.bootstrap) as first, RawClient(broker.bootstrap) as retry:
        first.post(produce_request("gated", records), 12)
        assert files.entered.wait(10)
        first.close()
        retry.post(produce_request("gated", records), 12)
        eventually(lambda: log_end_offset(broker), lambda offset: offset == 1)
        assert not has_answer(retry, client)
        files.gate.set()
        answer = retry.answer(ProduceRequest, 12).responses[0].partition_responses[0]
        assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, 0)
