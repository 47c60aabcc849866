"""The ways out of a consumer when something comes in between: a wake-up, an assignment nobody has seen, a fork."""

from __future__ import annotations

import gc
import logging
import os
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from eventually import eventually

from barnabas import Consumer
from barnabas.client.consumer.hooks import RebalanceListener
from barnabas.client.errors import IllegalStateError
from barnabas.types import TopicPartition

PROTOCOLS: list[dict[str, Any]] = [{"group_protocol": "classic"}, {"group_protocol": "consumer"}]
both = pytest.mark.parametrize("options", PROTOCOLS, ids=["classic", "kip848"])


def members_of(judge: AdminClient, group: str) -> int:
    return len(judge.describe_consumer_groups([group])[group].result(10).members)


def poll_until_assigned(consumer: Consumer) -> None:
    eventually(lambda: consumer.poll(0.05) or consumer.assignment(), timeout=30)


class WakesUp(RebalanceListener):
    def __init__(self, consumer: Consumer) -> None:
        self._consumer = consumer

    def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        self._consumer.wakeup()


@both
def test_a_wake_up_does_not_keep_a_consumer_from_leaving(
    bootstrap: str, judge: AdminClient, topic: str, options: dict[str, Any]
) -> None:
    consumer = Consumer(bootstrap, group_id=topic, **options)
    consumer.subscribe([topic], listener=WakesUp(consumer))
    poll_until_assigned(consumer)
    assert members_of(judge, topic) == 1
    consumer.close()
    assert members_of(judge, topic) == 0


@both
def test_closing_does_not_wait_for_a_long_poll(
    bootstrap: str, judge: AdminClient, topic: str, options: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    """That lasts longer than a consumer waits for the response to its leaving."""
    caplog.set_level(logging.INFO, "barnabas.client.consumer.group")
    consumer = Consumer(bootstrap, group_id=topic, fetch_max_wait_ms=25_000, **options)
    consumer.subscribe([topic])
    poll_until_assigned(consumer)
    eventually(lambda: consumer._core._runtime.fetcher._active, timeout=30)
    consumer.close()
    assert "could not say that it leaves" not in caplog.text
    assert members_of(judge, topic) == 0


@both
def test_unsubscribing_before_the_assignment_was_seen(
    bootstrap: str, judge: AdminClient, topic: str, options: dict[str, Any]
) -> None:
    with Consumer(bootstrap, group_id=topic, auto_offset_reset="earliest", **options) as consumer:
        consumer.subscribe([topic])
        membership = consumer._core._runtime.membership
        assert membership is not None
        eventually(lambda: membership.owes_events, timeout=30)
        consumer.unsubscribe()
        eventually(lambda: members_of(judge, topic), lambda count: count == 0)
        consumer.assign([(topic, 0)])
        consumer.poll(0.1)
        assert consumer.assignment() == {(topic, 0)}


@both
def test_one_that_is_collected_leaves_the_group_and_commits_nothing(
    bootstrap: str, judge: AdminClient, fill: Callable[..., Any], topic: str, options: dict[str, Any]
) -> None:
    fill(topic, 3)
    options = {**options, "auto_offset_reset": "earliest", "auto_commit_interval_ms": 600_000}
    consumer = Consumer(bootstrap, group_id=topic, **options)
    consumer.subscribe([topic])
    while not consumer.poll(1):
        pass
    assert members_of(judge, topic) == 1
    with pytest.warns(ResourceWarning, match="unclosed Consumer"):
        del consumer
        gc.collect()
    eventually(lambda: members_of(judge, topic), lambda count: count == 0)
    with Consumer(bootstrap, group_id=topic) as another:
        assert another.committed([(topic, 0)]) == {(topic, 0): None}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_copy_in_a_child_process_says_so_and_harms_nobody(bootstrap: str, topic: str) -> None:
    with Consumer(bootstrap, group_id=topic, auto_offset_reset="earliest") as consumer:
        consumer.subscribe([topic])
        poll_until_assigned(consumer)
        child = os.fork()
        if not child:
            code = 1
            try:
                consumer.poll(0)
            except IllegalStateError:
                consumer.close()
                code = 0
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        consumer.poll(0.1)
        assert consumer.assignment()
