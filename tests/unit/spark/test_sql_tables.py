"""Options of a table: from the catalog's properties into the columns, and back to the readers."""

from __future__ import annotations

import pytest
from pyspark.sql.types import StringType, StructType

from barnabas.client.errors import ConfigError
from barnabas.spark.data_source import BarnabasDataSource, source_schema
from barnabas.spark.source import BatchReader, StreamReader
from barnabas.spark.sql_tables import options_of_table

PROPERTIES = {
    "provider": "barnabas",
    "owner": "me",
    "comment": "orders as they come",
    "option.kafka.bootstrap.servers": "localhost:9092",
    "option.subscribe": "orders",
}


def test_options_travel_with_the_columns() -> None:
    columns = BarnabasDataSource({**PROPERTIES, "option.includeheaders": "true"}).schema()
    assert columns.names == source_schema(True).names
    given = {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "orders", "includeheaders": "true"}
    assert options_of_table(columns) == given
    stored = StructType.fromJson(columns.jsonValue())  # as in the catalog
    reader = BarnabasDataSource({}).reader(stored)
    assert isinstance(reader, BatchReader) and reader._options.subscribe == ("orders",)
    stream = BarnabasDataSource({"startingOffsets": "earliest"}).streamReader(stored)
    assert isinstance(stream, StreamReader) and stream._options.starting is not None


def test_options_of_the_query_win() -> None:
    columns = BarnabasDataSource(PROPERTIES).schema()
    reader = BarnabasDataSource({"Subscribe": "others"}).reader(columns)
    assert isinstance(reader, BatchReader) and reader._options.subscribe == ("others",)


def faults(properties: dict[str, str]) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        BarnabasDataSource(properties).schema()
    return caught.value.faults


def test_mistakes_are_named_when_the_table_is_created() -> None:
    (fault,) = faults({**PROPERTIES, "option.startingofsets": "latest"})
    assert fault.startswith("startingofsets: unknown option, did you mean startingOffsets?")
    (fault,) = faults({**PROPERTIES, "location": "/data"})
    assert fault.startswith("path: this format reads and writes topics")
    (fault,) = faults({**PROPERTIES, "option.kafka.sasl.password": "s3cret"})
    assert "CREATE TEMPORARY VIEW" in fault and "s3cret" not in fault


def test_a_table_with_columns_of_its_own_and_one_that_is_written_to() -> None:
    with pytest.raises(ConfigError, match="omit the columns"):
        BarnabasDataSource({}).reader(StructType().add("value", StringType()))
    with pytest.raises(ConfigError, match="a table is for reading"):
        BarnabasDataSource({}).writer(StructType().add("value", StringType()), False)
