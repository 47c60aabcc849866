"""`kafka-log-dirs.sh`: what the log directories of brokers hold, as one line of JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from barnabas.cli.kafka.flags import CONNECTION, FAILED, Flag, Options, Tool, WrongUse

if TYPE_CHECKING:
    from barnabas.client.admin.types import LogDirDescription

TOOL = Tool(
    "kafka-log-dirs.sh",
    "This tool helps to query log directory usage on the specified brokers.",
    (
        *CONNECTION,
        Flag("describe", "Describe log directories (required)."),
        Flag("topic-list", "Only these topics.", "TOPIC,...", default=""),
        Flag("broker-list", "Only these brokers.", "ID,...", default=""),
    ),
)


def main(arguments: Sequence[str] | None = None) -> int:
    return TOOL.run(arguments, lambda options: options.require("bootstrap-server", "describe"), _run)


def _run(options: Options) -> int | None:
    from barnabas.cli.kafka.connection import admin_client, kafka_text
    from barnabas.errors import KafkaError

    topics = {each for each in options.value("topic-list").split(",") if each}
    asked = _broker_ids(options.value("broker-list"))
    try:
        with admin_client(options) as admin:
            there = [broker.node.id for broker in admin.describe_cluster().brokers]
            missing = [each for each in asked if each not in there]
            if missing:
                print(
                    f"ERROR: The given brokers do not exist from --broker-list: {_listed(missing)}."
                    f" Current existent brokers: {_listed(there)}",
                    file=sys.stderr,
                )
                return FAILED
            print("Querying brokers for log directories information")
            told = admin.describe_log_dirs(asked or there)
    except KafkaError as error:
        print(kafka_text(error), file=sys.stderr)
        return FAILED
    print(f"Received log directory information from brokers {_listed(sorted(told))}")
    brokers = [{"broker": broker_id, "logDirs": _directories(told[broker_id], topics)} for broker_id in sorted(told)]
    print(json.dumps({"brokers": brokers, "version": 1}, separators=(",", ":")))
    return None


def _broker_ids(text: str) -> list[int]:
    try:
        return sorted({int(each) for each in text.split(",") if each})
    except ValueError:
        raise WrongUse(f'For input string: "{text}"') from None


def _listed(brokers: Sequence[int]) -> str:
    return ",".join(map(str, brokers))


def _directories(directories: Mapping[str, LogDirDescription], topics: set[str]) -> list[dict[str, Any]]:
    from barnabas.cli.kafka.connection import exception_name

    return [
        {
            "partitions": [
                {
                    "partition": f"{topic}-{partition}",
                    "size": replica.size,
                    "offsetLag": replica.offset_lag,
                    "isFuture": replica.is_future,
                }
                for (topic, partition), replica in sorted(told.replicas.items())
                if not topics or topic in topics
            ],
            "error": exception_name(told.error) if told.error is not None else None,
            "logDir": path,
        }
        for path, told in directories.items()
    ]
