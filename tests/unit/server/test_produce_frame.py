"""The hand-written pair of messages against the compiled codec: same bytes, same values, same refusals."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.errors import ErrorCode, ProtocolError
from barnabas.protocol.compiler import encode
from barnabas.protocol.headers import encode_response
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from barnabas.server.produce_frame import PartitionSuccess, decode_produce, encode_success

VERSIONS = range(3, 14)
names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=40) | st.just("n" * 300)
partitions = st.lists(st.tuples(st.integers(0, 2**31 - 1), st.none() | st.binary(max_size=300)), max_size=4)
topics = st.lists(st.tuples(names, st.binary(min_size=16, max_size=16), partitions), max_size=3)


@given(
    version=st.sampled_from(VERSIONS),
    transactional_id=st.none() | names,
    acks=st.sampled_from([-1, 0, 1]),
    timeout_ms=st.integers(0, 2**31 - 1),
    topics=topics,
)
def test_decodes_what_the_codec_encodes(
    version: int, transactional_id: str | None, acks: int, timeout_ms: int, topics: list
) -> None:
    request = ProduceRequest(transactional_id=transactional_id, acks=acks, timeout_ms=timeout_ms, topic_data=[])
    expected = []
    for name, topic_id, items in topics:
        data = TopicProduceData(partition_data=[PartitionProduceData(index=i, records=r) for i, r in items])
        if version >= 13:
            data.topic_id = topic_id
        else:
            data.name = name
        request.topic_data.append(data)
        expected += [(topic_id if version >= 13 else name, index, records) for index, records in items]
    frame = decode_produce(memoryview(b"head" + encode(request, version)), 4, version)
    assert (frame.transactional_id, frame.acks, frame.timeout_ms) == (transactional_id, acks, timeout_ms)
    found = [(t, p, None if r is None else bytes(r)) for t, p, r in frame.partitions]
    assert found == expected


@pytest.mark.parametrize("version", [3, 9, 13])
def test_refuses_every_cut(version: int) -> None:
    data = TopicProduceData(partition_data=[PartitionProduceData(index=1, records=b"records")])
    if version >= 13:
        data.topic_id = bytes(range(16))
    else:
        data.name = "topic"
    whole = encode(ProduceRequest(acks=1, timeout_ms=5, topic_data=[data]), version)
    for length in range(len(whole)):
        with pytest.raises(ProtocolError):
            decode_produce(memoryview(whole[:length]), 0, version)


@given(data=st.binary(max_size=200), version=st.sampled_from(VERSIONS))
def test_hostile_bytes_are_decoded_or_refused(data: bytes, version: int) -> None:
    try:
        frame = decode_produce(memoryview(data), 0, version)
    except ProtocolError:
        return
    assert sum(len(item.records or b"") for item in frame.partitions) <= len(data)


@given(
    version=st.sampled_from(VERSIONS),
    correlation_id=st.integers(-(2**31), 2**31 - 1),
    topics=st.lists(
        st.tuples(
            names,
            st.binary(min_size=16, max_size=16),
            st.lists(st.tuples(st.integers(0, 9), *[st.integers(-1, 2**63 - 1)] * 3), min_size=1, max_size=3),
        ),
        min_size=1,
        max_size=3,
        unique_by=(lambda topic: topic[0], lambda topic: topic[1]),
    ),
)
def test_encodes_what_the_codec_encodes(version: int, correlation_id: int, topics: list) -> None:
    response = ProduceResponse(responses=[])
    successes = []
    for name, topic_id, items in topics:
        key = topic_id if version >= 13 else name
        answer = TopicProduceResponse(partition_responses=[])
        if version >= 13:
            answer.topic_id = topic_id
        else:
            answer.name = name
        for partition, base_offset, append_time, log_start in items:
            successes.append(PartitionSuccess(key, partition, base_offset, append_time, log_start))
            answer.partition_responses.append(
                PartitionProduceResponse(
                    index=partition,
                    error_code=ErrorCode.NONE,
                    base_offset=base_offset,
                    log_append_time_ms=append_time,
                    log_start_offset=log_start if version >= 5 else -1,
                )
            )
        response.responses.append(answer)
    assert bytes(encode_success(version, correlation_id, successes)) == encode_response(
        response, version, correlation_id
    )
