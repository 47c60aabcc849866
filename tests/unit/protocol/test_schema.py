"""Declared classes: constructors, defaults, equality, what repr hides, and what a version can carry."""

import pytest

from barnabas.errors import ErrorCode
from barnabas.protocol import decode, encode
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.fetch import FetchRequest, PartitionData, ReplicaState
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from barnabas.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.protocol.schema import INT32, STRING, array, field, message, struct


@struct
class Point:
    x: int = field(INT32)
    label: str | None = field(STRING, nullable=0, default=None)


@message(api_key=ApiKey.HEARTBEAT, versions=(0, 2), flexible=2)
class Shape:
    name: str = field(STRING)
    points: list[Point] = field(array(Point))
    colour: str = field(STRING, since=1, default="red")
    note: str | None = field(STRING, since=1, nullable=1, default=None, ignorable=True)
    weight: int = field(INT32, since=2, default=-1, ignorable=True, tag=7)
    centre: Point = field(Point, since=2, tag=3, ignorable=True)


def test_every_field_may_be_left_out_and_defaults_are_not_shared() -> None:
    first, second = Shape(), Shape()
    assert (first.name, first.colour, first.weight, first.centre) == ("", "red", -1, Point())
    first.points.append(Point())
    first.centre.x = 5
    assert second.points == [] and second.centre.x == 0


def test_constructors_take_known_keywords_only() -> None:
    with pytest.raises(TypeError):
        Shape("square")  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Shape(size=3)  # type: ignore[call-arg]


def test_classes_are_slotted_and_mutable() -> None:
    shape = Shape(name="a")
    shape.name = "b"
    assert shape == Shape(name="b")
    with pytest.raises(AttributeError):
        shape.nmae = "c"  # type: ignore[attr-defined]
    with pytest.raises(TypeError):
        hash(shape)


def test_equality_looks_into_parts_and_at_the_class() -> None:
    assert Shape(points=[Point(x=1)]) == Shape(points=[Point(x=1)])
    assert Shape(points=[Point(x=1)]) != Shape(points=[Point(x=2)])
    assert Shape() != Point() and Point() != 3
    assert FetchRequest(replica_state=ReplicaState(replica_id=1)) != FetchRequest()


def test_repr_shows_what_was_set_and_no_secrets() -> None:
    assert repr(Shape(name="a", points=[Point(x=1)])) == "Shape(name='a', points=[Point(x=1)])"
    assert (
        repr(SaslAuthenticateRequest(auth_bytes=b"\0me\0open sesame")) == "SaslAuthenticateRequest(auth_bytes=<hidden>)"
    )
    assert repr(PartitionData(records=b"12345")) == "PartitionData(records=<5 bytes>)"


def test_a_field_the_version_lacks_is_refused_unless_ignorable() -> None:
    with pytest.raises(ValueError, match="Shape v0 cannot carry colour"):
        encode(Shape(colour="blue"), 0)
    assert encode(Shape(note="x", weight=4), 0) == encode(Shape(), 0)
    with pytest.raises(ValueError, match="group_instance_id"):
        encode(HeartbeatRequest(group_instance_id="i"), 2)
    assert encode(MetadataResponse(cluster_id="c"), 1) == encode(MetadataResponse(), 1)


def test_a_field_the_version_lacks_is_decoded_as_its_default() -> None:
    decoded, _ = decode(Shape, 0, encode(Shape(name="a", points=[Point(x=9)]), 0))
    assert decoded == Shape(name="a", points=[Point(x=9)])
    assert decoded.centre is not decode(Shape, 0, encode(Shape(), 0))[0].centre


def test_tagged_fields_are_written_in_order_of_tags_when_not_default() -> None:
    body = b"\x01\x01\x04red\x00"
    assert encode(Shape(), 2) == body + b"\x00"
    tagged = b"\x02\x03\x06\x00\x00\x00\x02\x00\x00\x07\x04\x00\x00\x00\x09"
    assert encode(Shape(weight=9, centre=Point(x=2)), 2) == body + tagged
    assert decode(Shape, 2, body + tagged)[0] == Shape(weight=9, centre=Point(x=2))


def test_unknown_tagged_fields_are_skipped_wherever_they_stand() -> None:
    unknown = b"\x02\x07\x04\x00\x00\x00\x09\x63\x03abc"
    assert decode(Shape, 2, b"\x01\x01\x04red\x00" + unknown) == (Shape(weight=9), 19)
    point = b"\x00\x00\x00\x05\x00" + b"\x01\x63\x01z"
    assert decode(Shape, 2, b"\x01\x02" + point + b"\x04red\x00\x00")[0] == Shape(points=[Point(x=5)])


@pytest.mark.parametrize(
    "unfit",
    [
        pytest.param(HeartbeatRequest(generation_id=2**31), id="too-large"),
        pytest.param(HeartbeatRequest(group_id=None), id="null"),  # type: ignore[arg-type]
        pytest.param(HeartbeatRequest(group_id="x" * 40_000), id="long-string"),
        pytest.param(HeartbeatRequest(group_id="\ud800"), id="lone-surrogate"),
    ],
)
@pytest.mark.parametrize("version", [0, 4])
def test_values_that_do_not_fit_are_value_errors(unfit: HeartbeatRequest, version: int) -> None:
    with pytest.raises(ValueError):
        encode(unfit, version)


def test_null_arrays_only_where_the_version_allows() -> None:
    assert decode(MetadataRequest, 1, encode(MetadataRequest(topics=None), 1))[0].topics is None
    with pytest.raises(ValueError):
        encode(MetadataRequest(topics=None), 0)
    with pytest.raises(ValueError):
        encode(MetadataRequest(topics=[MetadataRequestTopic(name=None)]), 9)


def test_unknown_versions_cannot_be_encoded() -> None:
    with pytest.raises(ValueError, match="no version 5"):
        encode(HeartbeatResponse(), 5)


def test_error_codes_fit_where_numbers_go() -> None:
    response = HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    assert decode(HeartbeatResponse, 0, encode(response, 0))[0].error_code == 27


def test_records_are_views_of_the_input() -> None:
    data = PartitionProduceData(index=1, records=b"batch")
    buffer = bytearray(encode(ProduceRequest(topic_data=[TopicProduceData(name="t", partition_data=[data])]), 8))
    decoded = decode(ProduceRequest, 8, memoryview(buffer))[0].topic_data[0].partition_data[0].records
    assert isinstance(decoded, memoryview) and decoded == b"batch"
    buffer[buffer.index(b"batch")] = ord("B")
    assert decoded == b"Batch"
