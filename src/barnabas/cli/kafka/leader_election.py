"""`kafka-leader-election.sh`: gives partitions back to their preferred leaders, or a leader to those without any."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.cli.exit_status import FAILED
from barnabas.cli.kafka.flags import CONNECTION, Flag, Options, Tool, WrongUse, integer

if TYPE_CHECKING:
    from barnabas.client.admin import Admin
    from barnabas.errors import KafkaError
    from barnabas.types import TopicPartition

SCOPES = ("topic", "all-topic-partitions", "path-to-json-file")
THIRTY_SECONDS_MS = 30_000


def election_type(word: str) -> str:
    if word.lower() not in ("preferred", "unclean"):
        raise ValueError(word)
    return word.lower()


TOOL = Tool(
    "kafka-leader-election.sh",
    "This tool attempts to elect a new leader for a set of topic partitions. The type of elections supported are"
    " preferred replicas and unclean replicas.",
    (
        *CONNECTION,
        Flag(
            "election-type", "preferred, or unclean: a replica that is not in sync if need be.", "TYPE", election_type
        ),
        Flag("topic", "The topic of the partition.", "TOPIC"),
        Flag("partition", "The partition of the topic.", "NUMBER", integer),
        Flag("all-topic-partitions", "All partitions."),
        Flag("path-to-json-file", '{"partitions": [{"topic": "foo", "partition": 1}]}', "FILE"),
    ),
)


def _check(options: Options) -> None:
    missing = [flag for flag in ("bootstrap-server", "election-type") if not options.has(flag)]
    if missing:
        raise WrongUse(f"Missing required option(s): {', '.join(missing)}")
    if len(options.given_of(*SCOPES)) != 1:
        raise WrongUse(f"One and only one of the following options is required: {', '.join(SCOPES)}")
    if options.has("topic") and not options.has("partition"):
        raise WrongUse("Missing required option(s): partition")
    if options.has("partition") and not options.has("topic"):
        raise WrongUse("Option partition is only allowed if topic is used")


def _run(options: Options) -> int | None:
    from barnabas.cli.kafka.connection import admin_client, kafka_exception
    from barnabas.errors import ErrorCode, KafkaError

    kind: str = options.value("election-type")
    partitions = _partitions(options)
    try:
        with admin_client(options, THIRTY_SECONDS_MS) as admin:
            elected, unneeded, failed = _elect(admin, kind, partitions)
    except KafkaError as error:
        text = {
            ErrorCode.REQUEST_TIMED_OUT: "Timeout waiting for election results",
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED: "Not authorized to perform leader election",
        }.get(error.code)
        if text:
            print(text)
        print(text or kafka_exception(error), file=sys.stderr)
        return FAILED
    if elected:
        print(f"Successfully completed leader election ({kind.upper()}) for partitions {_listed(elected)}")
    if unneeded:
        print(f"Valid replica already elected for partitions {_listed(unneeded)}")
    for (topic, partition), failure in failed.items():
        where = f"({kind.upper()}) for partition: {topic}-{partition}"
        print(f"Error completing leader election {where}: {kafka_exception(failure)}")
    if failed:
        print(f"{len(failed)} replica(s) could not be elected", file=sys.stderr)
        return FAILED
    return None


def _elect(
    admin: Admin, kind: str, partitions: list[TopicPartition] | None
) -> tuple[list[TopicPartition], list[TopicPartition], dict[TopicPartition, KafkaError]]:
    """Those that got a leader, those whose leader was the right one, and those that failed."""
    from barnabas.client.admin import AdminError

    failed: dict[TopicPartition, KafkaError] = {}
    try:
        done = admin.elect_leaders(partitions, election_type="preferred" if kind == "preferred" else "unclean")
    except AdminError as error:
        done, failed = error.results, error.errors
    return [key for key, moved in done.items() if moved], [key for key, moved in done.items() if not moved], failed


def _listed(partitions: Iterable[TopicPartition]) -> str:
    return ", ".join(f"{topic}-{partition}" for topic, partition in partitions)


def _partitions(options: Options) -> list[TopicPartition] | None:
    from barnabas.types import TopicPartition

    if options.has("topic"):
        return [TopicPartition(options.value("topic"), options.value("partition"))]
    if not options.has("path-to-json-file"):
        return None
    try:
        given = json.loads(Path(options.value("path-to-json-file")).read_text(encoding="utf-8"))
        rows = [TopicPartition(row["topic"], integer(row["partition"])) for row in given["partitions"]]
    except OSError as error:
        raise WrongUse(str(error)) from None
    except ValueError:
        raise WrongUse("Replica election data is empty") from None
    except (KeyError, TypeError):
        raise WrongUse('Replica election data is missing "partitions" field') from None
    twice = sorted({row for row in rows if rows.count(row) > 1})
    if twice:
        raise WrongUse(f"Replica election data contains duplicate partitions: [{_listed(twice)}]")
    return rows


main = TOOL.main(_check, _run)
