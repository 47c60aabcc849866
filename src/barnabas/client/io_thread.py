"""The thread in which a client does its I/O: one asyncio loop, for as long as the client object lives.

Every Producer, Consumer and Admin owns one, so that heartbeats, retries and sends go on whatever the user's own
thread or loop is doing. User code runs here only where it says so (delivery callbacks); it must never block it.
It ends with `close`, or when the client is garbage collected (`unclosed`); with the interpreter it just stops.
"""

import asyncio
import concurrent.futures
import logging
import os
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from barnabas.client.errors import ClientTimeoutError, ClosedError, IllegalStateError
from barnabas.errors import KafkaError

T = TypeVar("T")
logger = logging.getLogger(__name__)


class IoThread:
    """A daemon thread with one asyncio loop."""

    def __init__(self, name: str) -> None:
        self.loop: asyncio.AbstractEventLoop = asyncio.new_event_loop()
        self._pid = os.getpid()
        self._stopped = threading.Event()
        self._stopping = threading.Lock()
        self._ending: asyncio.Task[None] | None = None
        self._thread = threading.Thread(target=self._run, name=f"barnabas-{name}", daemon=True)
        self._thread.start()

    @property
    def is_forked(self) -> bool:
        """Whether this is a copy in a child process, where the thread is not."""
        return os.getpid() != self._pid

    @property
    def stopped(self) -> bool:
        return self._stopped.is_set()

    @property
    def is_current(self) -> bool:
        """Whether the caller is on this very thread, where waiting for it would be waiting for oneself."""
        return threading.current_thread() is self._thread

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        """Start the coroutine here. Cancelling the future cancels the coroutine."""
        if self.is_forked:
            coroutine.close()
            raise IllegalStateError(
                "the client was made before a fork, and its I/O thread stayed in the parent: make clients in the"
                " process that uses them"
            )
        with self._stopping:  # what is submitted before the stop is run, or cancelled, by `_finish`
            if not self._stopped.is_set():
                return asyncio.run_coroutine_threadsafe(coroutine, self.loop)
        coroutine.close()
        raise ClosedError("the client is closed: make a new one")

    def wait(self, coroutine: Coroutine[Any, Any, T], timeout: float | None = None) -> T:
        """Run the coroutine here while the calling thread waits. Ctrl-C, or the time-out in seconds, cancels it."""
        if self.is_current:
            coroutine.close()
            raise IllegalStateError(
                "a blocking call on the client's own I/O thread would wait for itself: from a callback, hand the"
                " work to another thread"
            )
        future = self.submit(coroutine)
        try:
            return future.result(timeout)
        except concurrent.futures.CancelledError:
            raise ClosedError("the client was closed while the call was waiting") from None
        except TimeoutError:
            # The coroutine's own time-out comes this way too, and says more.
            if future.done() and not future.cancelled():
                raise
            future.cancel()
            raise ClientTimeoutError(f"not done within {timeout} s: give it more time or try again") from None
        except BaseException:
            future.cancel()
            raise

    async def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """The same for a caller on another asyncio loop; its cancellation is passed on."""
        future = self.submit(coroutine)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            raise ClosedError("the client was closed while the call was waiting") from None

    def call(self, function: Callable[..., object], *args: object) -> None:
        """Call the function here soon; after the end of the thread it does nothing."""
        try:
            self.loop.call_soon_threadsafe(function, *args)
        except RuntimeError:
            logger.debug("%s: called after the end", self._thread.name)

    def stop(self) -> None:
        """Cancel what still runs here and end the thread. May be called again, and from any thread."""
        with self._stopping:
            if not self._stopped.is_set():
                self._stopped.set()
                self.loop.call_soon_threadsafe(self.loop.stop)
        if not self.is_current:
            self._thread.join()

    def stop_after(self, close: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run this here and end the thread, without waiting for it. Takes no lock: it may be called at any moment."""
        self.call(self._begin_end, close)

    def _begin_end(self, close: Callable[[], Coroutine[Any, Any, None]]) -> None:
        if self._ending is None:
            self._ending = asyncio.ensure_future(self._end(close))  # kept, because a loop does not keep its tasks

    async def _end(self, close: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            await close()
        except KafkaError as error:
            logger.info("%s: closed with some ends loose: %s", self._thread.name, error)
        except Exception:
            logger.exception("%s: closing failed unexpectedly", self._thread.name)
        finally:
            self.stop()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
        finally:
            self._finish()

    def _finish(self) -> None:
        """End every task, so that whoever waits for one is released; then the loop."""
        try:
            # What was submitted just before the stop is still in the queue as a callback, not as a task.
            self.loop.run_until_complete(asyncio.sleep(0))
            tasks = asyncio.all_tasks(self.loop)
            for task in tasks:
                task.cancel()
            if tasks:
                self.loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        finally:
            asyncio.set_event_loop(None)
            # Does not wait for a name that is still being looked up: that may take the resolver half a minute.
            self.loop.close()
