"""Members of a group as processes, what they told, and who owned what when."""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

from raw_client import RawClient

from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest

PROGRAM = Path(__file__).parent / "churn_member.py"


class Ownership(NamedTuple):
    partition: int
    start: float
    end: float
    member: str


class MemberProcess:
    def __init__(
        self, directory: Path, name: str, bootstrap: str, group: str, topic: str, strategy: str, session_ms: int
    ) -> None:
        self.name = name
        self.said = directory / f"{name}.jsonl"
        self.silenced_at = float("inf")
        """When it was killed or frozen: from then on it owns nothing, whatever it believes."""
        with self.said.open("wb") as output:
            command = [sys.executable, str(PROGRAM), bootstrap, group, topic, strategy, str(session_ms)]
            self.process = subprocess.Popen(command, stdout=output, stdin=subprocess.DEVNULL)

    def events(self) -> list[dict[str, Any]]:
        """What it has told, up to the last line that is whole."""
        text = self.said.read_text()
        return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]

    def owned(self) -> set[int]:
        owned: set[int] = set()
        for event in self.events():
            if event["event"] == "assigned":
                owned |= set(event["partitions"])
            elif event["event"] in ("revoked", "lost"):
                owned -= set(event["partitions"])
        return owned

    def ownerships(self) -> list[Ownership]:
        since: dict[int, float] = {}
        done: list[Ownership] = []
        for event in self.events():
            if event["at"] > self.silenced_at:
                break
            if event["event"] == "assigned":
                since.update(dict.fromkeys(event["partitions"], event["at"]))
            elif event["event"] in ("revoked", "lost"):
                ended = [number for number in event["partitions"] if number in since]
                done += [Ownership(number, since.pop(number), event["at"], self.name) for number in ended]
        return done + [Ownership(number, start, self.silenced_at, self.name) for number, start in since.items()]

    def leave(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def freeze(self) -> None:
        self.silenced_at = time.monotonic()
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        self.silenced_at = min(self.silenced_at, time.monotonic())
        self.process.kill()
        self.process.wait(10)


def check_each_owned_once(members: list[MemberProcess]) -> None:
    """No partition had two owners at one time; an owner gives up before the next one begins."""
    everything = sorted(each for member in members for each in member.ownerships())
    for one, other in itertools.pairwise(everything):
        if one.partition == other.partition:
            assert one.end <= other.start, f"two owners: {one} and {other}"


def shared(members: list[MemberProcess], partitions: int) -> bool:
    """Whether each partition is owned once and nobody is idle who could have one."""
    owned = [member.owned() for member in members]
    everything = sorted(number for some in owned for number in some)
    return everything == list(range(partitions)) and sum(map(bool, owned)) == min(len(members), partitions)


def described(bootstrap: str, group: str) -> Any:
    with RawClient(bootstrap) as client:
        (response,) = client.ask(DescribeGroupsRequest(groups=[group]), 5).groups
    return response
