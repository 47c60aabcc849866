"""Blocking and awaitable admin offer the same calls, all of the core's."""

from __future__ import annotations

import inspect

import pytest

from barnabas.client.admin import admin, aio
from barnabas.client.admin.core import AdminCore
from barnabas.client.errors import ConfigError

CALLS = [
    name
    for name, method in inspect.getmembers(AdminCore, inspect.iscoroutinefunction)
    if not name.startswith("_") and name != "close"
]


def test_there_are_calls() -> None:
    assert len(CALLS) > 40


@pytest.mark.parametrize("name", CALLS)
def test_both_facades_have_the_call_and_its_documentation(name: str) -> None:
    wanted = inspect.signature(getattr(AdminCore, name))
    for facade in (admin.Admin, aio.Admin):
        method = getattr(facade, name)
        assert inspect.signature(method) == wanted
        assert method.__doc__ and method.__doc__ == getattr(AdminCore, name).__doc__
    assert inspect.iscoroutinefunction(getattr(aio.Admin, name))
    assert not inspect.iscoroutinefunction(getattr(admin.Admin, name))


@pytest.mark.parametrize("facade", [admin.Admin, aio.Admin])
def test_options_are_checked_when_it_is_made(facade: type) -> None:
    with pytest.raises(ConfigError, match="request_timeout_ms"):
        facade("localhost:9092", request_timout_ms=5)
    with pytest.raises(ConfigError, match=r"bootstrap"):
        facade.from_config({"client.id": "x"})
