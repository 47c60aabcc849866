"""`barnabas pipeline`: the warehouse pipeline on Spark, and traffic for it."""

import argparse
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from barnabas.cli.command import FAILED, UsageError, Verb, add_json_argument, run
from barnabas.cli.output import print_json, print_table

if TYPE_CHECKING:
    from barnabas.pipeline.routing import Routing

DEFAULT_CHECKPOINT = "./barnabas-pipeline"
DEFAULT_NAME = "barnabas-pipeline"


def main(arguments: Sequence[str]) -> int:
    return run("pipeline", "The warehouse pipeline: ODS topics to DWD and DIM topics, on Spark.", VERBS, arguments)


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
        _create_topics(options, parse_routing(DEFAULT_ROUTING), with_sources=True)
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


def run_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--checkpoint", default=DEFAULT_CHECKPOINT, metavar="DIR", help="where progress is kept")
    parser.add_argument("--routing", metavar="FILE", help="TOML: which table goes where (default: the warehouse's)")
    parser.add_argument("--master", default="local[*]", help="Spark master (default local[*])")
    parser.add_argument("--name", default=DEFAULT_NAME, help=f"of the query and its group (default {DEFAULT_NAME})")
    parser.add_argument("--starting-offsets", default="earliest", metavar="WHERE", help="of a new checkpoint")
    parser.add_argument("--max-offsets", type=int, metavar="N", help="records a batch, at most")
    parser.add_argument("--trigger", metavar="INTERVAL", help="time between batches, e.g. '1 second' (default: none)")
    parser.add_argument("--once", action="store_true", help="take what is there, then end")
    parser.add_argument("--conf", action="append", default=[], metavar="KEY=VALUE", help="Spark setting (repeatable)")


def run_pipeline(options: argparse.Namespace) -> int | None:
    from pathlib import Path

    from barnabas.cli.command import key_values
    from barnabas.cli.connection import client_config
    from barnabas.pipeline.routing import RoutingError
    from barnabas.pipeline.warehouse import DEFAULT_ROUTING

    try:
        text = Path(options.routing).read_text(encoding="utf-8") if options.routing else DEFAULT_ROUTING
    except OSError as error:
        raise UsageError(f"cannot read {options.routing}: {error.strerror}") from None
    try:
        from barnabas.pipeline.driving import Driver, spark_session
    except ImportError as error:
        raise UsageError(f"{error.name} is missing: pip install 'barnabas[spark]'") from None
    driver = Driver(client_config(options), _absolute(options.checkpoint), options.name)
    try:
        routing = driver.take_routing(text)
    except RoutingError as error:
        raise UsageError(str(error)) from None
    _create_topics(options, routing, with_sources=True)
    spark = spark_session(options.master, options.name, key_values(options.conf, "--conf"))
    try:
        query = driver.start(
            spark,
            starting_offsets=options.starting_offsets,
            max_offsets=options.max_offsets,
            trigger={"availableNow": True} if options.once else _interval(options.trigger),
        )
        print(f"pipeline {options.name} runs on {options.master}, checkpoint {options.checkpoint}; Ctrl-C stops it")
        return FAILED if driver.follow(query, options.routing, on_batch=_say_batch) else None
    finally:
        spark.stop()


def status_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--name", default=DEFAULT_NAME, help=f"of the query (default {DEFAULT_NAME})")
    parser.add_argument("--checkpoint", default=DEFAULT_CHECKPOINT, metavar="DIR", help="of the query, for its batches")
    add_json_argument(parser)


def status(options: argparse.Namespace) -> None:
    from barnabas.cli.connection import admin_client
    from barnabas.client.admin.types import OffsetSpec
    from barnabas.pipeline.progress import last_batches

    with admin_client(options) as admin:
        done = {tp: each.offset for tp, each in admin.list_group_offsets(options.name).items() if each is not None}
        ends = admin.list_offsets(dict.fromkeys(done, OffsetSpec.LATEST)) if done else {}
    rows = [(str(tp), done[tp], ends[tp].offset, ends[tp].offset - done[tp]) for tp in sorted(done)]
    batches = last_batches(_absolute(options.checkpoint))
    if options.json:
        names = ("partition", "offset", "end", "lag")
        print_json({"partitions": [dict(zip(names, row)) for row in rows], "batches": batches})
        return
    print_table(["PARTITION", "OFFSET", "END", "LAG"], rows)
    if batches:
        print()
        columns = ("batch", "at", "rows", "seconds", "rows_per_second")
        print_table(
            ["BATCH", "AT", "ROWS", "SECONDS", "ROWS/S"], [[each.get(name) for name in columns] for each in batches]
        )


def _create_topics(options: argparse.Namespace, routing: "Routing", *, with_sources: bool) -> None:
    from barnabas.cli.connection import admin_client
    from barnabas.pipeline.warehouse import topics

    with admin_client(options) as admin:
        known = set(admin.list_topics())
        for plan in topics(routing, with_sources=with_sources):
            if plan.name not in known:
                admin.create_topic(plan.name, plan.partitions, config=plan.config, if_not_exists=True)


def _say_batch(batch: dict[str, Any]) -> None:
    print(
        f"batch {batch['batch']}: {batch['rows']} records in {batch['seconds']:.2f} s, {batch['rows_per_second']:.0f}/s"
    )


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


def _absolute(path: str) -> str:
    from pathlib import Path

    return path if "://" in path else str(Path(path).absolute())


def _interval(text: str | None) -> dict[str, Any] | None:
    return None if text is None else {"processingTime": text}


def _share(text: str) -> float:
    share = float(text)
    if not 0 <= share <= 1:
        raise argparse.ArgumentTypeError("a share is between 0 and 1")
    return share


VERBS = (
    Verb("run", "run the pipeline", run_arguments, run_pipeline),
    Verb("generate", "send sample events and changes to the ODS topics", generate_arguments, generate),
    Verb("status", "lag and last batches of a pipeline", status_arguments, status),
)
