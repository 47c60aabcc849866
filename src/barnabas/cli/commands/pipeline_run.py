"""`barnabas pipeline run`: the warehouse pipeline on Spark, until Ctrl-C."""

import argparse
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from barnabas.cli.command import UsageError
from barnabas.cli.commands.pipeline_topics import (
    DEFAULT_CHECKPOINT,
    DEFAULT_NAME,
    absolute,
    create_topics,
    whole_number,
)
from barnabas.cli.exit_status import FAILED
from barnabas.cli.progress import ProgressLine, bar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from barnabas.pipeline.driving import Driver
    from barnabas.pipeline.routing import Routing
    from barnabas.pipeline.tables.query import TablesQuery


def run_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--checkpoint", default=DEFAULT_CHECKPOINT, metavar="DIR", help="where progress is kept")
    parser.add_argument("--routing", metavar="FILE", help="TOML: which table goes where (default: the warehouse's)")
    parser.add_argument(
        "--keep-unrouted",
        action="store_true",
        help="keep changes of tables without a route in the dirty topic"
        ' (in a routing file of your own: unrouted = "dirty"; default: they are counted)',
    )
    parser.add_argument("--master", default="local[*]", help="Spark master (default local[*])")
    parser.add_argument("--name", default=DEFAULT_NAME, help=f"of the query and its group (default {DEFAULT_NAME})")
    parser.add_argument(
        "--starting-offsets", type=_where, default="earliest", metavar="WHERE", help="of a new checkpoint"
    )
    parser.add_argument(
        "--max-offsets", type=whole_number, metavar="N", help="records per batch, at most (default 100000)"
    )
    parser.add_argument("--trigger", metavar="INTERVAL", help="time between batches, e.g. '1 second' (default: none)")
    parser.add_argument("--once", action="store_true", help="take what is there, then end")
    parser.add_argument(
        "--tables",
        nargs="?",
        const="",
        metavar="WHERE",
        help="also write tables: a folder (or parquet:FOLDER) for Parquet files, or postgresql://USER@HOST/DATABASE,"
        " where rows are upserted by key (default off; without WHERE: Parquet in the folder CHECKPOINT-tables)",
    )
    parser.add_argument(
        "--tables-trigger",
        metavar="INTERVAL",
        help="time between batches of the tables (default: 1 minute for Parquet, 10 seconds for PostgreSQL)",
    )
    parser.add_argument(
        "--skip-lost",
        action="store_true",
        help="go on with what is there where records went before they were read (retention, a topic created again);"
        " without it that ends the pipeline, and says which",
    )
    parser.add_argument("--conf", action="append", default=[], metavar="KEY=VALUE", help="Spark setting (repeatable)")


def run_pipeline(options: argparse.Namespace) -> int | None:
    from pathlib import Path

    from barnabas.cli.command import key_values
    from barnabas.cli.connection import client_config
    from barnabas.pipeline.java import why_no_java
    from barnabas.pipeline.routing import RoutingError
    from barnabas.pipeline.warehouse import DEFAULT_ROUTING

    if options.keep_unrouted and options.routing:
        raise UsageError(
            f'--keep-unrouted is for the warehouse\'s own routing: write unrouted = "dirty" into {options.routing}'
        )
    try:
        text = Path(options.routing).read_text(encoding="utf-8") if options.routing else DEFAULT_ROUTING
    except (OSError, UnicodeDecodeError) as error:
        reason = "it is not UTF-8 text" if isinstance(error, UnicodeDecodeError) else error.strerror
        raise UsageError(f"cannot read {options.routing}: {reason}") from None
    if options.keep_unrouted:
        text = f'unrouted = "dirty"\n{text}'
    try:
        from pyspark.errors import IllegalArgumentException

        from barnabas.pipeline.checkpoint import CheckpointError, claim_checkpoint
        from barnabas.pipeline.driving import Driver, spark_session
    except ImportError as error:
        raise UsageError(f"{error.name} is missing: pip install 'barnabas[spark]'") from None
    driver = Driver(client_config(options), absolute(options.checkpoint), options.name)
    try:
        claim_checkpoint(absolute(options.checkpoint), options.name)
        routing = driver.take_routing(text)
    except (CheckpointError, RoutingError) as error:
        raise UsageError(str(error)) from None
    tables = _tables(options)
    no_java = why_no_java()
    if no_java is not None:
        raise UsageError(no_java)
    if tables is not None:
        from barnabas.pipeline.tables.place import PlaceError

        try:
            tables.prepare()
        except PlaceError as error:
            return _fail(str(error))
    create_topics(options, routing, with_sources=True)
    if driver.is_new and options.starting_offsets == "earliest":
        _maybe_warn(options, routing)
    spark = spark_session(options.master, options.name, key_values(options.conf, "--conf"))
    try:
        failure = _run(options, driver, spark, tables)
    except IllegalArgumentException as error:  # a time between batches that is none
        raise UsageError(str(error).partition("\n")[0]) from None
    finally:
        spark.stop()
    return None if failure is None else _fail(failure)


def _run(
    options: argparse.Namespace, driver: "Driver", spark: "SparkSession", tables: "TablesQuery | None"
) -> str | None:
    """What failed, and why."""
    query = driver.start(
        spark,
        starting_offsets=options.starting_offsets,
        max_offsets=options.max_offsets,
        trigger={"availableNow": True} if options.once else _interval(options.trigger),
        skip_lost=options.skip_lost,
        routing_file=options.routing,
    )
    if tables is not None and not options.once:
        driver.start_tables(spark, tables)
    print(f"pipeline {options.name} runs on {options.master}, checkpoint {options.checkpoint}; Ctrl-C stops it")
    if tables is not None:
        print(f"tables: {tables.place.shown}")
    line = ProgressLine()

    def print_message(text: str) -> None:
        line.clear()
        print(text, flush=True)

    failure = driver.follow(
        query,
        options.routing,
        on_batch=batch_reporter(line),
        tables=tables,
        on_message=print_message,
    )
    line.clear()
    if failure is None and tables is not None and options.once and not driver.was_stopped:
        # What there is now is known when the pipeline is done.
        driver.start_tables(spark, tables, once=True)
        failure = driver.follow_tables(tables)
    return failure


def _tables(options: argparse.Namespace) -> "TablesQuery | None":
    if options.tables is None:
        if options.tables_trigger is not None:
            raise UsageError("--tables-trigger without --tables")
        return None
    from barnabas.cli.connection import client_config
    from barnabas.pipeline.tables.place import PlaceError, parse_place
    from barnabas.pipeline.tables.query import TablesQuery

    checkpoint = absolute(options.checkpoint)
    try:
        place = parse_place(options.tables or f"{checkpoint.rstrip('/')}-tables")
    except ImportError as error:
        raise UsageError(f"{error.name} is missing: pip install 'barnabas[postgresql]'") from None
    except PlaceError as error:
        raise UsageError(f"--tables: {error}") from None
    return TablesQuery(
        client_config(options), checkpoint, options.name, place, options.tables_trigger, skip_lost=options.skip_lost
    )


def _maybe_warn(options: argparse.Namespace, routing: "Routing") -> None:
    """Before Spark starts, which takes long enough to read it and press Ctrl-C."""
    from barnabas.cli.connection import admin_client
    from barnabas.pipeline.earlier_output import earlier_output_warning

    with admin_client(options) as admin:
        warning = earlier_output_warning(admin, options.checkpoint, routing)
    if warning is not None:
        print(f"barnabas pipeline run: {warning}", file=sys.stderr)


def _fail(reason: str) -> int:
    print(f"barnabas pipeline run: {reason}", file=sys.stderr)
    return FAILED


def batch_reporter(line: ProgressLine) -> Callable[[dict[str, Any]], None]:
    """In a terminal a bar: what is done of what there is. Elsewhere one line per batch."""
    total = 0

    def report(batch: dict[str, Any]) -> None:
        nonlocal total
        total += batch["rows"]
        lag = batch["lag"]
        text = f"batch {batch['batch']}: {batch['rows']:,} records in {batch['seconds']:.2f} s"
        text += f", {batch['rows_per_second']:,.0f}/s" + ("" if lag is None else f", lag {lag:,}")
        if line.is_shown and sys.stdout.isatty():
            line.show(f"{bar(total / (total + (lag or 0)))}  {text}; {total:,} in all", at_once=True)
        else:
            print(text, flush=True)

    return report


def _where(text: str) -> str:
    from barnabas.spark.offsets import parse_offsets

    try:
        parse_offsets(text, may_be=("earliest", "latest"))
    except ValueError as fault:
        raise argparse.ArgumentTypeError(f"{text!r} is not allowed, {fault}") from None
    return text


def _interval(text: str | None) -> dict[str, Any] | None:
    return None if text is None else {"processingTime": text}
