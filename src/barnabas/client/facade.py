"""How a method of a core becomes a method of the blocking class and of its asyncio twin, in one line each.

    class Admin:
        create_topic = blocking(AdminCore.create_topic)

    class AsyncAdmin:
        create_topic = awaitable(AdminCore.create_topic)

The facade object has `_io`, its `IoThread`, and `_core`, the object that lives on it. Signature and documentation are
those of the core's method; there is never any logic in a facade.
"""

import functools
from collections.abc import Callable, Coroutine, Generator
from typing import Any, Concatenate, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
CoreMethod = Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]


def blocking(method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]) -> Callable[Concatenate[Any, P], T]:
    """The calling thread waits until the core's coroutine is done."""

    @functools.wraps(method)
    def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        result: T = self._io.wait(method(self._core, *args, **kwargs))
        return result

    return call


def awaitable(
    method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """The caller's loop goes on while the core's coroutine runs on the I/O thread."""

    @functools.wraps(method)
    async def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        result: T = await self._io.run(method(self._core, *args, **kwargs))
        return result

    return call


def waiting(method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]) -> Callable[Concatenate[Any, P], T]:
    """Of a facade with `_side`, its `BlockingSide`: the method runs in the caller's thread, which waits."""

    @functools.wraps(method)
    def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        result: T = self._side.run(method(self._core, *args, **kwargs))
        return result

    return call


def awaited(
    method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """The method runs in the caller's task."""

    @functools.wraps(method)
    async def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await method(self._core, *args, **kwargs)

    return call


def plain(method: Callable[Concatenate[Any, P], T]) -> Callable[Concatenate[Any, P], T]:
    """The method does not wait: the same in both facades."""

    @functools.wraps(method)
    def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return method(self._core, *args, **kwargs)

    return call


class NothingToAwait(Coroutine[Any, Any, None]):
    """What is done already: may be awaited, and unlike a coroutine also left alone without a warning."""

    def __await__(self) -> Generator[Any, None, None]:
        return
        yield

    def send(self, value: Any) -> Any:
        raise StopIteration

    def throw(self, *error: Any) -> Any:
        raise error[0]

    def close(self) -> None:
        pass
