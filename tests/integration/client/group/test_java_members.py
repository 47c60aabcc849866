"""Our consumer in one group with Kafka's Java client, leading it or being led."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from barnabas_members import OurMember, poll_until_shared
from java_member import JavaMember

pytestmark = pytest.mark.java
PACKAGE = "org.apache.kafka.clients.consumer"
COMPANY: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "range": ({}, ("--assignment-strategy", f"{PACKAGE}.RangeAssignor")),
    "sticky": (
        {"partition_assignment_strategy": ["sticky"]},
        ("--assignment-strategy", f"{PACKAGE}.StickyAssignor"),
    ),
    "cooperative": (
        {"partition_assignment_strategy": ["cooperative-sticky"]},
        ("--assignment-strategy", f"{PACKAGE}.CooperativeStickyAssignor"),
    ),
    "kip848": ({"group_protocol": "consumer"}, ("--group-protocol", "consumer")),
}


class Java:
    """A process: it polls on its own."""

    def __init__(self, bootstrap: str, group: str, options: tuple[str, ...]) -> None:
        self.member = JavaMember(bootstrap, group, group, *options)

    @property
    def partitions(self) -> frozenset[tuple[str, int]]:
        return frozenset(self.member.owned)

    def poll(self, seconds: float = 0.02) -> None:
        time.sleep(seconds)

    def close(self) -> None:
        self.member.close()


@pytest.mark.parametrize("kind", COMPANY)
def test_with_the_java_client(bootstrap: str, join: Callable[..., OurMember], topic: str, kind: str) -> None:
    ours, theirs = COMPANY[kind]
    first = join(**ours)
    poll_until_shared([first], topic, 4)
    java = Java(bootstrap, topic, theirs)
    try:
        poll_until_shared([first, java], topic, 4)
        first.close()
        poll_until_shared([java], topic, 4)
        second = join(**ours)
        poll_until_shared([java, second], topic, 4)
    finally:
        java.close()
    poll_until_shared([second], topic, 4, timeout=60)
