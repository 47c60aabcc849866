"""`kafka-console-producer.sh`: lines of stdin to a topic.

As in Kafka a record that fails is reported on stderr and the rest continues; only --sync ends with status 1 then.
"""

import io
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from barnabas.cli.kafka.client_flags import BROKERS, key_values, merge
from barnabas.cli.kafka.failures import FailureReport, reported
from barnabas.cli.kafka.flags import COMMAND_CONFIG, COMMAND_PROPERTY, Flag, Options, Tool, WrongUse

if TYPE_CHECKING:
    from barnabas.client.producer.fast_path import Delivery

LINE_READER = "org.apache.kafka.tools.LineMessageReader"
TOOL = Tool(
    "kafka-console-producer.sh",
    "This tool helps to read data from standard input and publish it to Kafka.",
    (
        BROKERS,
        Flag("topic", "The topic to produce to (required).", "TOPIC"),
        Flag("sync", "Send records one at a time as they come, and wait for each."),
        Flag(
            "compression-codec",
            "none, gzip, snappy, lz4 or zstd; gzip if no codec is named.",
            "CODEC",
            optional=True,
        ),
        Flag("batch-size", "Bytes of a batch.", "BYTES", int, default=16384),
        Flag("message-send-max-retries", "Retries before a record fails (retries).", "N", int, default=3),
        Flag("retry-backoff-ms", "Pause between retries (retry.backoff.ms).", "MS", int, default=100),
        Flag("timeout", "How long a record waits for others (linger.ms).", "MS", int, default=1000),
        Flag("request-required-acks", "Who must have a record (acks).", "ACKS", default="-1"),
        Flag("request-timeout-ms", "How long to wait for a response (request.timeout.ms).", "MS", int, default=1500),
        Flag(
            "metadata-expiry-ms", "Age at which metadata is refreshed (metadata.max.age.ms).", "MS", int, default=300000
        ),
        Flag("max-block-ms", "How long a send may wait (max.block.ms).", "MS", int, default=60000),
        Flag("max-memory-bytes", "Memory for records that wait (buffer.memory).", "BYTES", int, default=33554432),
        Flag(
            "max-partition-memory-bytes",
            "Bytes of a batch (batch.size); overrides --batch-size.",
            "BYTES",
            int,
            default=16384,
        ),
        Flag("line-reader", "What reads the lines; there is the one.", "CLASS", default=LINE_READER),
        Flag("socket-buffer-size", "Size of the TCP buffer (send.buffer.bytes).", "BYTES", int, default=102400),
        Flag(
            "property",
            "One property for the reader: parse.key=false parse.headers=false ignore.error=false key.separator=\\t"
            " headers.delimiter=\\t headers.separator=, headers.key.separator=: null.marker=",
            "KEY=VALUE",
            synonyms=("reader-property",),
        ),
        Flag("reader-config", "A file of properties for the reader; --property overrides it.", "FILE"),
        COMMAND_PROPERTY,
        COMMAND_CONFIG,
    ),
)


def check(options: Options) -> None:
    options.require("topic", "bootstrap-server")
    if sys.stdin is None:
        raise WrongUse("stdin is closed: there is nothing to read lines from")


def produce(options: Options) -> int:
    from barnabas.cli.kafka.connection import producer_of
    from barnabas.cli.kafka.line_reader import LineReader
    from barnabas.errors import KafkaError
    from barnabas.stop_signals import StopRequest

    reader = LineReader(_reader_properties(options))
    topic = options.value("topic")
    with producer_of(_producer_config(options)) as producer, StopRequest() as stop:
        records = reader.records(_lines())
        while not stop.requested and (record := stop.next_of(records)) is not None:
            try:
                delivery = producer.send(topic, record.value, record.key, headers=record.headers)
                if options.has("sync"):
                    delivery.result()
                else:
                    delivery.add_callback(_on_done)
            except KafkaError as error:
                if options.has("sync") or isinstance(error, ValueError):
                    raise
                _report(topic, error)
    return stop.status


def _on_done(delivery: "Delivery") -> None:
    error = delivery.exception(0)
    if error is not None:
        _report(delivery.batch.tp.topic, error)


def _report(topic: str, error: Exception) -> None:
    print(f"Error when sending message to topic {topic}: {error}", file=sys.stderr)


def _lines() -> Iterator[str]:
    """As Java reads them: ended by a line feed, a carriage return or both. At a terminal each has a prompt."""
    prompt = sys.stdin.isatty() and sys.stdout.isatty()
    text = io.TextIOWrapper(sys.stdin.buffer, encoding="utf-8", errors="replace", newline=None)
    try:
        while True:
            if prompt:
                print(">", end="", flush=True)
            line = text.readline()
            if not line:
                return
            yield line.removesuffix("\n")
    finally:
        text.detach()


def _reader_properties(options: Options) -> dict[str, str]:
    from barnabas.cli.kafka.connection import properties_file

    if options.value("line-reader").rpartition(".")[2] != "LineMessageReader":
        raise WrongUse(f"There is no reader {options.value('line-reader')} here; there is {LINE_READER}")
    path = options.value("reader-config")
    return {**({} if path is None else properties_file(path)), **key_values(options.values("property"))}


def _producer_config(options: Options) -> dict[str, str]:
    from barnabas.cli.kafka.connection import client_config

    config = client_config(options)
    config["compression.type"] = "none"
    if options.has("compression-codec"):
        config["compression.type"] = options.value("compression-codec") or "gzip"
    config.setdefault("client.id", "console-producer")
    for key, flag in (
        ("linger.ms", "timeout"),
        ("acks", "request-required-acks"),
        ("request.timeout.ms", "request-timeout-ms"),
        ("retries", "message-send-max-retries"),
        ("retry.backoff.ms", "retry-backoff-ms"),
        ("send.buffer.bytes", "socket-buffer-size"),
        ("buffer.memory", "max-memory-bytes"),
        ("batch.size", "batch-size"),
        ("batch.size", "max-partition-memory-bytes"),
        ("metadata.max.age.ms", "metadata-expiry-ms"),
        ("max.block.ms", "max-block-ms"),
    ):
        merge(config, key, options, flag)
    return config


main = TOOL.main(check, reported(produce, FailureReport(with_exception=True)))
