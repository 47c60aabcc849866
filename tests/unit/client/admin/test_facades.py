"""Blocking and awaitable admin offer the same calls: all that the parts of the core have."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Coroutine
from typing import Any

import pytest
from fake_cluster import FakeCluster

from barnabas.client.admin import admin, aio
from barnabas.client.admin.core import AdminCore
from barnabas.client.errors import ConfigError
from barnabas.client.options import AdminOptions
from barnabas.client.user_side import AsyncSide, BlockingSide, UserSide

CORE = AdminCore(FakeCluster(), AdminOptions.of("fake:9092"))  # type: ignore[arg-type]
CALLS = {
    name: part
    for part_name, part in vars(CORE).items()
    if not part_name.startswith("_")
    for name, _ in inspect.getmembers(type(part), inspect.iscoroutinefunction)
    if not name.startswith("_")
}


def test_there_are_calls() -> None:
    assert len(CALLS) > 40


@pytest.mark.parametrize("name", CALLS)
def test_both_facades_have_the_call_and_its_documentation(name: str) -> None:
    declared = getattr(type(CALLS[name]), name)
    for facade in (admin.Admin, aio.Admin):
        method = getattr(facade, name)
        assert inspect.signature(method) == inspect.signature(declared)
        assert method.__doc__ and method.__doc__ == declared.__doc__
    assert inspect.iscoroutinefunction(getattr(aio.Admin, name))
    assert not inspect.iscoroutinefunction(getattr(admin.Admin, name))


class PartOf:
    """Stands in for a facade, its calls and its I/O thread: `wait` returns the part that a call runs on."""

    def __init__(self, side: UserSide) -> None:
        self._side = self.side = side
        self._core = self.io = self
        self.core = CORE

    def wait(self, coroutine: Coroutine[Any, Any, Any]) -> object:
        part: object = inspect.getcoroutinelocals(coroutine)["self"]  # type: ignore[arg-type]
        coroutine.close()
        return part

    async def run(self, coroutine: Coroutine[Any, Any, Any]) -> object:
        return self.wait(coroutine)


@pytest.mark.parametrize("name", CALLS)
def test_a_call_runs_on_the_part_that_has_it(name: str) -> None:
    required = [
        None
        for each in list(inspect.signature(getattr(admin.Admin, name)).parameters.values())[1:]
        if each.default is inspect.Parameter.empty
    ]
    assert getattr(admin.Admin, name)(PartOf(BlockingSide()), *required) is CALLS[name]
    assert asyncio.run(getattr(aio.Admin, name)(PartOf(AsyncSide()), *required)) is CALLS[name]


@pytest.mark.parametrize("facade", [admin.Admin, aio.Admin])
def test_options_are_checked_when_it_is_made(facade: type) -> None:
    with pytest.raises(ConfigError, match="request_timeout_ms"):
        facade("localhost:9092", request_timout_ms=5)
    with pytest.raises(ConfigError, match=r"bootstrap"):
        facade.from_config({"client.id": "x"})
