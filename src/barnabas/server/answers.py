"""Answers that may be there or may come later: a request over several coordinators waits only where it must."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any


def then(answer: Any, make: Callable[[Any], Any]) -> Any:
    """What `make` makes of an answer: now if it is there, else as a coroutine."""
    if isinstance(answer, asyncio.Future):
        return _later(answer, make)
    return make(answer)


def when_all(answers: Iterable[Any], merge: Callable[[list[Any]], Any]) -> Any:
    """One answer out of many, in their order: now if all of them are there, else as a coroutine."""
    gathered = list(answers)
    if any(isinstance(answer, asyncio.Future) for answer in gathered):
        return _gather(gathered, merge)
    return merge(gathered)


async def _later(answer: "asyncio.Future[Any]", make: Callable[[Any], Any]) -> Any:
    return make(await answer)


def _gather(answers: list[Any], merge: Callable[[list[Any]], Any]) -> Coroutine[Any, Any, Any]:
    async def gather() -> Any:
        return merge([await answer if isinstance(answer, asyncio.Future) else answer for answer in answers])

    return gather()
