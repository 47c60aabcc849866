"""How a call of the core becomes a method of the blocking class and of its asyncio twin, in one line each.

    poll = waiting(Polling.poll, part="polling")

A facade has `_core` and, if it blocks, `_side`. `part` names the attribute of the core that has the method; without it,
the core itself has it. Signature and documentation are those of the method.
"""

import functools
import operator
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def waiting(
    method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]], *, part: str | None = None
) -> Callable[Concatenate[Any, P], T]:
    """The thread waits."""
    owner = _owner(part)

    @functools.wraps(method)
    def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        result: T = self._side.run(method(owner(self), *args, **kwargs))
        return result

    return call


def awaited(
    method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]], *, part: str | None = None
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """The task waits, its loop goes on."""
    owner = _owner(part)

    @functools.wraps(method)
    async def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await method(owner(self), *args, **kwargs)

    return call


def plain(method: Callable[Concatenate[Any, P], T], *, part: str | None = None) -> Callable[Concatenate[Any, P], T]:
    """Nobody waits: the same in both."""
    owner = _owner(part)

    @functools.wraps(method)
    def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return method(owner(self), *args, **kwargs)

    return call


def _owner(part: str | None) -> Callable[[Any], Any]:
    return operator.attrgetter("_core" if part is None else f"_core.{part}")
