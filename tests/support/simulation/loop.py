"""An event loop in virtual time: when nothing is ready, the clock jumps to the next timer.

Descriptors are the network's own numbers; their readiness is read from it. Work for threads runs on the loop, a little
later, so that its place among the other events is drawn from the seed too. It is one step, unless it calls `pause`:
then others run before it goes on, as they would while a thread waits for a disk or for another machine.
"""

from __future__ import annotations

import asyncio
import contextvars
import random
import selectors
import weakref
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any, Protocol

from greenlet import getcurrent, greenlet

from simulation.node import CURRENT, Node

MAX_STEP_SECONDS = 0.002
"""What a piece of work in another thread takes at most, unless its node has a slow disk."""


class StuckError(Exception):
    """Nothing is ready and no timer is set, but the simulation is not over."""


class Readiness(Protocol):
    def readable(self) -> list[int]:
        """Descriptors with something to read, in the order in which it came."""
        ...

    def is_writable(self, fd: int) -> bool: ...


class VirtualSelector(selectors.BaseSelector):
    def __init__(self) -> None:
        self._keys: dict[int, selectors.SelectorKey] = {}
        self._writers: dict[int, None] = {}
        self.readiness: Readiness | None = None
        self.advance: Callable[[float], None] = lambda seconds: None

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        fd = fileobj if isinstance(fileobj, int) else fileobj.fileno()
        if fd in self._keys:
            raise KeyError(f"{fd} is registered already")
        self._keys[fd] = selectors.SelectorKey(fileobj, fd, events, data)
        if events & selectors.EVENT_WRITE:
            self._writers[fd] = None
        return self._keys[fd]

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        fd = fileobj if isinstance(fileobj, int) else fileobj.fileno()
        self._writers.pop(fd, None)
        return self._keys.pop(fd)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._keys

    def get_key(self, fileobj: Any) -> selectors.SelectorKey:
        return self._keys[fileobj if isinstance(fileobj, int) else fileobj.fileno()]

    def close(self) -> None:
        self._keys.clear()

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        self.unregister(fileobj)
        return self.register(fileobj, events, data)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = []
        if self.readiness is not None:
            for fd in self.readiness.readable():
                key = self._keys.get(fd)
                if key is not None and key.events & selectors.EVENT_READ:
                    ready.append((key, selectors.EVENT_READ))
            for fd in list(self._writers):
                if self.readiness.is_writable(fd):
                    ready.append((self._keys[fd], selectors.EVENT_WRITE))
        if not ready:
            if timeout is None:
                raise StuckError("nothing is ready and no timer is set")
            if timeout > 0:
                self.advance(timeout)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self, chance: random.Random) -> None:
        self._now = 0.0
        self.chance = chance
        self.steps = 0
        self.on_step: Callable[[], None] | None = None
        """Called before every callback: the place to kill a node between any two of them."""
        self._lanes: weakref.WeakKeyDictionary[Any, Lane] = weakref.WeakKeyDictionary()
        """Of executors with one thread: one piece of work after the other."""
        self.virtual_selector = VirtualSelector()
        self.virtual_selector.advance = self._advance
        super().__init__(self.virtual_selector)
        self.set_task_factory(_make_task)

    # No descriptor of the system is opened, and nobody else can wake this loop.
    def _make_self_pipe(self) -> None: ...
    def _close_self_pipe(self) -> None: ...
    def _write_to_self(self) -> None: ...

    def time(self) -> float:
        return self._now

    def _advance(self, seconds: float) -> None:
        self._now += seconds

    def call_soon(
        self, callback: Callable[..., Any], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        context = contextvars.copy_context() if context is None else context
        return super().call_soon(self._guard(callback, context), *args, context=context)

    def call_soon_threadsafe(
        self, callback: Callable[..., Any], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        return self.call_soon(callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[..., Any], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        context = contextvars.copy_context() if context is None else context
        return super().call_at(when, self._guard(callback, context), *args, context=context)

    def run_in_executor(self, executor: object, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:  # type: ignore[override]
        future = self.create_future()
        work = partial(_complete, future, func, args)
        if getattr(executor, "_max_workers", 0) == 1:
            self._lanes.setdefault(executor, Lane(self)).add(work)
        else:
            self.call_later(self.chance.uniform(0, MAX_STEP_SECONDS), _in_worker, work)
        return future

    def pause(self, seconds: float) -> None:
        """Called by work for a thread: everybody else goes on meanwhile. On the loop itself nobody may wait."""
        worker = getcurrent()
        assert worker.parent is not None, "blocking on the loop"
        self.call_later(seconds, worker.switch)
        worker.parent.switch()

    @property
    def can_pause(self) -> bool:
        return getcurrent().parent is not None

    # Readers and writers are handles that the loop makes itself.
    def _add_reader(self, fd: int, callback: Callable[..., Any], *args: Any) -> asyncio.Handle:
        guard = self._guard(callback, contextvars.copy_context())
        return super()._add_reader(fd, guard, *args)  # type: ignore[misc,no-any-return]

    def _add_writer(self, fd: int, callback: Callable[..., Any], *args: Any) -> asyncio.Handle:
        guard = self._guard(callback, contextvars.copy_context())
        return super()._add_writer(fd, guard, *args)  # type: ignore[misc,no-any-return]

    def _guard(self, callback: Callable[..., Any], context: contextvars.Context) -> Callable[..., Any]:
        return _Guard(self, callback, context.get(CURRENT))


class _Guard:
    """A callback that runs only while its node does."""

    __slots__ = ("_callback", "_loop", "_node")

    def __init__(self, loop: VirtualLoop, callback: Callable[..., Any], node: Node | None) -> None:
        self._loop = loop
        self._callback = callback
        self._node = node

    def __call__(self, *args: Any) -> None:
        loop, node = self._loop, self._node
        if node is not None and not node.killed:
            loop.steps += 1
            if loop.on_step is not None:
                loop.on_step()
        if node is not None:
            if node.killed:
                return
            if node.frozen:
                node.held.append(asyncio.Handle(self._callback, args, loop, contextvars.copy_context()))
                return
        self._callback(*args)


class Lane:
    """A single thread: what was submitted first is finished before the next begins, however long it pauses."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self._waiting: deque[tuple[Callable[[], None], contextvars.Context]] = deque()
        self._is_busy = False

    def add(self, work: Callable[[], None]) -> None:
        self._waiting.append((work, contextvars.copy_context()))
        if not self._is_busy:
            self._is_busy = True
            self._begin()

    def _begin(self) -> None:
        work, context = self._waiting.popleft()
        delay = self._loop.chance.uniform(0, MAX_STEP_SECONDS)
        self._loop.call_later(delay, _in_worker, partial(self._run, work), context=context)

    def _run(self, work: Callable[[], None]) -> None:
        work()
        if self._waiting:
            self._begin()
        else:
            self._is_busy = False


def _complete(future: asyncio.Future[Any], func: Callable[..., Any], args: tuple[Any, ...]) -> None:
    if future.cancelled():
        return
    try:
        result = func(*args)
    except Exception as error:
        if not future.cancelled():
            future.set_exception(error)
    else:
        if not future.cancelled():
            future.set_result(result)


def _in_worker(work: Callable[[], None]) -> None:
    """A thread of the simulation: a stack of its own that runs only when the loop switches to it."""
    worker = greenlet(work)
    worker.gr_context = contextvars.copy_context()
    worker.switch()


def _make_task(
    loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, Any], **options: Any
) -> asyncio.Task[Any]:
    task = asyncio.Task(coroutine, loop=loop, **options)
    node = CURRENT.get()
    if node is not None:
        node.tasks.append(task)
        if len(node.tasks) > 1000:
            node.tasks = [each for each in node.tasks if not each.done()]
    return task
