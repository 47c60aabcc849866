"""QoS 2 of a session that outlives its connection: which intents stay when a message could not be stored."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas.errors import ErrorCode
from barnabas.mqtt.exactly_once import GIVE_UP_MS, ExactlyOnce, Waiting


class Gateway:
    """A store that takes everything, and partitions that respond with `code` for every batch."""

    def __init__(self, code: ErrorCode) -> None:
        self.code = code
        self.now = 0
        self.kept: set[bytes] = set()
        self.store = self.partitions = self

    def now_ms(self) -> int:
        return self.now

    def monotonic_ms(self) -> int:
        self.now += GIVE_UP_MS
        return self.now

    async def next_producer_id(self) -> int:
        return 7

    async def write(self, _: object, intents: list[tuple[bytes, bytes]]) -> None:
        self.kept |= {key for key, _ in intents}

    async def accepted(self, *_: object) -> bool:
        return True

    async def append(self, _: object, key: bytes, value: bytes | None) -> None:
        assert value is None
        self.kept.discard(key)

    async def append_and_wait(self, *_: object) -> ErrorCode:
        return self.code

    def run(self, work: Any) -> "asyncio.Task[None]":
        return asyncio.get_running_loop().create_task(work)


@pytest.mark.parametrize(
    ("code", "stays"),
    [
        (ErrorCode.REQUEST_TIMED_OUT, True),
        (ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, True),
        (ErrorCode.MESSAGE_TOO_LARGE, False),
    ],
)
def test_an_intent_goes_only_when_its_message_is_surely_not_in_the_log(code: ErrorCode, stays: bool) -> None:
    """The connection is closed and the client sends the message again: without its intent it would be there twice."""

    async def scenario() -> None:
        gateway, outcomes = Gateway(code), list[ErrorCode]()
        table = SimpleNamespace(intents=lambda _: (set(), {}))
        session = SimpleNamespace(client_id="c", generation=1)
        live = SimpleNamespace(partition=SimpleNamespace(table=table), session=session, is_lost=False)
        once = ExactlyOnce(cast(Any, gateway), cast(Any, live))
        once.publish(Waiting(3, "t", 0, b"", b"x", [], outcomes.append))
        assert once._worker is not None
        await once._worker
        assert outcomes == [code] and bool(gateway.kept) == stays

    asyncio.run(scenario())
