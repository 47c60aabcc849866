"""AlterClientQuotas and DescribeClientQuotas: what is kept, what is found, and what is refused with Kafka's codes."""

import asyncio
import math
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from handler_calls import HandlerCalls

from barnabas.errors import ErrorCode
from barnabas.metadata.stores.memory import MemoryStore
from barnabas.protocol.messages import alter_client_quotas as altering
from barnabas.protocol.messages import describe_client_quotas as describing

Entity = dict[str, str | None]
RATE = "producer_byte_rate"


def with_broker(
    directory: Path, scenario: Callable[[HandlerCalls], Coroutine[Any, Any, None]], store: MemoryStore | None = None
) -> None:
    async def main() -> None:
        async with HandlerCalls(directory, store=store) as calls:
            await scenario(calls)

    asyncio.run(main())


def entry(entity: Entity, **changes: float | None) -> altering.EntryData:
    return altering.EntryData(
        entity=[altering.EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()],
        ops=[
            altering.OpData(key=key, value=value or 0.0, remove=value is None)
            if value != 0
            else altering.OpData(key=key, value=0.0, remove=False)
            for key, value in changes.items()
        ],
    )


async def alter(calls: HandlerCalls, *entries: altering.EntryData, validate_only: bool = False) -> list[str]:
    request = altering.AlterClientQuotasRequest(entries=list(entries), validate_only=validate_only)
    return [ErrorCode(each.error_code).name for each in (await calls.call(request)).entries]


async def described(calls: HandlerCalls, *components: tuple[str, int, str | None], strict: bool = False) -> Any:
    wanted = [describing.ComponentData(entity_type=kind, match_type=how, match=what) for kind, how, what in components]
    answer = await calls.call(describing.DescribeClientQuotasRequest(components=wanted, strict=strict))
    if answer.error_code:
        assert answer.entries is None
        return ErrorCode(answer.error_code).name
    return [
        (
            {part.entity_type: part.entity_name for part in each.entity},
            {value.key: value.value for value in each.values},
        )
        for each in answer.entries
    ]


def test_quotas_are_kept_over_a_restart(tmp_path: Path) -> None:
    store = MemoryStore()
    odd = "a/b,c=d %e\u00e9"

    async def set_some(calls: HandlerCalls) -> None:
        both = {"user": odd, "client-id": None}
        assert await alter(calls, entry(both, producer_byte_rate=1024.0, request_percentage=0.5)) == ["NONE"]
        assert await alter(calls, entry({"ip": "10.0.0.1"}, connection_creation_rate=3.0)) == ["NONE"]
        assert await alter(calls, entry({"user": "gone"}, producer_byte_rate=1.0)) == ["NONE"]
        assert await alter(calls, entry({"user": "gone"}, producer_byte_rate=None)) == ["NONE"]

    async def see_them(calls: HandlerCalls) -> None:
        assert await described(calls) == [
            ({"client-id": None, "user": odd}, {"producer_byte_rate": 1024.0, "request_percentage": 0.5}),
            ({"ip": "10.0.0.1"}, {"connection_creation_rate": 3.0}),
        ]
        assert calls.broker.client_quotas.enabled

    with_broker(tmp_path, set_some, store)
    with_broker(tmp_path, see_them, store)


def test_filters(tmp_path: Path) -> None:
    async def scenario(calls: HandlerCalls) -> None:
        entities: list[Entity] = [
            {"user": "a"},
            {"user": None},
            {"user": "a", "client-id": "c"},
            {"client-id": "c"},
            {"ip": None},
        ]
        assert await alter(calls, *(entry(each, producer_byte_rate=1.0) for each in entities[:4])) == ["NONE"] * 4
        assert await alter(calls, entry(entities[4], connection_creation_rate=1.0)) == ["NONE"]

        async def found(*components: tuple[str, int, str | None], strict: bool = False) -> list[Entity]:
            return [entity for entity, _ in await described(calls, *components, strict=strict)]

        assert len(await found()) == 5
        assert await found(("user", 0, "a")) == [{"user": "a"}, {"client-id": "c", "user": "a"}]
        assert await found(("user", 0, "a"), strict=True) == [{"user": "a"}]
        assert await found(("user", 1, None)) == [{"user": None}]
        assert await found(("user", 2, None), strict=True) == [{"user": "a"}, {"user": None}]
        assert await found(("user", 2, None), ("client-id", 0, "c")) == [{"client-id": "c", "user": "a"}]
        assert await found(("ip", 1, None)) == [{"ip": None}]
        assert await found(("client-id", 0, "nobody")) == []

    with_broker(tmp_path, scenario)


@pytest.mark.parametrize(
    ("components", "error"),
    [
        ([("planet", 0, "a")], "UNSUPPORTED_VERSION"),
        ([("user", 0, None)], "INVALID_REQUEST"),
        ([("user", 2, "a")], "INVALID_REQUEST"),
        ([("user", 7, None)], "INVALID_REQUEST"),
        ([("user", 0, "a"), ("user", 0, "b")], "INVALID_REQUEST"),
        ([("user", 0, "a"), ("ip", 0, "::1")], "INVALID_REQUEST"),
    ],
)
def test_filters_that_are_refused(tmp_path: Path, components: list[tuple[str, int, str | None]], error: str) -> None:
    async def scenario(calls: HandlerCalls) -> None:
        assert await described(calls, *components) == error

    with_broker(tmp_path, scenario)


@pytest.mark.parametrize(
    ("entity", "key", "value"),
    [
        ({}, RATE, 1.0),
        ({"planet": "a"}, RATE, 1.0),
        ({"user": ""}, RATE, 1.0),
        ({"user": "a", "ip": "10.0.0.1"}, "connection_creation_rate", 1.0),
        ({"ip": "no address"}, "connection_creation_rate", 1.0),
        ({"ip": "10.0.0.1"}, RATE, 1.0),
        ({"user": "a"}, "connection_creation_rate", 1.0),
        ({"user": "a"}, "speed", 1.0),
        ({"user": "a"}, RATE, 0),
        ({"user": "a"}, RATE, -5.0),
        ({"user": "a"}, RATE, 1.5),
        ({"user": "a"}, RATE, 1e300),
        ({"user": "a"}, RATE, math.nan),
        ({"ip": "10.0.0.1"}, "connection_creation_rate", 2.0**31),
    ],
)
def test_changes_that_are_refused(tmp_path: Path, entity: Entity, key: str, value: float) -> None:
    async def scenario(calls: HandlerCalls) -> None:
        assert await alter(calls, entry(entity, **{key: value})) == ["INVALID_REQUEST"]
        assert await described(calls) == []
        assert not calls.broker.client_quotas.enabled

    with_broker(tmp_path, scenario)


def test_an_entity_named_twice_is_refused_and_the_others_are_not(tmp_path: Path) -> None:
    async def scenario(calls: HandlerCalls) -> None:
        twice = [entry({"user": "a"}, producer_byte_rate=1.0), entry({"user": "a"}, consumer_byte_rate=1.0)]
        other = entry({"user": "b"}, producer_byte_rate=1.0)
        assert await alter(calls, *twice, other) == ["INVALID_REQUEST", "INVALID_REQUEST", "NONE"]
        assert await described(calls) == [({"user": "b"}, {RATE: 1.0})]
        assert await alter(calls, entry({"user": "c"}, producer_byte_rate=1.0), validate_only=True) == ["NONE"]
        assert len(await described(calls)) == 1

    with_broker(tmp_path, scenario)
