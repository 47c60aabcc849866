"""`kafka-transactions.sh`: which transactions there are, what their producers do, and ending those that hang."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.cli.command import Command, Refused
from barnabas.cli.kafka.flags import integer, long, short
from barnabas.cli.kafka.subcommands import print_table, tool_main, with_admin

if TYPE_CHECKING:
    from barnabas.client.admin import Admin
    from barnabas.errors import KafkaError

MINUTE_MS = 60_000
DETAIL = "Enable debug logging for additional detail."


def list_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--duration-filter", metavar="MS", type=long, help="only those that run longer")
    parser.add_argument("--transactional-id-pattern", metavar="REGEX", help="only ids that match")


def describe_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--transactional-id", required=True)


def partition_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--topic", required=True)
    parser.add_argument("--partition", type=integer, required=True)


def producers_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--broker-id", type=integer, help="ask this replica instead of the leader")
    partition_arguments(parser)


def abort_arguments(parser: argparse.ArgumentParser) -> None:
    partition_arguments(parser)
    parser.add_argument("--start-offset", type=long, help="where the transaction begins (brokers since 3.0)")
    for flag, kind in (("--producer-id", long), ("--producer-epoch", short), ("--coordinator-epoch", integer)):
        parser.add_argument(flag, type=kind, help="for older brokers, all three of them")


def hanging_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--broker-id", type=integer, help="search what this broker holds")
    parser.add_argument("--topic", help="search this topic")
    parser.add_argument("--partition", type=integer, help="only this partition of the topic")
    parser.add_argument("--max-transaction-timeout", metavar="MINUTES", type=integer, default=15)


def on_brokers(
    call: Callable[[Admin, argparse.Namespace], None],
) -> Callable[[argparse.Namespace], int | None]:
    """Controllers know nothing of transactions."""
    connected = with_admin(call)

    def checked(options: argparse.Namespace) -> int | None:
        if not options.bootstrap_server:
            raise Refused("kafka-transactions.sh: error: argument --bootstrap-server is required")
        return connected(options)

    return checked


def _failed(what: str, error: KafkaError) -> Refused:
    from barnabas.cli.kafka.connection import kafka_text

    return Refused(f"{what}: {kafka_text(error)}. {DETAIL}")


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
        found = admin.describe_transaction(name)
    except KafkaError as error:
        raise _failed(f"Failed to describe transaction state of transactional-id `{name}`", error) from error
    start = found.start_time_ms
    row = (
        *(
            found.coordinator_id,
            name,
            found.producer_id,
            found.producer_epoch,
            found.state,
            found.transaction_timeout_ms,
        ),
        *((start, _now_ms() - start) if start is not None else ("None", "None")),
        ",".join(f"{topic}-{partition}" for topic, partition in sorted(found.partitions)),
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
        raise _failed(what, error) from error
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
        raise Refused(
            "The transaction to abort must be identified either with --start-offset (for brokers on 3.0 or above) or"
            " with --producer-id, --producer-epoch, and --coordinator-epoch (for older brokers)"
        )
    if start is None:
        for flag in ("producer_epoch", "coordinator_epoch"):
            if getattr(options, flag) is None:
                raise Refused(f"Missing required argument --{flag.replace('_', '-')}")
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
            raise Refused(
                f"Could not find any open transactions starting at offset {start} on partition {where}"
            ) from error
        raise _failed(f"Failed to abort transaction of partition {where}", error) from error


def _find_hanging(admin: Admin, options: argparse.Namespace) -> None:
    if options.topic is None and options.broker_id is None:
        raise Refused(
            "The `find-hanging` command requires either --topic or --broker-id to limit the scope of the search"
        )
    if options.partition is not None and options.topic is None:
        raise Refused("The --partition argument requires --topic to be provided")
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


main = tool_main(
    "kafka-transactions.sh",
    "This tool is used to analyze the transactional state of producers in the cluster. It can be used to detect and"
    " recover from hanging transactions.",
    (
        Command("list", "list transactions", list_arguments, on_brokers(_list)),
        Command(
            "describe", "describe the state of an active transactional-id", describe_arguments, on_brokers(_describe)
        ),
        Command(
            "describe-producers",
            "describe the producers of a partition",
            producers_arguments,
            on_brokers(_describe_producers),
        ),
        Command(
            "abort",
            "abort a hanging transaction (requires administrative privileges)",
            abort_arguments,
            on_brokers(_abort),
        ),
        Command("find-hanging", "find hanging transactions", hanging_arguments, on_brokers(_find_hanging)),
    ),
)
