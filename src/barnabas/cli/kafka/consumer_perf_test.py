"""`kafka-consumer-perf-test.sh`: how fast records come out. Prints ConsumerPerformance's lines."""

import random

from barnabas.cli.kafka.client_flags import BROKERS
from barnabas.cli.kafka.failures import FailureReport, reported
from barnabas.cli.kafka.flags import COMMAND_CONFIG, COMMAND_PROPERTY, Flag, Options, Tool, refuse

TOOL = Tool(
    "kafka-consumer-perf-test.sh",
    "This tool is used to verify the consumer performance.",
    (
        BROKERS,
        Flag("topic", "The topic to consume from (required).", "TOPIC"),
        Flag("messages", "How many records to read (required).", "N", int, synonyms=("num-records",)),
        Flag("group", "The group to read with (default a new one).", "GROUP"),
        Flag("fetch-size", "Bytes of a partition in one response.", "BYTES", int, default=1048576),
        Flag("from-latest", "Start at the end where the group has no offset."),
        Flag("socket-buffer-size", "Size of the TCP buffer.", "BYTES", int, default=2097152),
        Flag("print-metrics", "Print the consumer's counters at the end."),
        Flag("show-detailed-stats", "A line for each --reporting-interval instead of one for all."),
        Flag("timeout", "Give up when nothing came for so long.", "MS", int, optional=True, default=10000),
        Flag("reporting-interval", "Time between two lines.", "MS", int, default=5000),
        Flag("date-format", "Java's pattern for times.", "PATTERN", default="yyyy-MM-dd HH:mm:ss:SSS"),
        Flag("hide-header", "Leave out the line with the names of the columns."),
        COMMAND_PROPERTY,
        COMMAND_CONFIG,
    ),
)


def check(options: Options) -> None:
    options.require("topic", "messages", "bootstrap-server")
    if options.value("reporting-interval") <= 0:
        refuse("Reporting interval must be greater than 0.")


def consume(options: Options) -> None:
    from barnabas.cli.data.consume_load import ReadLoad, read_load, too_few_line, total_line
    from barnabas.cli.data.metric_lines import metric_lines
    from barnabas.cli.kafka.connection import consumer_of

    config = _config(options)
    load = ReadLoad(
        options.value("topic"),
        options.value("messages"),
        options.value("timeout"),
        options.value("reporting-interval"),
        options.has("show-detailed-stats"),
        options.value("date-format"),
    )
    if not options.has("hide-header"):
        print(load.header(), flush=True)
    with consumer_of(config) as consumer:
        totals = read_load(consumer, load, lambda line: print(line, flush=True))
        metrics = consumer.metrics()
        if not totals.complete:
            print(too_few_line(load, "--timeout"))
    if not load.detailed:
        print(total_line(load, totals))
    if options.has("print-metrics"):
        print("\n".join(metric_lines(config["client.id"], metrics)))


def _config(options: Options) -> dict[str, str]:
    from barnabas.cli.kafka.connection import client_config

    config = client_config(options)
    config.setdefault("client.id", "perf-consumer-client")
    return {
        **config,
        "group.id": options.value("group") or f"perf-consumer-{random.randrange(100000)}",
        "receive.buffer.bytes": str(options.value("socket-buffer-size")),
        "max.partition.fetch.bytes": str(options.value("fetch-size")),
        "auto.offset.reset": "latest" if options.has("from-latest") else "earliest",
        "check.crcs": "false",
    }


main = TOOL.main(check, reported(consume, FailureReport(with_exception=True)))
