"""`kafka-delete-records.sh`: deletes the records of partitions before the offsets of a JSON file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.cli.command import Refused
from barnabas.cli.kafka.failures import FailureReport, with_admin
from barnabas.cli.kafka.flags import CONNECTION, Flag, Options, Tool, integer, long

if TYPE_CHECKING:
    from barnabas.client.admin import Admin
    from barnabas.errors import KafkaError
    from barnabas.types import TopicPartition

TOOL = Tool(
    "kafka-delete-records.sh",
    "This tool helps to delete records of the given partitions down to the specified offset.",
    (
        *CONNECTION,
        Flag(
            "offset-json-file",
            'Offsets: {"partitions": [{"topic": "foo", "partition": 1, "offset": 1}], "version": 1}',
            "FILE",
        ),
    ),
)


def _run(admin: Admin, options: Options) -> None:
    _delete(admin, _offsets(_content(options.value("offset-json-file"))))


def _delete(admin: Admin, offsets: dict[TopicPartition, int]) -> None:
    from barnabas.cli.kafka.connection import kafka_exception
    from barnabas.client.admin import AdminError

    print("Executing records delete operation")
    failed: dict[TopicPartition, KafkaError] = {}
    try:
        marks = admin.delete_records(offsets) if offsets else {}
    except AdminError as error:
        marks, failed = error.results, error.errors
    print("Records delete operation completed:")
    for key in offsets:
        if key in failed:
            print(f"partition: {key.topic}-{key.partition}\terror: {kafka_exception(failed[key])}")
        else:
            print(f"partition: {key.topic}-{key.partition}\tlow_watermark: {marks[key]}")


def _content(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise Refused(str(error)) from None
    except UnicodeDecodeError:
        raise Refused("The input string is not a valid JSON") from None


def _offsets(text: str) -> dict[TopicPartition, int]:
    from barnabas.types import TopicPartition

    try:
        given = json.loads(text)
    except ValueError:
        raise Refused("The input string is not a valid JSON") from None
    if not isinstance(given, dict) or "partitions" not in given:
        raise Refused("Missing partitions field")
    if given.get("version", 1) != 1:
        raise Refused(f"Not supported version field value {given['version']}")
    try:
        rows = [
            (TopicPartition(row["topic"], integer(row["partition"])), long(row["offset"]))
            for row in given["partitions"]
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise Refused(f"No such field exists: {error}") from None
    keys = [key for key, _ in rows]
    twice = sorted({key for key in keys if keys.count(key) > 1})
    if twice:
        listed = ",".join(f"{topic}-{partition}" for topic, partition in twice)
        raise Refused(f"Offset json file contains duplicate topic partitions: {listed}")
    return dict(rows)


main = TOOL.main(
    lambda options: options.require("bootstrap-server", "offset-json-file"),
    with_admin(_run, FailureReport(also=(Refused,))),
)
