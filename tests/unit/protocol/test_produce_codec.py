"""The hand-written pair of messages against the compiled codec: same bytes, same values, same refusals."""

from collections.abc import Generator

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
from barnabas.protocol.produce_request import (
    MAX_PARTITIONS_AT_ONCE,
    LongRequestError,
    ProduceFrame,
    TopicBatches,
    decode_produce,
    decode_produce_in_slices,
    encode_produce,
)
from barnabas.protocol.produce_response import (
    PartitionFailure,
    PartitionOutcome,
    PartitionSuccess,
    decode_produce_response,
    encode_produce_response,
    encode_success,
)
from barnabas.types import TopicPartition

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


@pytest.mark.parametrize("version", [3, 9, 13])
@pytest.mark.parametrize("partitions_of_a_topic", [1, 2, 600])
def test_many_partitions_are_decoded_in_slices(version: int, partitions_of_a_topic: int) -> None:
    data = [
        TopicProduceData(
            name="" if version >= 13 else f"t{number}",
            topic_id=number.to_bytes(16, "big") if version >= 13 else bytes(16),
            partition_data=[
                PartitionProduceData(index=index, records=b"%d" % index if index % 3 else None)
                for index in range(partitions_of_a_topic)
            ],
        )
        for number in range(MAX_PARTITIONS_AT_ONCE // partitions_of_a_topic + 1)
    ]
    whole = b"head" + encode(ProduceRequest(transactional_id="x", acks=1, timeout_ms=5, topic_data=data), version)
    with pytest.raises(LongRequestError):
        decode_produce(memoryview(whole), 4, version)
    frame = at_once(decode_produce_in_slices(whole, 4, version))
    assert (frame.transactional_id, frame.acks, frame.timeout_ms) == ("x", 1, 5)
    found = [(topic, partition, None if records is None else bytes(records)) for topic, partition, records in frame[3]]
    assert found == [
        (each.topic_id if version >= 13 else each.name, item.index, item.records)
        for each in data
        for item in each.partition_data
    ]
    with pytest.raises(ProtocolError):
        at_once(decode_produce_in_slices(whole[:-5], 4, version))


def at_once(work: Generator[None, None, ProduceFrame]) -> ProduceFrame:
    while True:
        try:
            next(work)
        except StopIteration as end:
            return end.value


@given(data=st.binary(max_size=200), version=st.sampled_from(VERSIONS))
def test_hostile_bytes_are_decoded_or_refused(data: bytes, version: int) -> None:
    try:
        try:
            frame = decode_produce(memoryview(data), 0, version)
        except LongRequestError:
            frame = at_once(decode_produce_in_slices(data, 0, version))
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
        topic_response = TopicProduceResponse(partition_responses=[])
        if version >= 13:
            topic_response.topic_id = topic_id
        else:
            topic_response.name = name
        for partition, base_offset, append_time, log_start in items:
            successes.append(PartitionSuccess(key, partition, base_offset, append_time, log_start))
            topic_response.partition_responses.append(
                PartitionProduceResponse(
                    index=partition,
                    error_code=ErrorCode.NONE,
                    base_offset=base_offset,
                    log_append_time_ms=append_time,
                    log_start_offset=log_start if version >= 5 else -1,
                )
            )
        response.responses.append(topic_response)
    assert bytes(encode_success(version, correlation_id, successes)) == encode_response(
        response, version, correlation_id
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_the_broker_reads_what_a_client_sends(version: int) -> None:
    topics = {
        "one": TopicBatches(b"1" * 16, [(0, memoryview(b"first")), (3, memoryview(bytes(300)))]),
        "two": TopicBatches(b"2" * 16, [(1, memoryview(b"second"))]),
    }
    body = memoryview(b"".join(encode_produce(version, "tx", -1, 30_000, topics)))
    request = decode_produce(body, 0, version)
    assert (request.transactional_id, request.acks, request.timeout_ms) == ("tx", -1, 30_000)
    assert [(item.topic, item.partition, item.records) for item in request.partitions] == [
        (topic.topic_id if version >= 13 else name, partition, records)
        for name, topic in topics.items()
        for partition, records in topic.partitions
    ]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("refused", [False, True])
def test_a_client_reads_what_the_broker_sends(version: int, refused: bool) -> None:
    first, second = (b"1" * 16, b"2" * 16) if version >= 13 else ("one", "two")
    outcomes: list[PartitionOutcome] = [
        PartitionSuccess(first, 0, 10, -1, 5),
        PartitionSuccess(first, 3, 20, 1_000, 0),
        PartitionSuccess(second, 1, 30, -1, 0),
    ]
    if refused:
        outcomes[1] = PartitionFailure(first, 3, ErrorCode.INVALID_RECORD, "refused", [(4, "no key")])
    frame = memoryview(encode_produce_response(outcomes, version, 77))
    header_size = 9 if version >= 9 else 8
    response, partitions = decode_produce_response(frame[header_size:], version, {b"1" * 16: "one", b"2" * 16: "two"})
    assert response.throttle_time_ms == 0
    assert list(partitions) == [TopicPartition("one", 0), TopicPartition("one", 3), TopicPartition("two", 1)]
    assert [each.base_offset for each in partitions.values()] == [10, -1 if refused else 20, 30]
    third = partitions[TopicPartition("one", 3)]
    assert third.error_code == (ErrorCode.INVALID_RECORD if refused else ErrorCode.NONE)
    if version >= 8:
        assert third.error_message == ("refused" if refused else None)
        assert [each.batch_index for each in third.record_errors] == ([4] if refused else [])
