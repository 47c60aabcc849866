"""Answers that may be there or may come later: a request over several coordinators waits only where it must."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from types import CoroutineType
from typing import Any

AWAITED = (asyncio.Future, CoroutineType)
"""For isinstance: an answer that is yet to come. Looking for these two is quicker than for anything awaitable."""


def then(answer: Any, make: Callable[[Any], Any]) -> Any:
    """What `make` makes of an answer: now if it is there, else as a coroutine."""
    if isinstance(answer, AWAITED):
        return _later(answer, make)
    return make(answer)


def when_all(answers: Iterable[Any], merge: Callable[[list[Any]], Any]) -> Any:
    """One answer out of many, in their order: now if all of them are there, else as a coroutine."""
    gathered = list(answers)
    if any(isinstance(answer, AWAITED) for answer in gathered):
        return _gather(gathered, merge)
    return merge(gathered)


async def _later(answer: Awaitable[Any], make: Callable[[Any], Any]) -> Any:
    return make(await answer)


def _gather(answers: list[Any], merge: Callable[[list[Any]], Any]) -> Coroutine[Any, Any, Any]:
    async def gather() -> Any:
        return merge([await answer if isinstance(answer, AWAITED) else answer for answer in answers])

    return gather()
