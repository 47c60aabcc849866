"""Background tasks on a client's I/O thread: none of them fails in silence.

A task handles the failures that it expects, which are `KafkaError`. Anything else is a bug, here or in a broker that
sends a response which no broker should send. It is logged with its traceback and passed on as an `UnexpectedError`, and
whoever starts a task says what happens then: it is tried again after a pause, or raised to the user. What is never
allowed is that a client waits for a task that has ended.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from barnabas.client.errors import UnexpectedError
from barnabas.errors import KafkaError

logger = logging.getLogger(__name__)
OnFailure = Callable[[KafkaError], object]


def as_failure(what: str, error: Exception) -> KafkaError:
    """The error itself if it was to be expected; otherwise it is logged and wrapped. `what` was being done."""
    if isinstance(error, KafkaError):
        return error
    logger.error("%s failed unexpectedly", what, exc_info=error)
    failure = UnexpectedError(
        f"{what} failed unexpectedly ({type(error).__name__}: {error}): the traceback is in the log"
    )
    failure.__cause__ = error
    return failure


class Background:
    """The tasks of one part of a client, which end with it."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, what: str, work: Coroutine[Any, Any, object], on_failure: OnFailure) -> asyncio.Task[None]:
        """Runs the work. Whatever it raises, `on_failure` is called with it on the I/O thread."""
        task = asyncio.get_running_loop().create_task(_run(what, work, on_failure))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: work.close())  # for one that was cancelled before it began
        return task

    async def close(self) -> None:
        """Cancels what still runs, and waits for its end."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def finish(self) -> None:
        """Waits for what still runs."""
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def _run(what: str, work: Coroutine[Any, Any, object], on_failure: OnFailure) -> None:
    try:
        await work
    except Exception as error:
        failure = as_failure(what, error)
        try:
            on_failure(failure)
        except Exception:
            logger.exception("%s: its failure could not be reported", what)
