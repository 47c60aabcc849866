"""The short way of the commonest Produce request: both twins alike, and never another response than the long way's."""

import asyncio
import importlib
import re
import struct
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from handler_calls import HandlerCalls
from hypothesis import given
from hypothesis import strategies as st

from barnabas.errors import ErrorCode
from barnabas.net.deferred import Deferred
from barnabas.protocol import produce_one_pure
from barnabas.protocol.compiler import decode
from barnabas.protocol.headers import decode_request_header, decode_response_header, encode_request
from barnabas.protocol.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from barnabas.protocol.produce_request import decode_produce
from barnabas.protocol.produce_response import PartitionSuccess, encode_success
from barnabas.records.builder import BatchBuilder
from barnabas.records.compression import CompressionType
from barnabas.records.header import write_crc

try:
    NATIVE: ModuleType | None = importlib.import_module("barnabas.protocol.produce_one_native")
except ImportError:
    NATIVE = None
CONNECTION: Any = SimpleNamespace(listener=SimpleNamespace(name="PLAINTEXT"))
"""A refusal names the leader by its address on the client's listener."""
TWINS = [pytest.param(produce_one_pure, id="pure")]
TWINS.append(pytest.param(NATIVE, id="native", marks=pytest.mark.skipif(NATIVE is None, reason="not compiled")))

names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=60) | st.sampled_from(
    ["n" * 126, "n" * 127, "topic"]
)
records = st.none() | st.binary(max_size=300) | st.sampled_from([127, 128, 16382, 16383, 16384, 70_000]).map(bytes)
topic_ids = st.binary(min_size=16, max_size=16)


@st.composite
def requests(draw: st.DrawFn) -> tuple[int, ProduceRequest, bytes]:
    """A version, a request and its whole frame, most of them of the kind that is looked for."""
    version = draw(st.integers(7, 13))
    often_one = st.sampled_from([1, 1, 1, 0, 2])
    request = ProduceRequest(
        transactional_id=draw(st.sampled_from([None, None, None, "t"])),
        acks=draw(st.sampled_from([1, 1, -1, 0, 2])),
        timeout_ms=draw(st.integers(0, 2**31 - 1)),
        topic_data=[],
    )
    for _ in range(draw(often_one)):
        data = [
            PartitionProduceData(index=draw(st.integers(0, 2**31 - 1)), records=draw(records))
            for _ in range(draw(often_one))
        ]
        topic = TopicProduceData(partition_data=data)
        if version >= 13:
            topic.topic_id = draw(topic_ids)
        else:
            topic.name = draw(names)
        request.topic_data.append(topic)
    client_id = draw(st.none() | st.text(st.characters(codec="utf-8"), max_size=20) | st.just("client"))
    correlation_id = draw(st.integers(-(2**31), 2**31 - 1))
    return version, request, encode_request(request, version, correlation_id, client_id)[4:]


def is_the_commonest(version: int, request: ProduceRequest, client_id: str | None) -> bool:
    if (
        version < 9
        or request.transactional_id is not None
        or request.acks not in (1, -1)
        or len(request.topic_data) != 1
    ):
        return False
    (topic,) = request.topic_data
    if not (client_id or "").isascii() or not topic.name.isascii() or len(topic.name) >= 127:
        return False
    return len(topic.partition_data) == 1 and bool(topic.partition_data[0].records)


@pytest.mark.parametrize("twin", TWINS)
@given(case=requests())
def test_what_is_taken_is_what_the_long_way_reads(twin: ModuleType, case: tuple[int, ProduceRequest, bytes]) -> None:
    version, request, frame = case
    one = twin.decode_one(memoryview(frame))
    header = decode_request_header(frame)
    assert (one is not None) == is_the_commonest(version, request, header.client_id)
    if one is not None:
        (item,) = decode_produce(memoryview(frame), header.body_position, version).partitions
        assert one == (version, header.correlation_id, request.acks, *item)


@pytest.mark.parametrize("twin", TWINS)
@given(case=requests(), data=st.data())
def test_no_cut_and_no_changed_byte_is_misread(twin: ModuleType, case: Any, data: st.DataObject) -> None:
    frame = bytearray(case[2])
    if frame and data.draw(st.booleans()):
        frame[data.draw(st.integers(0, min(len(frame), 120) - 1))] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        frame = frame[: data.draw(st.integers(0, len(frame)))]
    one = twin.decode_one(memoryview(frame))
    assert one == produce_one_pure.decode_one(memoryview(frame))
    if one is not None:
        header = decode_request_header(frame)
        request = decode_produce(memoryview(frame), header.body_position, header.api_version)
        assert [(item.topic, item.partition, item.records) for item in request.partitions] == [one[3:]]


@pytest.mark.parametrize("twin", TWINS)
@given(
    st.binary(max_size=64) | st.binary(max_size=40).map(lambda tail: b"\0\0\0\x09\0\0\0\x01\xff\xff\0\0\0\x01" + tail)
)
def test_hostile_bytes_are_left_alone_or_taken_alike(twin: ModuleType, data: bytes) -> None:
    assert twin.decode_one(memoryview(data)) == produce_one_pure.decode_one(memoryview(data))


@pytest.mark.parametrize("twin", TWINS)
@given(
    version=st.integers(9, 13),
    correlation_id=st.integers(-(2**31), 2**31 - 1),
    topic=st.text("abc-._", min_size=1, max_size=126),
    topic_id=topic_ids,
    partition=st.integers(0, 2**31 - 1),
    offsets=st.tuples(*[st.integers(-1, 2**63 - 1)] * 3),
)
def test_the_response_is_the_long_ways(
    twin: ModuleType, version: int, correlation_id: int, topic: str, topic_id: bytes, partition: int, offsets: Any
) -> None:
    key = topic_id if version >= 13 else topic
    request = (version, correlation_id, 1, key, partition, memoryview(b""))
    expected = encode_success(version, correlation_id, [PartitionSuccess(key, partition, *offsets)])
    assert twin.encode_one(request, *offsets) == expected


# ---- with a broker behind it: partition 0 by the short way, partition 1 by the long one


def batch(value: bytes = b"value", timestamp: int = 1_700_000_000_000, **fields: Any) -> bytearray:
    builder = BatchBuilder(**fields)
    builder.append(timestamp, None, value)
    return bytearray(builder.build())


def changed(position: int, value: bytes, *, right_crc: bool = True) -> bytearray:
    data = batch()
    data[position : position + len(value)] = value
    if right_crc:
        write_crc(data, 0, len(data))
    return data


CASES: dict[str, list[bytes | bytearray]] = {
    "plain": [batch()] * 3,
    "compressed": [batch(compression=CompressionType.GZIP)],
    "large": [batch(value=bytes(100_000))],
    "too large": [batch(value=bytes(1_100_000)), batch()],
    "wrong crc": [changed(70, b"?", right_crc=False), batch()],
    "wrong crc, large": [batch(value=bytes(5000))[:-1] + b"?", batch()],
    "magic 1": [changed(16, b"\1")],
    "magic 3": [changed(16, b"\3")],
    "short": [batch()[:40]],
    "header only": [batch()[:61]],
    "two batches": [batch() + batch()],
    "cut": [batch()[:-1]],
    "base offset": [changed(0, struct.pack(">q", 7))],
    "no records": [changed(57, struct.pack(">i", 0))],
    "more records than offsets": [changed(57, struct.pack(">i", 2))],
    "unknown codec": [changed(21, struct.pack(">h", 5))],
    "control": [batch(control=True)],
    "transactional": [batch(producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)],
    "log append time": [batch(log_append_time=1_700_000_000_000)],
    "a bit without a meaning": [changed(21, struct.pack(">h", 0x80))],
    "the future": [batch(timestamp=1 << 60), batch()],
    "no timestamp": [batch(timestamp=-1), batch()],
    "a producer": [batch(producer_id=9, producer_epoch=0, base_sequence=each) for each in (0, 1, 2, 1, 2, 4, 3)],
    "a producer without sequence": [batch(producer_id=9, producer_epoch=0, base_sequence=-1)],
    "a fenced producer": [batch(producer_id=9, producer_epoch=each, base_sequence=0) for each in (1, 0, 2)],
}


def frame_of(version: int, topic: Any, partition: int, acks: int, data: bytes) -> memoryview:
    item = TopicProduceData(partition_data=[PartitionProduceData(index=partition, records=bytes(data))])
    if version >= 13:
        item.topic_id = topic
    else:
        item.name = topic
    request = ProduceRequest(acks=acks, timeout_ms=1000, topic_data=[item])
    return memoryview(bytearray(encode_request(request, version, 5, "tester")[4:]))


def read_answer(version: int, answer: Any) -> tuple[Any, ...]:
    whole = answer if isinstance(answer, bytes) else b"".join(answer)
    _, position = decode_response_header(ProduceResponse, version, whole[4:])
    response, end = decode(ProduceResponse, version, whole, position + 4)
    assert end == len(whole) == 4 + struct.unpack_from(">i", whole)[0]
    (result,) = response.responses[0].partition_responses
    return (
        ErrorCode(result.error_code).name,
        result.base_offset,
        result.log_append_time_ms > 0,
        result.log_start_offset,
        re.sub(r"\d{13,}", "a time", result.error_message or ""),
        response.responses[0].name or response.responses[0].topic_id,
    )


def both_ways(calls: HandlerCalls, version: int, topic: Any, acks: int, data: bytes) -> tuple[Any, Any]:
    dispatcher = calls.broker.dispatcher
    short = dispatcher.on_request(CONNECTION, frame_of(version, topic, 0, acks, data))
    row = dispatcher.table[0]
    frame = frame_of(version, topic, 1, acks, data)
    context = calls.context(row.api_key, version)
    request = decode_produce(frame, decode_request_header(frame).body_position, version)
    long = row.encode(row.handle(context, request), version, 0)
    return read_answer(version, short), read_answer(version, long)


@pytest.mark.parametrize("version", [9, 12, 13])
@pytest.mark.parametrize("acks", [1, -1])
def test_both_ways_respond_and_write_alike(tmp_path: Path, acks: int, version: int) -> None:
    async def scenario() -> None:
        async with HandlerCalls(tmp_path) as calls:
            for number, (name, batches) in enumerate(CASES.items()):
                topic_id = await calls.make_topic(f"topic-{number}")
                topic = topic_id if version >= 13 else f"topic-{number}"
                for data in batches:
                    short, long = both_ways(calls, version, topic, acks, data)
                    assert short == long, name
                logs = [calls.broker.replicas.find(topic, partition).log for partition in (0, 1)]
                assert logs[0].active.file.pread(1 << 22, 0) == logs[1].active.file.pread(1 << 22, 0), name
                for field in ("log_end_offset", "high_watermark", "last_stable_offset"):
                    assert getattr(logs[0], field) == getattr(logs[1], field), name

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("log.message.timestamp.type", "LogAppendTime"),
        ("compression.type", "zstd"),
        ("log.cleanup.policy", "compact"),
        ("message.max.bytes", "70"),
        ("min.insync.replicas", "2"),
        ("log.segment.bytes", "1048576"),
    ],
)
def test_settings_hold_on_both_ways(tmp_path: Path, setting: str, value: str) -> None:
    async def scenario() -> None:
        async with HandlerCalls(tmp_path, **{setting: value}) as calls:
            await calls.make_topic("topic")
            for acks in (1, -1):
                short, long = both_ways(calls, 9, "topic", acks, batch())
                assert short == long

    asyncio.run(scenario())


@pytest.mark.parametrize(("topic", "partition"), [("nowhere", 0), ("topic", 7), ("__consumer_offsets", 0)])
def test_a_partition_that_is_not_for_producers(tmp_path: Path, topic: str, partition: int) -> None:
    async def scenario() -> None:
        async with HandlerCalls(tmp_path) as calls:
            await calls.make_topic("topic")
            frame = frame_of(9, topic, partition, 1, batch())
            response = calls.broker.dispatcher.on_request(CONNECTION, frame)
            expected = "INVALID_TOPIC_EXCEPTION" if topic.startswith("__") else "UNKNOWN_TOPIC_OR_PARTITION"
            assert read_answer(9, response)[0] in (expected, "UNKNOWN_TOPIC_OR_PARTITION")

    asyncio.run(scenario())


def test_an_acknowledgement_waits_for_the_flush(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with HandlerCalls(tmp_path, **{"log.flush.interval.messages": "1"}) as calls:
            await calls.make_topic("topic")
            response = calls.broker.dispatcher.on_request(CONNECTION, frame_of(9, "topic", 0, 1, batch()))
            assert isinstance(response, Deferred)

    asyncio.run(scenario())


@pytest.mark.parametrize("error", [OSError(28, "no space left"), OSError(5, "input/output error"), ZeroDivisionError()])
def test_a_failed_write_is_a_storage_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fail(*_: object) -> None:
        raise error

    async def scenario() -> None:
        async with HandlerCalls(tmp_path) as calls:
            await calls.make_topic("topic")
            log = calls.broker.replicas.find("topic", 0).log
            with monkeypatch.context() as patched:
                patched.setattr("barnabas.storage.segment.Segment.append", fail)
                frame = frame_of(9, "topic", 0, 1, batch())
                response = calls.broker.dispatcher.on_request(CONNECTION, frame)
            assert read_answer(9, response)[:2] == ("KAFKA_STORAGE_ERROR", -1)
            assert log.log_end_offset == 0
            assert (log.failure is not None) == (isinstance(error, OSError) and error.errno == 5)

    asyncio.run(scenario())


def test_acks_all_takes_the_long_way_while_others_are_in_sync(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with HandlerCalls(tmp_path) as calls:
            await calls.make_topic("topic")
            hosted = calls.broker.replicas.find("topic", 0)
            assert hosted.commits_at_once(-1) and hosted.commits_at_once(1)
            hosted.state.alone = False
            assert not hosted.commits_at_once(-1) and hosted.commits_at_once(1)

    asyncio.run(scenario())
