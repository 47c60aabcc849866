"""`barnabas pipeline generate`: sample events and changes for the ODS topics."""

import argparse
import time
from collections.abc import Callable

from barnabas.cli.command import add_json_argument
from barnabas.cli.commands.pipeline_topics import above_zero, create_topics, whole_number
from barnabas.cli.output import print_json
from barnabas.cli.progress import ProgressLine, Speed, bar


def generate_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-c", "--count", type=whole_number, metavar="N", help="stop after N records")
    parser.add_argument("--duration", type=above_zero, metavar="SECONDS", help="stop after this time")
    parser.add_argument("--rate", type=above_zero, metavar="N", help="records per second (default: as fast as it goes)")
    parser.add_argument("--seed", type=int, default=1, help="the same seed gives the same records (default 1)")
    parser.add_argument("--generation", choices=("A", "B", "both"), default="both", help="of app events")
    parser.add_argument("--format", choices=("maxwell", "canal", "debezium", "all"), default="all", help="of changes")
    parser.add_argument(
        "--devices", type=whole_number, default=10_000, metavar="N", help="number of devices (default 10000)"
    )
    parser.add_argument("--dirty", type=_share, default=0.0, metavar="SHARE", help="records nobody can read, 0 to 1")
    parser.add_argument("--duplicates", type=_share, default=0.0, metavar="SHARE", help="records sent twice, 0 to 1")
    parser.add_argument("--no-create", action="store_true", help="do not create the topics")
    add_json_argument(parser)


def generate(options: argparse.Namespace) -> None:
    from barnabas.cli.connection import client_config
    from barnabas.client.options import ProducerOptions
    from barnabas.client.producer.producer import Producer
    from barnabas.pipeline.generator import GeneratorOptions
    from barnabas.pipeline.generator import generate as records
    from barnabas.pipeline.routing import parse_routing
    from barnabas.pipeline.sending import send_records
    from barnabas.pipeline.warehouse import DEFAULT_ROUTING

    if not options.no_create:
        create_topics(options, parse_routing(DEFAULT_ROUTING), with_sources=True)
    wanted = GeneratorOptions(
        seed=options.seed,
        generations=("A", "B") if options.generation == "both" else (options.generation,),
        formats=("maxwell", "canal", "debezium") if options.format == "all" else (options.format,),
        devices=options.devices,
        dirty=options.dirty,
        duplicates=options.duplicates,
    )
    line = ProgressLine()
    try:
        config = client_config(options, ProducerOptions, defaults={"linger.ms": "5"})
        with Producer.from_config(config) as producer:
            sent = send_records(
                producer,
                records(wanted),
                count=options.count,
                rate=options.rate,
                duration_s=options.duration,
                stamp_now=True,
                on_progress=_reporter(line, options),
            )
    finally:
        line.clear()
    if options.json:
        print_json({"records": sent})
    else:
        print(f"{sent} records sent")


def _reporter(line: ProgressLine, options: argparse.Namespace) -> Callable[[int], None]:
    """In a terminal: how far it is, and how fast. Without an end to come, no bar."""
    speed = Speed()
    started = time.monotonic()

    def report(sent: int) -> None:
        shares = [0.0]
        if options.count:
            shares.append(sent / options.count)
        if options.duration:
            shares.append((time.monotonic() - started) / options.duration)
        done = f"{bar(max(shares))}  " if len(shares) > 1 else ""
        wanted = f" of {options.count:,}" if options.count else ""
        line.show(f"{done}{sent:,}{wanted} records sent, {speed.of(sent):,.0f}/s")

    return report


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no share between 0 and 1")
    return share
