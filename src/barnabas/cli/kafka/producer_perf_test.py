"""`kafka-producer-perf-test.sh`: how fast records go in. Prints ProducerPerformance's lines.

Percentiles are over all records; Kafka's tool looks at half a million of them at most. Random payloads come from a
pool made before the clock starts.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.cli.exit_status import INTERRUPTED
from barnabas.cli.kafka.client_flags import BROKERS, spread
from barnabas.cli.kafka.failures import FailureReport, reported
from barnabas.cli.kafka.flags import COMMAND_CONFIG, COMMAND_PROPERTY, Flag, Options, Tool, WrongUse, refuse

if TYPE_CHECKING:
    from barnabas.cli.data.payloads import Blocks

DEFAULT_TRANSACTION_MS = 3000
PAYLOADS = ("record-size", "payload-file", "payload-monotonic")
TOOL = Tool(
    "kafka-producer-perf-test.sh",
    "This tool is used to verify the producer performance.",
    (
        BROKERS,
        Flag("topic", "The topic to produce to (required).", "TOPIC"),
        Flag("num-records", "How many records (required).", "N", int),
        Flag("record-size", "Bytes of a record; or --payload-file, or --payload-monotonic.", "BYTES", int),
        Flag("payload-file", "A file to draw records from.", "FILE"),
        Flag("payload-delimiter", "What stands between records in the file.", "REGEX", default="\\n"),
        Flag("payload-monotonic", "Records are 0, 1, 2 and so on."),
        Flag("throughput", "Records per second, roughly; -1 is no limit (required).", "N", float),
        Flag("print-metrics", "Print the producer's counters at the end."),
        Flag("transactional-id", "Send in transactions, with this id.", "ID"),
        Flag("transaction-duration-ms", "How long a transaction lasts (default 3000).", "MS", int),
        COMMAND_PROPERTY,
        COMMAND_CONFIG,
    ),
)


def main(arguments: Sequence[str] | None = None) -> int:
    words = sys.argv[1:] if arguments is None else arguments
    return TOOL.run(spread(words, *COMMAND_PROPERTY.synonyms, COMMAND_PROPERTY.name), check, CALL)


def check(options: Options) -> None:
    missing = [name for name in ("topic", "num-records", "throughput") if not options.has(name)]
    if missing:
        refuse(f"argument --{missing[0]} is required")
    if len(options.given_of(*PAYLOADS)) != 1:
        refuse(f"exactly one of {', '.join(f'--{name}' for name in PAYLOADS)} is required")
    for name in ("num-records", "record-size", "transaction-duration-ms"):
        if options.has(name) and options.value(name) <= 0:
            refuse(f"--{name} should be greater than zero")
    if options.value("throughput") == 0:
        refuse("--throughput should not be zero: nothing would ever be sent")
    if not options.given_of("command-property", "command-config", "bootstrap-server"):
        refuse("Either --producer-props or --producer.config must be specified.")


def produce(options: Options) -> int | None:
    from barnabas.cli.data.metric_lines import metric_lines
    from barnabas.cli.data.produce_load import Load, run_load
    from barnabas.cli.data.produce_statistics import ProduceStatistics, failure_line, total_line
    from barnabas.cli.kafka.connection import producer_of

    config, transaction_ms = _config(options)
    load = Load(options.value("topic"), options.value("throughput"), transaction_ms)
    blocks = _blocks(options, load.block_records)
    statistics = ProduceStatistics(lambda line: print(line, flush=True))
    try:
        with producer_of(config) as producer:
            if transaction_ms is not None:
                producer.init_transactions()
            statistics.start()
            run_load(producer, load, blocks, statistics)
            producer.flush()
            print(total_line(statistics.totals()))
            if options.has("print-metrics"):
                print("\n".join(metric_lines(config["client.id"], producer.metrics())))
    except KeyboardInterrupt:
        print(failure_line(statistics.totals(), options.value("num-records")), file=sys.stderr)
        return INTERRUPTED
    return None


def _config(options: Options) -> tuple[dict[str, str], int | None]:
    """Properties of the producer, and how long a transaction lasts if there are any."""
    from barnabas.cli.kafka.connection import client_config

    for pair in options.values("command-property"):
        if len(pair.split("=")) != 2:
            raise WrongUse(f"Invalid property: {pair}")
    config = client_config(options)
    config.setdefault("client.id", "perf-producer-client")
    wanted = options.given_of("transactional-id", "transaction-duration-ms")
    if not wanted and "transactional.id" not in config:
        return config, None
    if options.has("transactional-id"):
        config["transactional.id"] = options.value("transactional-id")
    elif "transactional.id" not in config:
        import uuid

        config["transactional.id"] = f"performance-producer-{uuid.uuid4()}"
    return config, options.value("transaction-duration-ms") or DEFAULT_TRANSACTION_MS


def _blocks(options: Options, block: int) -> "Blocks":
    from barnabas.cli.data import payloads

    count = options.value("num-records")
    if options.has("payload-monotonic"):
        return payloads.numbers(count, block)
    if options.has("record-size"):
        return payloads.repeated(payloads.random_letters(options.value("record-size"), count), count, block)
    path = Path(options.value("payload-file")).absolute()
    print(f"Reading payloads from: {path}")
    if not path.exists() or not path.stat().st_size:
        raise WrongUse("File does not exist or empty file provided.")
    read = payloads.split_payloads(path.read_bytes(), options.value("payload-delimiter"))
    if not read:
        raise WrongUse(f"There is nothing but delimiters in {path}.")
    print(f"Number of messages read: {len(read)}")
    return payloads.repeated(payloads.drawn(read, count), count, block)


CALL = reported(produce, FailureReport(with_exception=True))
