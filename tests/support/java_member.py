"""A member of a consumer group with Kafka's Java client: its VerifiableConsumer as a process, read line by line."""

from __future__ import annotations

import json
import subprocess
import threading
from pathlib import Path
from typing import Any

from kafka_process import JARS, tool_command

# Kafka's 3 seconds are as long as a classic member takes to hear of a rebalance. KIP-848 lets the broker say.
SETTINGS = "heartbeat.interval.ms=200\n"


def _quick_settings() -> Path:
    path = JARS.parent / "java-member.properties"
    if not path.exists():
        path.write_text(SETTINGS)
    return path


class JavaMember:
    """`owned` is what it said last; `events` all that it said. Kill it, or close it to let it leave the group."""

    def __init__(self, bootstrap: str, group: str, topic: str, *options: str, protocol: str = "classic") -> None:
        options = (*options, "--group-protocol", protocol)
        if protocol == "classic":
            options = (*options, "--consumer.config", str(_quick_settings()))
        command = tool_command(
            "org.apache.kafka.tools.VerifiableConsumer",
            *("--bootstrap-server", bootstrap, "--group-id", group, "--topic", topic),
            *("--reset-policy", "earliest", *options),
            classes_like="org.apache.kafka.tools.consumer.ConsoleConsumer",
        )
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.events: list[dict[str, Any]] = []
        self.output: list[str] = []
        self.owned: set[tuple[str, int]] = set()
        self.consumed = 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def close(self) -> None:
        self.process.terminate()
        self._end()

    def kill(self) -> None:
        self.process.kill()
        self._end()

    def _end(self) -> None:
        self.process.wait(30)
        self._reader.join(30)
        if self.process.stdout is not None:
            self.process.stdout.close()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.output.append(line)
            try:
                event = json.loads(line)
            except ValueError:
                continue
            self.events.append(event)
            partitions = {(each["topic"], each["partition"]) for each in event.get("partitions", ()) if "topic" in each}
            if event["name"] == "partitions_assigned":
                self.owned = self.owned | partitions
            elif event["name"] == "partitions_revoked":
                self.owned = self.owned - partitions
            elif event["name"] == "records_consumed":
                self.consumed += event["count"]
