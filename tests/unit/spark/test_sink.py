"""What the sink refuses before anything is written."""

from __future__ import annotations

import pyarrow
import pytest
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructType,
    TimestampType,
)

from barnabas.client.errors import ConfigError
from barnabas.spark.data_source import BarnabasDataSource
from barnabas.spark.options import SinkOptions, read_sink_options
from barnabas.spark.sink import check_columns
from barnabas.spark.writing import _of_a_record

HEADERS = ArrayType(StructType().add("key", StringType()).add("value", BinaryType(), nullable=False))
TEXT = StringType()
CLIENT = {"bootstrap.servers": "localhost:9092"}
BOOTSTRAP = {"kafka.bootstrap.servers": "localhost:9092"}


def schema_of(**columns: DataType) -> StructType:
    schema = StructType()
    for name, kind in columns.items():
        schema = schema.add(name, kind)
    return schema


def faults(schema: StructType, topic: str | None = "t") -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        check_columns(schema, SinkOptions(client=CLIENT, topic=topic))
    return tuple(caught.value.faults)


def test_every_column_of_a_record() -> None:
    for kind in (BinaryType(), TEXT):
        schema = schema_of(key=kind, value=kind, topic=TEXT, partition=IntegerType(), headers=HEADERS)
        check_columns(schema, SinkOptions(client=CLIENT))
    check_columns(schema_of(value=BinaryType()), SinkOptions(client=CLIENT, topic="t"))
    read = schema_of(
        value=BinaryType(), topic=TEXT, offset=LongType(), timestamp=TimestampType(), timestampType=IntegerType()
    )
    check_columns(read, SinkOptions(client=CLIENT))


def test_all_faults_at_once() -> None:
    found = faults(schema_of(key=IntegerType(), extra=TEXT, headers=ArrayType(TEXT)), topic=None)
    assert len(found) == 4
    for words in (
        "column key: is int, must be binary or string",
        "column headers: is array<string>, must be array<struct<key:string,value:binary>>",
        "column value: is missing",
        "topic: set the option topic",
    ):
        assert any(fault.startswith(words) for fault in found), found
    assert faults(schema_of(Value=TEXT)) == ("column value: is missing",)
    assert faults(StructType().add("value", "string").add("value", "string")) == ("column value: is duplicated",)


def test_columns_that_no_record_has_are_ignored() -> None:
    """As by the official connector, whatever their type; and so is the column topic beside the option."""
    schema = schema_of(value=TEXT, id=LongType(), day=TimestampType(), topic=IntegerType(), offset=TEXT)
    check_columns(schema.add("id", LongType()), SinkOptions(client=CLIENT, topic="t"))
    assert faults(schema, topic=None) == ("column topic: is int, must be string",)
    batch = pyarrow.record_batch({"id": [1], "value": ["v"], "topic": [7], "headers": [None]})
    assert _of_a_record(batch, SinkOptions(client=CLIENT, topic="t")).schema.names == ["value", "headers"]
    assert _of_a_record(batch, SinkOptions(client=CLIENT, include_headers=False)).schema.names == ["value", "topic"]


def test_options() -> None:
    options = read_sink_options({**BOOTSTRAP, "checkpointlocation": "/x", "DELIVERY": "At-Least-Once", "topic": "t"})
    assert options == SinkOptions({"bootstrap.servers": "localhost:9092"}, "t", True, False)
    with pytest.raises(ConfigError) as caught:
        read_sink_options({"topics": "t", "kafka.transactional.id": "x", "delivery": "twice", "path": "p"})
    found = caught.value.faults
    assert len(found) == 5
    for words in (
        "topics: unknown option, did you mean topic?",
        "kafka.transactional.id: use transactionalIdPrefix",
        "delivery: 'twice' is not allowed",
        "path: this format",
        "kafka.bootstrap.servers: is required",
    ):
        assert any(fault.startswith(words) for fault in found), found


def test_a_topic_cannot_be_overwritten() -> None:
    source = BarnabasDataSource({**BOOTSTRAP, "topic": "t"})
    with pytest.raises(ConfigError, match="cannot be overwritten"):
        source.writer(schema_of(value=TEXT), True)
    source.writer(schema_of(value=TEXT), False)
    for complete in (True, False):
        source.streamWriter(schema_of(value=TEXT), complete)


def test_options_of_the_producer_are_checked_on_the_driver() -> None:
    for more in ({"delivery": "exactly-once"}, {"delivery": "at-least-once"}):
        good = {**BOOTSTRAP, "topic": "t", "kafka.compression.type": "lz4", **more}
        BarnabasDataSource(good).writer(schema_of(value=TEXT), False)
        with pytest.raises(ConfigError, match=r"linger\.ms"):
            BarnabasDataSource({**good, "kafka.linger.mss": "5"}).writer(schema_of(value=TEXT), False)
    with pytest.raises(ConfigError, match="acks"):
        BarnabasDataSource({**BOOTSTRAP, "topic": "t", "kafka.acks": "1"}).writer(schema_of(value=TEXT), False)
