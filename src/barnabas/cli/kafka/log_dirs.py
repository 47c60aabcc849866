"""`kafka-log-dirs.sh`: what the log directories of brokers hold, as one line of JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from barnabas.cli.exit_status import FAILED
from barnabas.cli.kafka.failures import FailureReport, with_admin
from barnabas.cli.kafka.flags import CONNECTION, Flag, Options, Tool, WrongUse

if TYPE_CHECKING:
    from barnabas.client.admin import Admin
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


def _run(admin: Admin, options: Options) -> int | None:
    topics = {each for each in options.value("topic-list").split(",") if each}
    wanted = _broker_ids(options.value("broker-list"))
    existing = [broker.node.id for broker in admin.describe_cluster().brokers]
    missing = [each for each in wanted if each not in existing]
    if missing:
        print(
            f"ERROR: The given brokers do not exist from --broker-list: {_listed(missing)}."
            f" Current existent brokers: {_listed(existing)}",
            file=sys.stderr,
        )
        return FAILED
    print("Querying brokers for log directories information")
    found = admin.describe_log_dirs(wanted or existing)
    print(f"Received log directory information from brokers {_listed(sorted(found))}")
    brokers = [{"broker": broker_id, "logDirs": _directories(found[broker_id], topics)} for broker_id in sorted(found)]
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
                for (topic, partition), replica in sorted(found.replicas.items())
                if not topics or topic in topics
            ],
            "error": exception_name(found.error) if found.error is not None else None,
            "logDir": path,
        }
        for path, found in directories.items()
    ]


main = TOOL.main(lambda options: options.require("bootstrap-server", "describe"), with_admin(_run, FailureReport()))
