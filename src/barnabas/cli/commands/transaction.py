"""`barnabas transaction`: list and describe transactions, the producers of partitions, and ending what hangs."""

import argparse
import time
from collections.abc import Sequence

from barnabas.cli.command import UsageError, Verb, add_json_argument, check_words, run
from barnabas.cli.commands.partition import partition_of
from barnabas.cli.numbers import int16, int32, int64, partition
from barnabas.cli.output import moment, print_done, print_json, print_table
from barnabas.cli.times import duration_ms
from barnabas.types import TopicPartition


def main(arguments: Sequence[str]) -> int:
    return run("transaction", "Transactions and the producers behind them.", VERBS, arguments)


def list_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--state", action="append", default=[], help="only in this state: Ongoing, ... (repeatable)")
    parser.add_argument("--producer-id", type=int64, action="append", default=[], help="only of this id (repeatable)")
    parser.add_argument("--longer-than", metavar="HOW-LONG", help="only open for longer: 90s, 15m, 2h")
    parser.add_argument("--pattern", metavar="REGEX", help="only ids that match (RE2; brokers from 4.1 on)")
    add_json_argument(parser)


def list_transactions(options: argparse.Namespace) -> None:
    from barnabas.cli.connection import admin_client
    from barnabas.client.admin.types import TransactionState

    check_words(options.state, TransactionState, "--state")
    longer = None if options.longer_than is None else duration_ms(options.longer_than, "--longer-than")
    with admin_client(options) as admin:
        found = admin.list_transactions(
            states=options.state,
            producer_ids=options.producer_id,
            longer_than_ms=longer,
            transactional_id_pattern=options.pattern,
        )
    if options.json:
        print_json(list(found.values()))
    else:
        rows = [(each.transactional_id, each.coordinator_id, each.producer_id, each.state) for each in found.values()]
        print_table(["TRANSACTIONAL-ID", "COORDINATOR", "PRODUCER-ID", "STATE"], rows)


def describe_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ids", metavar="TRANSACTIONAL-ID", nargs="+")
    add_json_argument(parser)


def describe(options: argparse.Namespace) -> None:
    from barnabas.cli.connection import admin_client

    with admin_client(options) as admin:
        found = admin.describe_transactions(options.ids)
    if options.json:
        print_json(list(found.values()))
        return
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
        for each in found.values()
    ]
    headers = ["TRANSACTIONAL-ID", "COORDINATOR", "PRODUCER-ID", "EPOCH", "STATE", "TIMEOUT-MS", "STARTED", "OPEN-MS"]
    print_table([*headers, "PARTITIONS"], rows)


def producers_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("partition", metavar="TOPIC:PARTITION")
    parser.add_argument("--broker", type=int32, metavar="ID", help="ask this replica instead of the leader")
    add_json_argument(parser)


def producers(options: argparse.Namespace) -> None:
    from barnabas.cli.connection import admin_client

    key = partition_of(options.partition)
    with admin_client(options) as admin:
        found = admin.describe_producers([key], broker_id=options.broker)[key]
    if options.json:
        print_json(found)
        return
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
    print_table(headers, rows)


def find_hanging_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--topic", help="search this topic")
    parser.add_argument("--partition", type=partition, metavar="N", help="only this partition of it")
    parser.add_argument("--broker", type=int32, metavar="ID", help="search what this broker holds")
    parser.add_argument(
        "--max-transaction-timeout", metavar="HOW-LONG", default="15m", help="the longest any may take (default 15m)"
    )
    add_json_argument(parser)


def find_hanging(options: argparse.Namespace) -> None:
    from barnabas.cli.connection import admin_client

    if options.topic is None and options.broker is None:
        raise UsageError("limit the search with --topic or --broker")
    if options.partition is not None and options.topic is None:
        raise UsageError("--partition needs --topic")
    one = None if options.partition is None else [TopicPartition(options.topic, options.partition)]
    limit_ms = duration_ms(options.max_transaction_timeout, "--max-transaction-timeout")
    with admin_client(options) as admin:
        found = admin.find_hanging_transactions(
            one, topic=options.topic, broker_id=options.broker, max_transaction_timeout_ms=limit_ms
        )
    if options.json:
        print_json(found)
        return
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
    print_table([*headers, "TRANSACTIONAL-ID"], rows)


def abort_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("partition", metavar="TOPIC:PARTITION")
    parser.add_argument("--start-offset", type=int64, metavar="N", help="where the transaction starts in the partition")
    parser.add_argument("--producer-id", type=int64, metavar="ID", help="or its producer, with the two epochs")
    parser.add_argument("--producer-epoch", type=int16, metavar="N")
    parser.add_argument("--coordinator-epoch", type=int32, metavar="N")
    add_json_argument(parser)


def abort(options: argparse.Namespace) -> None:
    from barnabas.cli.connection import admin_client

    if (options.start_offset is None) == (options.producer_id is None):
        raise UsageError("give --start-offset, or --producer-id with --producer-epoch and --coordinator-epoch")
    if options.producer_id is not None and options.producer_epoch is None:
        raise UsageError("--producer-id needs --producer-epoch (barnabas transaction producers shows it)")
    key = partition_of(options.partition)
    with admin_client(options) as admin:
        admin.abort_transaction(
            key,
            start_offset=options.start_offset,
            producer_id=options.producer_id,
            producer_epoch=options.producer_epoch,
            coordinator_epoch=options.coordinator_epoch,
        )
    done = {"topic": key.topic, "partition": key.partition, "aborted": True}
    print_done(options, [done], [f"aborted the transaction in {key}"])


VERBS = (
    Verb("list", "list transactions", list_arguments, list_transactions),
    Verb("describe", "show state and partitions of transactions", describe_arguments, describe),
    Verb("producers", "show the producers that a partition remembers", producers_arguments, producers),
    Verb("find-hanging", "look for transactions that nobody will end", find_hanging_arguments, find_hanging),
    Verb("abort", "end a transaction that hangs in a partition", abort_arguments, abort),
)
