"""What a fetch gets: limits, isolation levels, epochs, sessions; seen over the wire of a broker in this process."""

from collections.abc import Iterator

import pytest
from raw_client import RawClient, base_offsets, batch, code, fetch_request

from barnabas.errors import ErrorCode
from barnabas.protocol.messages import delete_topics as deletion
from barnabas.protocol.messages import fetch as fetching
from barnabas.protocol.messages import list_offsets as listing
from barnabas.protocol.messages import offset_for_leader_epoch as epochs
from barnabas.records import build_end_marker
from barnabas.records.control import ControlType, EndTxnMarker
from barnabas.storage.log import AppendOrigin
from barnabas.testing import Broker

READ_COMMITTED = 1


@pytest.fixture
def client(barnabas_broker: Broker) -> Iterator[RawClient]:
    with RawClient(barnabas_broker.bootstrap) as connection:
        yield connection


def whole_fetch(client: RawClient, offsets: dict[tuple[str, int], int], **options: int) -> list[tuple[str, int, int]]:
    """(topic, partition, bytes of records) of a fetch of several partitions, in the order of the answer."""
    request = fetch_request("", 0, **options)
    request.topics = []
    for (topic, partition), offset in offsets.items():
        request.topics += fetch_request(topic, offset, partition, **options).topics
    answer = client.ask(request, 12)
    return [
        (topic.topic, data.partition_index, len(data.records or b""))
        for topic in answer.responses
        for data in topic.partitions
    ]


def test_one_batch_comes_whatever_the_limits(client: RawClient) -> None:
    client.create_topic("t")
    size = len(batch(bytes(1000)))
    for _ in range(3):
        client.produce("t", batch(bytes(1000)))
    for limits in ({"partition_max_bytes": 1}, {"max_bytes": 1}, {"partition_max_bytes": 0, "max_bytes": 0}):
        assert len(client.fetch("t", 1, **limits).records) == size
    assert base_offsets(client.fetch("t", 0, partition_max_bytes=2 * size).records) == [0, 1]
    assert base_offsets(client.fetch("t", 0, max_bytes=2 * size).records) == [0, 1]


def test_the_limit_of_the_answer_holds_across_partitions(client: RawClient) -> None:
    client.create_topic("t", 3)
    size = len(batch(bytes(1000)))
    for partition in range(3):
        client.produce("t", batch(bytes(1000)), partition=partition)
    wanted = {("t", partition): 0 for partition in range(3)}
    assert whole_fetch(client, wanted) == [("t", 0, size), ("t", 1, size), ("t", 2, size)]
    assert [each[2] for each in whole_fetch(client, wanted, max_bytes=1)] == [size, 0, 0]
    assert [each[2] for each in whole_fetch(client, wanted, max_bytes=2 * size)] == [size, size, 0]
    # An empty partition does not use up the right to one batch.
    assert [each[2] for each in whole_fetch(client, {("t", 0): 1, ("t", 1): 0}, max_bytes=1)] == [0, size]


def test_the_brokers_own_limit(client: RawClient) -> None:
    with Broker({"fetch.max.bytes": 1024}) as broker, RawClient(broker.bootstrap) as limited:
        limited.create_topic("t")
        for _ in range(5):
            limited.produce("t", batch(bytes(400)))
        assert len(base_offsets(limited.fetch("t", 0).records)) == 2


def test_a_fetch_waits_for_min_bytes_over_all_its_partitions(barnabas_broker: Broker, client: RawClient) -> None:
    client.create_topic("t", 2)
    size = len(batch(bytes(100)))
    with RawClient(barnabas_broker.bootstrap) as reader:
        request = fetch_request("t", 0, 0, min_bytes=2 * size, max_wait_ms=600_000)
        request.topics += fetch_request("t", 0, 1).topics
        reader.post(request, 12)
        client.produce("t", batch(bytes(100)), partition=0)
        client.produce("t", batch(bytes(100)), partition=1)
        answer = reader.answer(fetching.FetchRequest, 12)
        assert sum(len(data.records or b"") for topic in answer.responses for data in topic.partitions) == 2 * size


def test_a_fetch_that_waits_is_answered_when_its_topic_goes(barnabas_broker: Broker, client: RawClient) -> None:
    client.create_topic("t")
    with RawClient(barnabas_broker.bootstrap) as reader:
        reader.post(fetch_request("t", 0, min_bytes=1, max_wait_ms=600_000), 12)
        client.ask(deletion.DeleteTopicsRequest(topics=[deletion.DeleteTopicState(name="t")]), 6)
        answer = reader.answer(fetching.FetchRequest, 12).responses[0].partitions[0]
        assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_fetch_for_a_broker_that_has_no_replica(barnabas_broker: Broker, client: RawClient) -> None:
    topic_id = client.create_topic("t")
    client.produce("t", batch(b"value"))
    for stranger in (0, 1, 7):
        for topic in ("t", topic_id):
            answer = client.fetch(topic, 0, replica_id=stranger)
            assert (code(answer), answer.records or b"") == ("NOT_LEADER_OR_FOLLOWER", b"")
            answer = client.fetch(topic, 0, replica_id=stranger, current_leader_epoch=0)
            assert (code(answer), answer.records or b"") == ("UNKNOWN_LEADER_EPOCH", b"")
    assert code(client.fetch("t", 0)) == "NONE"


def test_an_error_in_one_partition_is_told_at_once(client: RawClient) -> None:
    client.create_topic("t")
    request = fetch_request("t", 0, min_bytes=1, max_wait_ms=600_000)
    request.topics += fetch_request("nowhere", 0).topics
    codes = [topic.partitions[0].error_code for topic in client.ask(request, 12).responses]
    assert codes == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def write(broker: Broker, topic: str, records: bytearray, origin: AppendOrigin) -> None:
    """Straight to the partition, as the transaction coordinator does."""
    server = broker._running()

    def append() -> None:
        hosted = server.replicas.find(topic, 0)
        hosted.append(memoryview(records), -1, server.clock.now_ms(), origin)

    broker._call(append)


def in_transaction(value: bytes, sequence: int) -> bytearray:
    return batch(value, producer_id=5, producer_epoch=0, base_sequence=sequence, transactional=True)


def test_isolation_levels(barnabas_broker: Broker, client: RawClient) -> None:
    client.create_topic("t")
    client.produce("t", batch(b"plain"))
    write(barnabas_broker, "t", in_transaction(b"open", 0), AppendOrigin.COORDINATOR)
    client.produce("t", batch(b"behind"))

    uncommitted, committed = client.fetch("t", 0), client.fetch("t", 0, isolation_level=READ_COMMITTED)
    assert base_offsets(uncommitted.records) == [0, 1, 2]
    assert uncommitted.aborted_transactions is None
    assert base_offsets(committed.records) == [0]
    assert (committed.high_watermark, committed.last_stable_offset, committed.aborted_transactions) == (3, 1, [])
    assert latest(client, 0) == 3 and latest(client, READ_COMMITTED) == 1

    marker = build_end_marker(EndTxnMarker(ControlType.ABORT, 0), 5, 0, 1)
    write(barnabas_broker, "t", marker, AppendOrigin.COORDINATOR)
    committed = client.fetch("t", 0, isolation_level=READ_COMMITTED)
    assert base_offsets(committed.records) == [0, 1, 2, 3]
    assert committed.last_stable_offset == 4
    assert [(each.producer_id, each.first_offset) for each in committed.aborted_transactions] == [(5, 1)]


def latest(client: RawClient, isolation_level: int) -> int:
    item = listing.ListOffsetsPartition(partition_index=0, timestamp=-1)
    request = listing.ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation_level,
        topics=[listing.ListOffsetsTopic(name="t", partitions=[item])],
    )
    offset: int = client.ask(request, 9).topics[0].partitions[0].offset
    return offset


@pytest.mark.parametrize("min_bytes", [1, 500])
def test_a_committed_reader_waits_for_the_end_of_a_transaction(
    barnabas_broker: Broker, client: RawClient, min_bytes: int
) -> None:
    client.create_topic("t")
    with RawClient(barnabas_broker.bootstrap) as reader:
        request = fetch_request("t", 0, min_bytes=min_bytes, max_wait_ms=600_000, isolation_level=READ_COMMITTED)
        reader.post(request, 12)
        client.metadata()
        write(barnabas_broker, "t", in_transaction(bytes(1000), 0), AppendOrigin.CLIENT)
        client.metadata()
        marker = build_end_marker(EndTxnMarker(ControlType.COMMIT, 0), 5, 0, 1)
        write(barnabas_broker, "t", marker, AppendOrigin.COORDINATOR)
        answer = reader.answer(fetching.FetchRequest, 12).responses[0].partitions[0]
        assert base_offsets(answer.records) == [0, 1]


def test_where_a_readers_log_parts_from_this_one(client: RawClient) -> None:
    client.create_topic("t")
    client.produce("t", batch())
    same = client.fetch("t", 1, last_fetched_epoch=0)
    assert (same.diverging_epoch.epoch, same.diverging_epoch.end_offset) == (-1, -1)
    ahead = client.fetch("t", 5, last_fetched_epoch=0, min_bytes=1, max_wait_ms=600_000)
    assert ahead.error_code == ErrorCode.NONE
    assert (ahead.diverging_epoch.epoch, ahead.diverging_epoch.end_offset) == (0, 1)


def test_the_ends_of_epochs() -> None:
    broker = Broker()
    with broker as running, RawClient(running.bootstrap) as client:
        client.create_topic("t")
    # The temporary folder is gone, so the log starts anew under the next epoch.
    with broker as running, RawClient(running.bootstrap) as client:
        client.produce("t", batch())
        item = epochs.OffsetForLeaderPartition(partition=0, current_leader_epoch=-1, leader_epoch=1)
        request = epochs.OffsetForLeaderEpochRequest(topics=[epochs.OffsetForLeaderTopic(topic="t", partitions=[item])])
        answer = client.ask(request, 4).topics[0].partitions[0]
        assert (answer.error_code, answer.leader_epoch, answer.end_offset) == (ErrorCode.NONE, 1, 1)
        item.leader_epoch = 7
        answer = client.ask(request, 4).topics[0].partitions[0]
        assert (answer.error_code, answer.leader_epoch, answer.end_offset) == (ErrorCode.NONE, -1, -1)


def test_offsets_by_time(client: RawClient) -> None:
    client.create_topic("t")
    for moment in (1000, 3000, 2000):
        client.produce("t", batch(b"a", b"b", timestamp=moment))

    def look_up(timestamp: int) -> tuple[int, int]:
        item = listing.ListOffsetsPartition(partition_index=0, timestamp=timestamp)
        request = listing.ListOffsetsRequest(
            replica_id=-1, topics=[listing.ListOffsetsTopic(name="t", partitions=[item])]
        )
        found = client.ask(request, 10).topics[0].partitions[0]
        return found.offset, found.timestamp

    assert look_up(-2) == (0, -1)
    assert look_up(-1) == (6, -1)
    assert look_up(0) == (0, 1000)
    assert look_up(1001) == (2, 3000)
    assert look_up(3001) == (-1, -1)
    assert look_up(-3) == (2, 3000)


def test_an_incremental_session_sends_what_is_new(client: RawClient) -> None:
    topic_id = client.create_topic("t", 2)
    request = fetch_request(topic_id, 0)
    request.topics[0].partitions += fetch_request(topic_id, 0, 1).topics[0].partitions
    request.session_epoch = 0
    opened = client.ask(request, 18)
    assert opened.session_id > 0 and len(opened.responses[0].partitions) == 2
    client.produce(topic_id, batch(), partition=1)
    request.session_id, request.session_epoch, request.topics = opened.session_id, 1, []
    answer = client.ask(request, 18)
    assert [data.partition_index for data in answer.responses[0].partitions] == [1]
    request.session_epoch = 5
    assert client.ask(request, 18).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH


def lookup_error(client: RawClient, timestamp: int, version: int, replica_id: int = -1) -> str:
    partition = listing.ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    topic = listing.ListOffsetsTopic(name="t", partitions=[partition])
    answer = client.ask(listing.ListOffsetsRequest(replica_id=replica_id, topics=[topic]), version)
    return code(answer.topics[0].partitions[0])


def test_offsets_after_an_election_wait_for_the_high_watermark(barnabas_broker: Broker, client: RawClient) -> None:
    client.create_topic("t")
    client.produce("t", batch(b"one", timestamp=1000))
    state = barnabas_broker._running().replicas.find("t", 0).state
    latest_time, earliest = -1, -2
    assert lookup_error(client, latest_time, 7) == "NONE"
    # As after an election: what the leader before had committed is not known to be committed yet.
    state.leader_epoch_start_offset = 2
    assert lookup_error(client, latest_time, 5) == "OFFSET_NOT_AVAILABLE"
    assert lookup_error(client, latest_time, 4) == "LEADER_NOT_AVAILABLE"
    assert lookup_error(client, 2000, 7) == "OFFSET_NOT_AVAILABLE", "there may be a record of that time"
    assert lookup_error(client, 500, 7) == lookup_error(client, earliest, 7) == "NONE"
    assert lookup_error(client, latest_time, 7, replica_id=2) == "NONE", "a follower reads to the end"
    client.produce("t", batch(b"two"))
    assert lookup_error(client, latest_time, 7) == "NONE"
