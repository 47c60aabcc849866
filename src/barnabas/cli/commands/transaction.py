"""`barnabas transaction`: list and describe transactions, the producers of partitions, and ending what hangs."""

import argparse
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from barnabas.cli.command import Command, UsageError, check_words, noun_main, with_admin
from barnabas.cli.commands.partition import partition_of
from barnabas.cli.numbers import int16, int32, int64, partition
from barnabas.cli.output import Output, Table, moment
from barnabas.cli.times import duration_ms
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    from barnabas.client.admin import Admin
    from barnabas.client.admin.types import (
        HangingTransaction,
        ProducerState,
        TransactionDescription,
        TransactionListing,
    )


def list_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--state", action="append", default=[], help="only in this state: Ongoing, ... (repeatable)")
    parser.add_argument("--producer-id", type=int64, action="append", default=[], help="only of this id (repeatable)")
    parser.add_argument("--longer-than", metavar="HOW-LONG", help="only open for longer: 90s, 15m, 2h")
    parser.add_argument("--pattern", metavar="REGEX", help="only ids that match (RE2; brokers from 4.1 on)")


def list_transactions(admin: "Admin", options: argparse.Namespace) -> "list[TransactionListing]":
    from barnabas.client.admin.types import TransactionState

    check_words(options.state, TransactionState, "--state")
    longer = None if options.longer_than is None else duration_ms(options.longer_than, "--longer-than")
    found = admin.list_transactions(
        states=options.state,
        producer_ids=options.producer_id,
        longer_than_ms=longer,
        transactional_id_pattern=options.pattern,
    )
    return list(found.values())


def render_transactions(options: argparse.Namespace, found: "list[TransactionListing]") -> Output:
    rows = [(each.transactional_id, each.coordinator_id, each.producer_id, each.state) for each in found]
    return Output(found, [Table(["TRANSACTIONAL-ID", "COORDINATOR", "PRODUCER-ID", "STATE"], rows)])


def describe_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ids", metavar="TRANSACTIONAL-ID", nargs="+")


def describe(admin: "Admin", options: argparse.Namespace) -> "list[TransactionDescription]":
    return list(admin.describe_transactions(options.ids).values())


def render_descriptions(options: argparse.Namespace, found: "list[TransactionDescription]") -> Output:
    now_ms = int(time.time() * 1000)
    rows = [
        (
            each.transactional_id,
            each.coordinator_id,
            each.producer_id,
            each.producer_epoch,
            each.state,
            each.transaction_timeout_ms,
            moment(each.start_time_ms),
            None if each.start_time_ms is None else now_ms - each.start_time_ms,
            sorted(map(str, each.partitions)),
        )
        for each in found
    ]
    headers = ["TRANSACTIONAL-ID", "COORDINATOR", "PRODUCER-ID", "EPOCH", "STATE", "TIMEOUT-MS", "STARTED", "OPEN-MS"]
    return Output(found, [Table([*headers, "PARTITIONS"], rows)])


def producers_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("partition", metavar="TOPIC:PARTITION")
    parser.add_argument("--broker", type=int32, metavar="ID", help="ask this replica instead of the leader")


def producers(admin: "Admin", options: argparse.Namespace) -> "Sequence[ProducerState]":
    key = partition_of(options.partition)
    return admin.describe_producers([key], broker_id=options.broker)[key]


def render_producers(options: argparse.Namespace, found: "Sequence[ProducerState]") -> Output:
    rows = [
        (
            each.producer_id,
            each.producer_epoch,
            each.coordinator_epoch,
            each.last_sequence,
            moment(each.last_timestamp),
            each.current_transaction_start_offset,
        )
        for each in found
    ]
    headers = ["PRODUCER-ID", "EPOCH", "COORDINATOR-EPOCH", "LAST-SEQUENCE", "LAST-TIMESTAMP", "OPEN-SINCE-OFFSET"]
    return Output(found, [Table(headers, rows)])


def find_hanging_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--topic", help="search this topic")
    parser.add_argument("--partition", type=partition, metavar="N", help="only this partition of it")
    parser.add_argument("--broker", type=int32, metavar="ID", help="search what this broker holds")
    parser.add_argument(
        "--max-transaction-timeout", metavar="HOW-LONG", default="15m", help="the longest any may take (default 15m)"
    )


def find_hanging(admin: "Admin", options: argparse.Namespace) -> "Sequence[HangingTransaction]":
    if options.topic is None and options.broker is None:
        raise UsageError("limit the search with --topic or --broker")
    if options.partition is not None and options.topic is None:
        raise UsageError("--partition needs --topic")
    one = None if options.partition is None else [TopicPartition(options.topic, options.partition)]
    limit_ms = duration_ms(options.max_transaction_timeout, "--max-transaction-timeout")
    return admin.find_hanging_transactions(
        one, topic=options.topic, broker_id=options.broker, max_transaction_timeout_ms=limit_ms
    )


def render_hanging(options: argparse.Namespace, found: "Sequence[HangingTransaction]") -> Output:
    rows = [
        (
            each.partition.topic,
            each.partition.partition,
            each.producer_id,
            each.producer_epoch,
            each.coordinator_epoch,
            each.start_offset,
            moment(each.last_timestamp),
            each.transactional_id,
        )
        for each in found
    ]
    headers = ["TOPIC", "PARTITION", "PRODUCER-ID", "EPOCH", "COORDINATOR-EPOCH", "START-OFFSET", "LAST-TIMESTAMP"]
    return Output(found, [Table([*headers, "TRANSACTIONAL-ID"], rows)])


def abort_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("partition", metavar="TOPIC:PARTITION")
    parser.add_argument("--start-offset", type=int64, metavar="N", help="where the transaction starts in the partition")
    parser.add_argument("--producer-id", type=int64, metavar="ID", help="or its producer, with the two epochs")
    parser.add_argument("--producer-epoch", type=int16, metavar="N")
    parser.add_argument("--coordinator-epoch", type=int32, metavar="N")


def abort(admin: "Admin", options: argparse.Namespace) -> TopicPartition:
    if (options.start_offset is None) == (options.producer_id is None):
        raise UsageError("give --start-offset, or --producer-id with --producer-epoch and --coordinator-epoch")
    if options.producer_id is not None and options.producer_epoch is None:
        raise UsageError("--producer-id needs --producer-epoch (barnabas transaction producers shows it)")
    key = partition_of(options.partition)
    admin.abort_transaction(
        key,
        start_offset=options.start_offset,
        producer_id=options.producer_id,
        producer_epoch=options.producer_epoch,
        coordinator_epoch=options.coordinator_epoch,
    )
    return key


def render_aborted(options: argparse.Namespace, key: TopicPartition) -> Output:
    done = {"topic": key.topic, "partition": key.partition, "aborted": True}
    return Output([done], [f"aborted the transaction in {key}"])


VERBS = (
    Command("list", "list transactions", list_arguments, with_admin(list_transactions), render_transactions),
    Command(
        "describe",
        "show state and partitions of transactions",
        describe_arguments,
        with_admin(describe),
        render_descriptions,
    ),
    Command(
        "producers",
        "show the producers that a partition remembers",
        producers_arguments,
        with_admin(producers),
        render_producers,
    ),
    Command(
        "find-hanging",
        "look for transactions that nobody will end",
        find_hanging_arguments,
        with_admin(find_hanging),
        render_hanging,
    ),
    Command("abort", "end a transaction that hangs in a partition", abort_arguments, with_admin(abort), render_aborted),
)

main = noun_main("transaction", "Transactions and the producers behind them.", VERBS)
