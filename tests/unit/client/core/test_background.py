"""Background tasks: whatever goes wrong in one, somebody hears of it."""

from __future__ import annotations

import asyncio
import logging

import pytest

from barnabas.client.background import Background, as_failure
from barnabas.client.errors import UnexpectedError, UnknownTopicError
from barnabas.errors import KafkaError


async def fail(error: Exception) -> None:
    raise error


def test_a_failure_is_logged_and_passed_on(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> list[KafkaError]:
        heard: list[KafkaError] = []
        await Background().start("a task", fail(KeyError("x")), heard.append)
        return heard

    (error,) = asyncio.run(test())
    assert isinstance(error, UnexpectedError) and "a task" in str(error) and isinstance(error.__cause__, KeyError)
    (record,) = [each for each in caplog.records if each.levelno == logging.ERROR]
    assert record.exc_info is not None and record.exc_info[1] is error.__cause__


def test_an_expected_failure_is_passed_on_as_it_is(caplog: pytest.LogCaptureFixture) -> None:
    expected = UnknownTopicError("none")
    assert as_failure("a task", expected) is expected
    assert not caplog.records


def test_a_failure_that_cannot_be_reported_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def refuse(_: KafkaError) -> None:
        raise ValueError("nobody is there")

    async def test() -> None:
        await Background().start("a task", fail(KeyError("x")), refuse)

    asyncio.run(test())
    assert [each.exc_info[0] for each in caplog.records if each.exc_info] == [KeyError, ValueError]


def test_close_ends_all_also_those_that_have_not_begun() -> None:
    async def test() -> None:
        background = Background()
        begun = asyncio.Event()

        async def forever() -> None:
            begun.set()
            await asyncio.Event().wait()

        first = background.start("a task", forever(), pytest.fail)
        await begun.wait()
        second = background.start("a task", forever(), pytest.fail)
        await background.close()
        assert first.cancelled() and second.cancelled()

    asyncio.run(test())
