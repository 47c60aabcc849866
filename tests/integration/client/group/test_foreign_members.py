"""Our consumer in one group with librdkafka's, kafka-python's and aiokafka's, leading it or being led."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from barnabas_members import OurMember, poll_until_shared
from foreign_members import foreign_member

COMPANY = [
    pytest.param("confluent", "range", marks=pytest.mark.soak),
    ("confluent", "roundrobin"),
    ("confluent", "cooperative-sticky"),
    ("confluent", "kip848"),
    ("kafka-python", "range"),
    ("kafka-python", "sticky"),
    pytest.param("kafka-python", "cooperative-sticky", marks=pytest.mark.soak),
    pytest.param("aiokafka", "roundrobin", marks=pytest.mark.soak),
    ("aiokafka", "sticky"),
]


def options_of(strategy: str) -> dict[str, Any]:
    if strategy == "kip848":
        return {"group_protocol": "consumer"}
    return {"partition_assignment_strategy": [strategy]}


@pytest.mark.parametrize(("client", "strategy"), COMPANY)
def test_led_by_another_client(
    bootstrap: str, join: Callable[..., OurMember], topic: str, client: str, strategy: str
) -> None:
    foreign = foreign_member(client, bootstrap, topic, topic, strategy)
    try:
        poll_until_shared([foreign], topic, 4)
        ours = join(**options_of(strategy))
        poll_until_shared([foreign, ours], topic, 4)
    finally:
        foreign.close()
    poll_until_shared([ours], topic, 4)
    assert not ours.diary.of("lost")


@pytest.mark.parametrize(("client", "strategy"), COMPANY)
def test_leading_another_client(
    bootstrap: str, join: Callable[..., OurMember], topic: str, client: str, strategy: str
) -> None:
    first, second = join(**options_of(strategy)), join(**options_of(strategy))
    poll_until_shared([first, second], topic, 4)
    foreign = foreign_member(client, bootstrap, topic, topic, strategy)
    try:
        poll_until_shared([first, second, foreign], topic, 4)
        second.close()
        poll_until_shared([first, foreign], topic, 4)
        first.close()
        poll_until_shared([foreign], topic, 4)
    finally:
        foreign.close()
