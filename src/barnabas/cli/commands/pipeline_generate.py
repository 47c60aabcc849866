"""`barnabas pipeline generate`: sample events and changes for the ODS topics."""

import argparse
import sys
from typing import Any

from barnabas.cli.commands.pipeline_topics import create_topics


def generate_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-c", "--count", type=int, metavar="N", help="stop after N records")
    parser.add_argument("--duration", type=float, metavar="SECONDS", help="stop after this time")
    parser.add_argument("--rate", type=float, metavar="N", help="records a second (default: as fast as it goes)")
    parser.add_argument("--seed", type=int, default=1, help="the same seed gives the same records (default 1)")
    parser.add_argument("--generation", choices=("A", "B", "both"), default="both", help="of app events")
    parser.add_argument("--format", choices=("maxwell", "canal", "debezium", "all"), default="all", help="of changes")
    parser.add_argument("--devices", type=int, default=10_000, metavar="N", help="number of devices (default 10000)")
    parser.add_argument("--dirty", type=_share, default=0.0, metavar="SHARE", help="records nobody can read, 0 to 1")
    parser.add_argument("--duplicates", type=_share, default=0.0, metavar="SHARE", help="records sent twice, 0 to 1")
    parser.add_argument("--no-create", action="store_true", help="do not create the topics")


def generate(options: argparse.Namespace) -> None:
    from barnabas.cli.connection import client_config
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
    with Producer.from_config({"linger.ms": "5", **client_config(options)}) as producer:
        sent = send_records(
            producer,
            records(wanted),
            count=options.count,
            rate=options.rate,
            duration_s=options.duration,
            stamp_now=True,
            on_progress=_progress("sent"),
        )
    print(f"{sent} records sent")


def _progress(word: str) -> Any:
    """On stderr, where a person looks, once a second."""
    import time

    last = [time.monotonic(), 0]

    def tell(number: int) -> None:
        now = time.monotonic()
        if now - last[0] >= 1 and sys.stderr.isatty():
            print(f"\r{word} {number:,} ({(number - last[1]) / (now - last[0]):,.0f}/s) ", end="", file=sys.stderr)
            last[:] = [now, number]

    return tell


def _share(text: str) -> float:
    share = float(text)
    if not 0 <= share <= 1:
        raise argparse.ArgumentTypeError("a share is between 0 and 1")
    return share
