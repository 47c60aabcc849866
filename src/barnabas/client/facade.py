"""How a call of a core becomes a method of the blocking class and of its asyncio twin, in one line each.

    poll = waiting(Polling.poll, part="polling")
    create_topic = waiting(on_io(TopicAdmin.create_topic, part="topics"))

A facade has `_core`, the calls of one client, and `_side`, if it blocks. The calls are coroutines that run where the
user calls them and wait only through the user's side (`user_side`). `part` names the attribute that has the method;
without it, the core itself has it. Signature and documentation are those of the method; a facade has no logic.
"""

import functools
import operator
from collections.abc import Callable, Coroutine, Generator, Mapping
from types import TracebackType
from typing import Any, ClassVar, Concatenate, ParamSpec, Self, TypeVar

from barnabas.client.user_side import BlockingSide

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


def on_io(
    method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]], *, part: str | None = None
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """A call that runs on the I/O thread while the caller waits. It is for a `_core` with `side`, `io` and `core`."""
    owner = operator.attrgetter("core" if part is None else f"core.{part}")

    @functools.wraps(method)
    async def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> T:
        result: T = await self.side.on_io(self.io, method(owner(self), *args, **kwargs))
        return result

    return call


def _owner(part: str | None) -> Callable[[Any], Any]:
    return operator.attrgetter("_core" if part is None else f"_core.{part}")


class Facade:
    """How every client is made from Kafka's names. `_start` takes the options."""

    _options: ClassVar[type[Any]]
    _core: Any

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Options by Kafka's dotted names, as in a properties file; numbers and truth values may be text."""
        client = cls.__new__(cls)
        client._start(cls._options.from_config(config))
        return client

    def _start(self, options: Any) -> None:
        raise NotImplementedError


class BlockingFacade(Facade):
    """A client as a `with` block."""

    _side: BlockingSide

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._side.run(self._core.leave(error is not None))


class AsyncFacade(Facade):
    """A client as an `async with` block."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._core.leave(error is not None)


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
