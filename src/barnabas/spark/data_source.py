"""`format("barnabas")`: the class that Spark registers. It parses the options and creates readers and writers."""

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
from barnabas.spark.options import SourceOptions, read_sink_options, read_source_options
from barnabas.spark.sql_tables import options_of_new_table, options_of_table, with_options


class BarnabasDataSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return "barnabas"

    def schema(self) -> StructType:
        new_table = options_of_new_table(self.options)
        options = read_source_options(self.options if new_table is None else new_table)
        columns = source_schema(options.include_headers)
        return columns if new_table is None else with_options(columns, new_table)

    def reader(self, schema: StructType) -> DataSourceReader:
        from barnabas.spark.source import BatchReader

        options = self._source_options(schema)
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

        options = self._source_options(schema)
        if options.ending is not None:
            raise ConfigError(["endingOffsets: a stream has no end; use a batch read or Trigger.AvailableNow"])
        return StreamReader(options)

    def _source_options(self, schema: StructType) -> SourceOptions:
        of_table = options_of_table(schema)
        if not of_table and not self.options:
            raise ConfigError(["CREATE TABLE ... USING barnabas: omit the columns, they are fixed"])
        options = read_source_options({**of_table, **{name.lower(): text for name, text in self.options.items()}})
        _check_schema(schema, source_schema(options.include_headers))
        return options

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from barnabas.spark.sink import BatchWriter, check_columns

        if not self.options:
            raise ConfigError(['a table is for reading: write with df.write.format("barnabas").option(...).save()'])
        if overwrite:
            raise ConfigError(['a topic cannot be overwritten: use mode("append")'])
        options = read_sink_options(self.options)
        check_columns(schema, options)
        return BatchWriter(options)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        from barnabas.spark.sink import StreamWriter, check_columns

        # outputMode("complete") appends the whole result in every batch, as with the official connector.
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
    if given.simpleString() != own.simpleString():
        raise ConfigError(["the columns of this source are fixed: omit schema() and select what you need"])
