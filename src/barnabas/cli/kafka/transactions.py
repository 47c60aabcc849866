"""`kafka-transactions.sh`: which transactions there are, what their producers do, and ending those that hang."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from barnabas.cli.kafka.flags import integer, long, short
from barnabas.cli.kafka.subcommands import Failed, Parser, admin_of_options, run, subcommand, tool_parser
from barnabas.cli.kafka.tables import print_table

if TYPE_CHECKING:
    from barnabas.client.admin import Admin
    from barnabas.errors import KafkaError

MINUTE_MS = 60_000
DETAIL = "Enable debug logging for additional detail."


def main(arguments: Sequence[str] | None = None) -> int:
    return run(_parser(), arguments, _run)


def _parser() -> Parser:
    parser, commands = tool_parser(
        "kafka-transactions.sh",
        "This tool is used to analyze the transactional state of producers in the cluster. It can be used to detect and"
        " recover from hanging transactions.",
    )
    listing = subcommand(commands, "list", "list transactions")
    listing.add_argument("--duration-filter", metavar="MS", type=long, help="only those that run longer")
    listing.add_argument("--transactional-id-pattern", metavar="REGEX", help="only ids that match")
    describe = subcommand(commands, "describe", "describe the state of an active transactional-id")
    describe.add_argument("--transactional-id", required=True)
    producers = subcommand(commands, "describe-producers", "describe the producers of a partition")
    producers.add_argument("--broker-id", type=integer, help="ask this replica instead of the leader")
    abort = subcommand(commands, "abort", "abort a hanging transaction (requires administrative privileges)")
    for each in (producers, abort):
        each.add_argument("--topic", required=True)
        each.add_argument("--partition", type=integer, required=True)
    abort.add_argument("--start-offset", type=long, help="where the transaction begins (brokers since 3.0)")
    for flag, kind in (("--producer-id", long), ("--producer-epoch", short), ("--coordinator-epoch", integer)):
        abort.add_argument(flag, type=kind, help="for older brokers, all three of them")
    hanging = subcommand(commands, "find-hanging", "find hanging transactions")
    hanging.add_argument("--broker-id", type=integer, help="look at what this broker holds")
    hanging.add_argument("--topic", help="look at this topic")
    hanging.add_argument("--partition", type=integer, help="only this partition of the topic")
    hanging.add_argument("--max-transaction-timeout", metavar="MINUTES", type=integer, default=15)
    return parser


def _run(options: argparse.Namespace) -> None:
    work = {
        "list": _list,
        "describe": _describe,
        "describe-producers": _describe_producers,
        "abort": _abort,
        "find-hanging": _find_hanging,
    }
    if not options.bootstrap_server:
        raise Failed("kafka-transactions.sh: error: argument --bootstrap-server is required")
    with admin_of_options(options) as admin:
        work[options.command](admin, options)


def _failed(what: str, error: KafkaError) -> Failed:
    from barnabas.cli.kafka.connection import kafka_text

    return Failed(f"{what}: {kafka_text(error)}. {DETAIL}")


def _list(admin: Admin, options: argparse.Namespace) -> None:
    from barnabas.errors import KafkaError

    longer = options.duration_filter
    try:
        listed = admin.list_transactions(
            longer_than_ms=longer if longer is not None and longer >= 0 else None,
            transactional_id_pattern=options.transactional_id_pattern,
        )
    except KafkaError as error:
        raise _failed("Failed to list transactions", error) from error
    print_table(
        ("TransactionalId", "Coordinator", "ProducerId", "TransactionState"),
        [(each.transactional_id, each.coordinator_id, each.producer_id, each.state) for each in listed.values()],
    )


def _describe(admin: Admin, options: argparse.Namespace) -> None:
    from barnabas.errors import KafkaError

    name = options.transactional_id
    try:
        told = admin.describe_transaction(name)
    except KafkaError as error:
        raise _failed(f"Failed to describe transaction state of transactional-id `{name}`", error) from error
    start = told.start_time_ms
    row = (
        *(told.coordinator_id, name, told.producer_id, told.producer_epoch, told.state, told.transaction_timeout_ms),
        *((start, _now_ms() - start) if start is not None else ("None", "None")),
        ",".join(f"{topic}-{partition}" for topic, partition in sorted(told.partitions)),
    )
    headers = ("CoordinatorId", "TransactionalId", "ProducerId", "ProducerEpoch", "TransactionState")
    times = ("TransactionTimeoutMs", "CurrentTransactionStartTimeMs", "TransactionDurationMs")
    print_table((*headers, *times, "TopicPartitions"), [row])


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _describe_producers(admin: Admin, options: argparse.Namespace) -> None:
    from barnabas.errors import KafkaError
    from barnabas.types import TopicPartition

    key = TopicPartition(options.topic, options.partition)
    try:
        producers = admin.describe_producers([key], broker_id=options.broker_id)[key]
    except KafkaError as error:
        where = "leader" if options.broker_id is None else f"broker {options.broker_id}"
        what = f"Failed to describe producers for partition {key.topic}-{key.partition} on {where}"
        raise _failed(what, next(iter(getattr(error, "errors", {}).values()), error)) from error
    headers = ("ProducerId", "ProducerEpoch", "LatestCoordinatorEpoch", "LastSequence", "LastTimestamp")
    rows = [
        (
            *(each.producer_id, each.producer_epoch),
            -1 if each.coordinator_epoch is None else each.coordinator_epoch,
            *(each.last_sequence, each.last_timestamp, each.current_transaction_start_offset),
        )
        for each in producers
    ]
    print_table((*headers, "CurrentTransactionStartOffset"), rows)


def _abort(admin: Admin, options: argparse.Namespace) -> None:
    from barnabas.errors import ErrorCode, KafkaError

    partition, start = (options.topic, options.partition), options.start_offset
    if start is None and options.producer_id is None:
        raise Failed(
            "The transaction to abort must be identified either with --start-offset (for brokers on 3.0 or above) or"
            " with --producer-id, --producer-epoch, and --coordinator-epoch (for older brokers)"
        )
    if start is None:
        for flag in ("producer_epoch", "coordinator_epoch"):
            if getattr(options, flag) is None:
                raise Failed(f"Missing required argument --{flag.replace('_', '-')}")
    by_hand = {
        "producer_id": options.producer_id,
        "producer_epoch": options.producer_epoch,
        "coordinator_epoch": options.coordinator_epoch,
    }
    try:
        if start is None:
            admin.abort_transaction(partition, **by_hand)
        else:
            admin.abort_transaction(partition, start_offset=start)
    except KafkaError as error:
        where = f"{options.topic}-{options.partition}"
        if start is not None and error.code is ErrorCode.INVALID_TXN_STATE:
            raise Failed(
                f"Could not find any open transactions starting at offset {start} on partition {where}"
            ) from error
        raise _failed(f"Failed to abort transaction of partition {where}", error) from error


def _find_hanging(admin: Admin, options: argparse.Namespace) -> None:
    if options.topic is None and options.broker_id is None:
        raise Failed(
            "The `find-hanging` command requires either --topic or --broker-id to limit the scope of the search"
        )
    if options.partition is not None and options.topic is None:
        raise Failed("The --partition argument requires --topic to be provided")
    found = admin.find_hanging_transactions(
        None if options.partition is None else [(options.topic, options.partition)],
        topic=options.topic if options.partition is None else None,
        broker_id=options.broker_id,
        max_transaction_timeout_ms=options.max_transaction_timeout * MINUTE_MS,
    )
    now = _now_ms()
    rows = [
        (
            *(each.partition.topic, each.partition.partition, each.producer_id, each.producer_epoch),
            -1 if each.coordinator_epoch is None else each.coordinator_epoch,
            *(each.start_offset, each.last_timestamp, (now - each.last_timestamp) // MINUTE_MS),
        )
        for each in found
    ]
    headers = ("Topic", "Partition", "ProducerId", "ProducerEpoch", "CoordinatorEpoch", "StartOffset")
    print_table((*headers, "LastTimestamp", "Duration(min)"), rows)
