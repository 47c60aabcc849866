import asyncio
import threading
from typing import Any

import pytest

from barnabas.client.consumer.user_calls import Guard
from barnabas.client.errors import ClosedError, IllegalStateError
from barnabas.client.user_side import AsyncSide, BlockingSide


def test_a_blocking_wait_ends_with_the_notification_also_with_one_that_was_earlier() -> None:
    side = BlockingSide()
    side.notify()
    side.run(side.wait(None))
    threading.Timer(0.02, side.notify).start()
    side.run(side.wait(None))
    side.run(side.wait(0))


def test_a_blocking_coroutine_gives_its_value_or_raises() -> None:
    side = BlockingSide()

    async def work(error: bool) -> int:
        await side.wait(0)
        if error:
            raise LookupError
        return await side.call(lambda: 5)

    assert side.run(work(False)) == 5
    with pytest.raises(LookupError):
        side.run(work(True))

    async def astray() -> None:
        await asyncio.sleep(0)

    with pytest.raises(AssertionError, match="something else"):
        side.run(astray())


def test_an_asyncio_wait_ends_with_a_notification_from_another_thread() -> None:
    side = AsyncSide()
    side.notify()

    async def main() -> None:
        await side.wait(None)
        threading.Timer(0.02, side.notify).start()
        await side.wait(None)
        await side.wait(0)

        async def later() -> int:
            return 3

        assert await side.call(later) == 3
        assert await side.call(lambda: 4) == 4

    asyncio.run(main())
    side.notify()  # its loop is closed: nobody waits


def test_an_asyncio_side_goes_with_its_user_to_another_loop() -> None:
    side = AsyncSide()

    async def wait(notify: bool) -> None:
        await side.wait(0)
        if notify:
            threading.Timer(0.02, side.notify).start()
        await asyncio.gather(side.wait(None if notify else 0.001), asyncio.sleep(0))

    asyncio.run(wait(True))
    asyncio.run(wait(False))
    asyncio.run(wait(True))


def test_what_was_reported_to_the_loop_before_is_not_lost() -> None:
    """A loop that was stopped does not run what was handed to it."""
    side = AsyncSide()
    first = asyncio.new_event_loop()
    try:
        first.run_until_complete(side.wait(0))
        side.notify()
        asyncio.run(side.wait(None))
    finally:
        first.close()


def test_the_guard_lets_one_in_as_often_as_it_likes() -> None:
    guard = Guard(BlockingSide())
    outcome: list[Any] = []

    def try_it() -> None:
        try:
            with guard:
                outcome.append("in")
        except IllegalStateError as error:
            outcome.append(str(error))

    with guard:
        with guard:
            pass
        thread = threading.Thread(target=try_it)
        thread.start()
        thread.join()
    assert "one at a time" in outcome[0]
    try_it()
    assert outcome[1] == "in"
    guard.closed = True
    with pytest.raises(ClosedError), guard:
        pass


def test_two_tasks_are_two_callers() -> None:
    guard = Guard(AsyncSide())

    async def main() -> None:
        with guard:
            with guard:
                pass

            async def other() -> None:
                with guard:
                    pass

            with pytest.raises(IllegalStateError):
                await asyncio.create_task(other())

    asyncio.run(main())
