"""`format("barnabas")`: the class that Spark knows. It reads the options and hands out readers and writers."""

from typing import Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from barnabas.client.errors import ConfigError
from barnabas.spark.options import read_sink_options, read_source_options


class BarnabasDataSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "barnabas"

    def schema(self) -> StructType:
        return source_schema(read_source_options(self.options).include_headers)

    def reader(self, schema: StructType) -> DataSourceReader:
        from barnabas.spark.source import BatchReader

        _check_schema(schema, self.schema())
        options = read_source_options(self.options)
        only_streaming = {
            "maxOffsetsPerTrigger": options.max_offsets_per_trigger,
            "minOffsetsPerTrigger": options.min_offsets_per_trigger,
            "groupId": options.group_id,
        }
        faults = [f"{name}: only for streams" for name, value in only_streaming.items() if value is not None]
        if options.starting is not None and options.starting.is_latest_somewhere:
            faults.append("startingOffsets: a batch cannot start at latest, nothing would be read")
        if faults:
            raise ConfigError(faults)
        return BatchReader(options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        from barnabas.spark.source import StreamReader

        _check_schema(schema, self.schema())
        options = read_source_options(self.options)
        if options.ending is not None:
            raise ConfigError(["endingOffsets: a stream has no end; use a batch read or Trigger.AvailableNow"])
        return StreamReader(options)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from barnabas.spark.sink import BatchWriter, check_columns

        if overwrite:
            raise ConfigError(['a topic cannot be overwritten: use mode("append")'])
        options = read_sink_options(self.options)
        check_columns(schema, options)
        return BatchWriter(options)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        from barnabas.spark.sink import StreamWriter, check_columns

        if overwrite:
            raise ConfigError(['a topic cannot be overwritten: use outputMode("append") or ("update")'])
        options = read_sink_options(self.options)
        check_columns(schema, options)
        return StreamWriter(options)


def source_schema(include_headers: bool) -> StructType:
    fields: list[Any] = [
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("timestampType", IntegerType()),
    ]
    if include_headers:
        header = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
        fields.append(StructField("headers", ArrayType(header)))
    return StructType(fields)


def _check_schema(given: StructType, own: StructType) -> None:
    if given != own:
        raise ConfigError(["the columns of this source are fixed: leave schema() out and select what you need"])
