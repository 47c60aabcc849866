"""`barnabas perf`: how fast records go in and out, and how long one takes. Prints the lines of Kafka's own tools."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.cli.command import Command, UsageError, add_json_argument, noun_main
from barnabas.cli.exit_status import FAILED, INTERRUPTED

if TYPE_CHECKING:
    from barnabas.cli.data.payloads import Blocks
    from barnabas.cli.data.produce_load import Load
    from barnabas.cli.data.produce_statistics import ProduceStatistics, Totals
    from barnabas.client.metrics import Metrics


def produce_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topic", metavar="TOPIC")
    parser.add_argument("-n", "--records", type=int, default=100_000, metavar="N", help="how many (default 100000)")
    parser.add_argument("-s", "--size", type=int, metavar="BYTES", help="size of a record (default 100)")
    parser.add_argument("--payload-file", metavar="FILE", help="draw records from the lines of a file instead")
    parser.add_argument(
        "--throughput", type=float, default=-1, metavar="N", help="records per second (default no limit)"
    )
    parser.add_argument("--acks", choices=["all", "-1", "1", "0"], help="who must have a record (default all)")
    parser.add_argument("-z", "--compression", metavar="CODEC", help="none, gzip, snappy, lz4 or zstd")
    parser.add_argument("--transactional-id", metavar="ID", help="send in transactions")
    parser.add_argument(
        "--transaction-ms", type=int, default=3000, metavar="MS", help="how long a transaction lasts (default 3000)"
    )
    parser.add_argument("--print-metrics", action="store_true", help="the producer's counters at the end")
    add_json_argument(parser)


def produce(options: argparse.Namespace) -> int:
    from barnabas.cli.data.produce_load import Load
    from barnabas.cli.data.produce_statistics import ProduceStatistics
    from barnabas.errors import KafkaError

    _check_positive(options, "records", "size", "transaction_ms", "throughput")
    load = Load(options.topic, options.throughput, options.transaction_ms if options.transactional_id else None)
    blocks = _blocks(options, load.block_records)
    statistics = ProduceStatistics(None if options.json else lambda line: print(line, flush=True))
    try:
        totals, metrics = _produce_load(options, load, blocks, statistics)
    except KeyboardInterrupt:
        _report_produced(options, statistics.totals(), None, "interrupted")
        return INTERRUPTED
    except KafkaError as error:
        if isinstance(error, ValueError):  # wrong options: there was no load
            raise
        _report_produced(options, statistics.totals(), None, error.message)
        return FAILED
    _report_produced(options, totals, metrics)
    return FAILED if totals.failed else 0


def _produce_load(
    options: argparse.Namespace, load: "Load", blocks: "Blocks", statistics: "ProduceStatistics"
) -> "tuple[Totals, Metrics]":
    from barnabas.cli.data.clients import producer_client
    from barnabas.cli.data.produce_load import run_load
    from barnabas.cli.outages import outage_line, report_outages

    own = {
        "acks": options.acks,
        "compression.type": options.compression,
        "transactional.id": options.transactional_id,
    }
    with producer_client(options, own) as producer, report_outages(outage_line("barnabas perf produce")):
        if load.transaction_ms is not None:
            producer.init_transactions()
        statistics.start()
        run_load(producer, load, blocks, statistics)
        producer.flush()
        return statistics.totals(), producer.metrics()


def _report_produced(
    options: argparse.Namespace, totals: "Totals", metrics: "Metrics | None", ended_by: str | None = None
) -> None:
    """What was measured, also where it ended early: then with the number of records that no broker has."""
    from barnabas.cli.data.metric_lines import metric_lines
    from barnabas.cli.data.produce_statistics import PERCENTILES, failure_line, labelled, total_line
    from barnabas.cli.output import print_json

    if options.json:
        print_json({**totals._asdict(), "percentiles_ms": labelled(totals.percentiles_ms, PERCENTILES)})
    elif totals.records or ended_by is None:
        print(total_line(totals))
    if metrics and options.print_metrics and not options.json:
        print("\n".join(metric_lines("barnabas-producer", metrics)))
    if ended_by is not None or totals.failed:
        why = "" if ended_by is None else f": {ended_by}"
        print(f"barnabas perf produce: {failure_line(totals, options.records)}{why}", file=sys.stderr)


def _blocks(options: argparse.Namespace, block: int) -> "Blocks":
    from barnabas.cli.data.payloads import drawn, random_letters, repeated

    if options.payload_file is None:
        return repeated(random_letters(options.size or 100, options.records), options.records, block)
    if options.size is not None:
        raise UsageError("--payload-file has the records: leave out --size")
    try:
        lines = Path(options.payload_file).read_bytes().splitlines()
    except OSError as error:
        raise UsageError(f"cannot read {options.payload_file}: {error.strerror}") from None
    if not lines:
        raise UsageError(f"{options.payload_file} is empty")
    return repeated(drawn(lines, options.records), options.records, block)


def consume_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topic", metavar="TOPIC")
    parser.add_argument("-n", "--records", type=int, default=100_000, metavar="N", help="how many (default 100000)")
    parser.add_argument("-g", "--group", metavar="GROUP", help="group to read with (default a new one)")
    parser.add_argument("--from-latest", action="store_true", help="start at the end where the group has no offset")
    parser.add_argument("--detailed", action="store_true", help="a line every five seconds")
    parser.add_argument("--idle-ms", type=int, default=10_000, metavar="MS", help="give up when nothing came so long")
    parser.add_argument("--print-metrics", action="store_true", help="the consumer's counters at the end")
    add_json_argument(parser)


def consume(options: argparse.Namespace) -> int:
    import os

    from barnabas.cli.data.clients import CLOSE_S, consumer_client
    from barnabas.cli.data.consume_load import ReadLoad, read_load, too_few_line, total_line
    from barnabas.cli.data.metric_lines import metric_lines
    from barnabas.cli.data.reading import existing_topics
    from barnabas.cli.outages import outage_line, report_outages
    from barnabas.cli.output import print_json
    from barnabas.cli.progress import Progress

    _check_positive(options, "records", "idle_ms")
    load = ReadLoad(options.topic, options.records, options.idle_ms, detailed=options.detailed and not options.json)
    own = {"group.id": options.group, "auto.offset.reset": "latest" if options.from_latest else None}
    defaults = {
        "group.id": f"perf-consumer-{os.urandom(4).hex()}",
        "auto.offset.reset": "earliest",
        "allow.auto.create.topics": "false",
    }
    with consumer_client(options, own, defaults) as consumer:
        existing_topics(consumer, [options.topic])
        if not options.json:
            print(load.header(), flush=True)
        # Where lines are printed as it goes, they are the progress.
        with (
            report_outages(outage_line("barnabas perf consume")),
            Progress("consuming", shown=False if load.detailed else None) as progress,
        ):
            totals = read_load(consumer, load, lambda line: print(line, flush=True), progress)
            metrics = consumer.metrics()
            consumer.close(CLOSE_S)
    if options.json:
        print_json({**totals._asdict(), "fetch_ms": totals.fetch_ms})
        return 0 if totals.complete else FAILED
    if not totals.complete:
        print(too_few_line(load, "--idle-ms"))
    if not load.detailed:
        print(total_line(load, totals))
    if options.print_metrics:
        print("\n".join(metric_lines("barnabas-consumer", metrics)))
    return 0 if totals.complete else FAILED


def latency_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topic", metavar="TOPIC")
    parser.add_argument("-n", "--records", type=int, default=1000, metavar="N", help="how many (default 1000)")
    parser.add_argument("-s", "--size", type=int, default=100, metavar="BYTES", help="size of a record (default 100)")
    parser.add_argument("--acks", choices=["all", "-1", "1"], default="all", help="who must have a record")
    add_json_argument(parser)


def latency(options: argparse.Namespace) -> int:
    from barnabas.cli.data.clients import consumer_client, producer_client
    from barnabas.cli.data.latency_load import RoundTripError, measure, result_lines, results
    from barnabas.cli.outages import outage_line, report_outages
    from barnabas.cli.output import print_json

    _check_positive(options, "records", "size")
    with (
        consumer_client(options, {"fetch.max.wait.ms": "0"}) as consumer,
        producer_client(options, {"linger.ms": "0", "acks": options.acks}) as producer,
        report_outages(outage_line("barnabas perf latency")),
    ):
        producer.partitions_for(options.topic)  # the topic is created here if the brokers do that

        def report(line: str) -> None:
            if not options.json:
                print(line, flush=True)

        try:
            taken = measure(producer, consumer, options.topic, options.records, options.size, report)
        except RoundTripError as error:
            print(f"barnabas perf latency: {error}: is somebody else writing to {options.topic}?", file=sys.stderr)
            return FAILED
    if options.json:
        print_json(results(taken))
    else:
        print("\n".join(result_lines(taken)))
    return 0


def _check_positive(options: argparse.Namespace, *names: str) -> None:
    for name in names:
        value = getattr(options, name)
        if value is not None and (value == 0 or (value < 0 and name != "throughput")):
            raise UsageError(f"--{name.replace('_', '-')} {value:g}: expected a number above 0")


VERBS = (
    Command("produce", "send records as fast as possible, or at a rate", produce_arguments, produce),
    Command("consume", "read records as fast as possible", consume_arguments, consume),
    Command("latency", "time records one by one from the producer to the consumer", latency_arguments, latency),
)

main = noun_main("perf", "Performance: producing, consuming, latency.", VERBS)
