"""Records of the coordinators' logs, and the consumer protocol: Kafka's own classes read and rewrite our bytes."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from message_values import MessageValues

from barnabas.protocol import decode, encode
from barnabas.protocol.messages import (
    consumer_group_records,
    consumer_protocol,
    group_metadata_record,
    offset_commit_record,
    transaction_log_record,
)

JARS = Path(__file__).parents[2] / ".build" / "kafka"
SOURCE = Path(__file__).parent / "java" / "CoordinatorRecords.java"
PACKAGES = {
    consumer_group_records: "org.apache.kafka.coordinator.group.generated",
    consumer_protocol: "org.apache.kafka.common.message",
    group_metadata_record: "org.apache.kafka.coordinator.group.generated",
    offset_commit_record: "org.apache.kafka.coordinator.group.generated",
    transaction_log_record: "org.apache.kafka.coordinator.transaction.generated",
}


def _samples() -> list[tuple[str, type[Any], int, Any]]:
    found = []
    for module, package in PACKAGES.items():
        for cls in vars(module).values():
            # Parts of messages have a schema too, but no versions of their own.
            if not hasattr(cls, "__schema__") or cls.__schema__.max_version > 99:
                continue
            for version in range(cls.__schema__.min_version, cls.__schema__.max_version + 1):
                for fill in (0.0, 0.5, 0.8, 1.0):
                    made = MessageValues(f"{cls.__name__} v{version} {fill}", fill).message(cls, version)
                    found.append((f"{package}.{cls.__name__}", cls, version, made))
    return found


def _field_names(text: str) -> list[str]:
    """The outermost field names in the text form that Kafka gives a message, in our spelling."""
    names, depth = [], 0
    for match in re.finditer(r"[(\[]|[)\]]|(?<=[( ])(\w+)=", text):
        if match[1] and depth == 1:
            names.append(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", match[1]).lower())
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(match[0], 0)
    return names


@pytest.mark.java
def test_kafka_reads_and_writes_the_same_bytes() -> None:
    if shutil.which("java") is None or not list(JARS.glob("kafka-group-coordinator-4*.jar")):
        pytest.skip("no java, or no jars of Apache Kafka in .build/kafka (tests/foreign/install.sh gets them)")
    samples = _samples()
    lines = [f"{name} {version} {encode(made, version).hex()}" for name, _, version, made in samples]
    response = subprocess.run(
        ["java", "-cp", f"{JARS}/*", str(SOURCE)], input="\n".join(lines), capture_output=True, text=True, check=False
    )
    assert response.returncode == 0, response.stderr
    responses = response.stdout.splitlines()
    assert len(responses) == len(samples) == 4 * 37
    for (name, cls, version, made), line, reply in zip(samples, lines, responses, strict=True):
        encoded, left_over, text = reply.split(" ", 2)
        assert (encoded, left_over) == (line.split(" ")[2], "0"), f"{name} v{version} {made}"
        assert decode(cls, version, bytes.fromhex(encoded))[0] == made
        assert _field_names(text) == list(cls.__schema__.fields)


def test_every_version_comes_back_equal() -> None:
    for name, cls, version, made in _samples():
        encoded = encode(made, version)
        assert decode(cls, version, encoded) == (made, len(encoded)), f"{name} v{version}"
