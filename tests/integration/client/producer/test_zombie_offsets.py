"""A consumer that its group has thrown out must not commit offsets through a transaction: its successor does that."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from eventually import eventually
from faulty_proxy import FaultyProxy

from barnabas import Admin, Consumer, Producer
from barnabas.client.errors import CommitFailedError


def test_offsets_of_a_member_that_was_thrown_out(
    bootstrap: str, proxy: FaultyProxy, topic: str, new_producer: Callable[..., Producer]
) -> None:
    """It has heard of it, but nobody has called poll since: its user is in the middle of a transaction."""
    producer = new_producer(bootstrap, transactional_id=f"{topic}.tx")
    with producer.transaction():
        producer.send(topic, b"0")
    zombie = Consumer(proxy.bootstrap, group_id=topic, auto_offset_reset="earliest", heartbeat_interval_ms=50)
    successor = Consumer(bootstrap, group_id=topic, auto_offset_reset="earliest")
    with zombie, successor, Admin(bootstrap) as admin:
        zombie.subscribe([topic])
        eventually(lambda: [record.value for record in zombie.poll(0.5)] == [b"0"])
        producer.begin_transaction()
        heard = threading.Event()
        proxy.on_answer("Heartbeat", lambda response: response.error_code and heard.set(), count=None)
        admin.remove_members(topic)
        assert heard.wait(20)
        successor.subscribe([topic])
        eventually(lambda: [record.value for record in successor.poll(0.5)] == [b"0"])
        with pytest.raises(CommitFailedError, match="not this consumer's any more"):
            producer.send_offsets(zombie)
        producer.abort_transaction()
