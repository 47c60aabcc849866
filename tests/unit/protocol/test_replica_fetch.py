"""The follower's Fetch by hand says what the compiled codec says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.errors import ProtocolError
from barnabas.protocol.compiler import decode, encode
from barnabas.protocol.messages import fetch as messages
from barnabas.protocol.replica_fetch import (
    VERSION,
    ReplicaFetched,
    ReplicaFetchRequest,
    encode_request,
    read_head,
    read_partitions,
)

IDS = [bytes([number]) * 16 for number in range(3)]
INT32, INT64 = st.integers(0, 2**31 - 1), st.integers(-1, 2**63 - 1)


@given(
    st.lists(st.tuples(st.sampled_from(IDS), INT32, INT32, INT64, INT32, INT64, INT32), max_size=300),
    st.lists(st.tuples(st.sampled_from(IDS), INT32), max_size=20),
)
def test_requests(wanted: list, forgotten: list) -> None:  # type: ignore[type-arg]
    wanted.sort()
    request = ReplicaFetchRequest(7, 99, 500, 1, 10_000_000, 1234, 17)
    read, end = decode(messages.FetchRequest, VERSION, body := encode_request(request, wanted, forgotten))
    assert end == len(body)
    assert (read.replica_state.replica_id, read.replica_state.replica_epoch) == (7, 99)
    assert (read.max_wait_ms, read.min_bytes, read.max_bytes) == (500, 1, 10_000_000)
    assert (read.session_id, read.session_epoch) == (1234, 17)
    found = [
        (
            topic.topic_id,
            each.partition,
            each.current_leader_epoch,
            each.fetch_offset,
            each.last_fetched_epoch,
            each.log_start_offset,
            each.partition_max_bytes,
        )
        for topic in read.topics
        for each in topic.partitions
    ]
    assert found == wanted
    gone = [(topic.topic_id, each) for topic in read.forgotten_topics_data for each in topic.partitions]
    assert gone == sorted(forgotten)
    assert encode(read, VERSION) == body


RESULTS = st.builds(
    ReplicaFetched,
    st.sampled_from(IDS),
    INT32,
    st.integers(0, 120),
    INT64,
    INT64,
    st.just(-1),
    st.just(-1),
    st.binary(max_size=300).map(memoryview),
)


@given(st.lists(RESULTS, max_size=200), st.booleans(), st.booleans())
def test_responses(results: list[ReplicaFetched], diverges: bool, aborts: bool) -> None:
    if diverges:
        results = [each._replace(diverging_epoch=3, diverging_end_offset=77) for each in results]
    topics = []
    for each in results:
        data = messages.PartitionData(
            partition_index=each.partition,
            error_code=each.error_code,
            high_watermark=each.high_watermark,
            log_start_offset=each.log_start_offset,
            aborted_transactions=[messages.AbortedTransaction(producer_id=1)] if aborts else None,
            records=bytes(each.records),
        )
        if diverges:
            data.diverging_epoch = messages.EpochEndOffset(epoch=3, end_offset=77)
        topics.append(messages.FetchableTopicResponse(topic_id=each.topic_id, partitions=[data]))
    body = memoryview(encode(messages.FetchResponse(error_code=5, session_id=9, responses=topics), VERSION))
    assert read_head(body) == (5, 9)
    assert list(read_partitions(body)) == results
    for cut in (*range(0, len(body), 37), len(body) - 1):
        with pytest.raises(ProtocolError):
            read_head(body[:cut])
            list(read_partitions(body[:cut]))
