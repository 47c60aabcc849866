"""Blocking and awaitable consumer offer the same calls, each from the part of the core that has it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fake_cluster import FakeCluster

from barnabas.client.consumer import aio, consumer
from barnabas.client.consumer.core import ConsumerCore
from barnabas.client.options import ConsumerOptions
from barnabas.client.user_side import BlockingSide

CALLS = [
    name
    for name, call in inspect.getmembers(consumer.Consumer, inspect.isfunction)
    if not name.startswith("_") and hasattr(call, "__wrapped__")
]


@pytest.fixture
def core() -> Iterator[ConsumerCore]:
    side = BlockingSide()
    made = ConsumerCore(ConsumerOptions.of("x:1"), side, cluster=FakeCluster())  # type: ignore[arg-type]
    yield made
    side.run(made.close(commit=False))


def owner_of(core: ConsumerCore, call: Callable[..., Any]) -> object:
    return inspect.getclosurevars(call).nonlocals["owner"](type("Facade", (), {"_core": core}))


def test_there_are_calls() -> None:
    assert len(CALLS) > 25


@pytest.mark.parametrize("name", CALLS)
def test_both_facades_have_the_call_its_documentation_and_its_part(core: ConsumerCore, name: str) -> None:
    declared = inspect.unwrap(getattr(consumer.Consumer, name))
    for facade in (consumer.Consumer, aio.Consumer):
        call = getattr(facade, name)
        assert inspect.unwrap(call) is declared
        assert call.__doc__ and call.__doc__ == declared.__doc__
        assert getattr(type(owner_of(core, call)), name) is declared
    assert inspect.iscoroutinefunction(getattr(aio.Consumer, name)) == inspect.iscoroutinefunction(declared)
    assert not inspect.iscoroutinefunction(getattr(consumer.Consumer, name))
