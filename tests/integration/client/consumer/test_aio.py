"""The asyncio twin: the same core, so only what differs is looked at here."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from barnabas import TopicPartition
from barnabas.aio import Consumer
from barnabas.client.consumer import OffsetAndMetadata, RebalanceListener
from barnabas.client.errors import ClosedError, IllegalStateError, WakeupError

QUICK: dict[str, Any] = {"auto_offset_reset": "earliest", "fetch_max_wait_ms": 100, "retry_backoff_ms": 20}


async def read(consumer: Consumer, count: int) -> list[Any]:
    records: list[Any] = []
    async with asyncio.timeout(20):
        while len(records) < count:
            records += await consumer.poll(0.5)
    assert len(records) == count
    return records


def test_reading_in_every_way(bootstrap: str, topic: str, fill: Any) -> None:
    values = fill(topic, 1500)

    async def main() -> None:
        async with Consumer(bootstrap, **QUICK) as consumer:
            consumer.assign([(topic, 0)])
            seen = [record.value for record in await consumer.poll(10, max_records=100)]
            async for record in consumer:
                seen.append(record.value)
                if len(seen) == 200:
                    break
            async for batch in consumer.batches(0.3, stop_when_idle=True):
                seen += [record.value for record in batch]
            assert seen == values
            assert await consumer.position((topic, 0)) == 1500
            assert await consumer.end_offsets([(topic, 0)]) == {TopicPartition(topic, 0): 1500}
            consumer.seek_to_beginning()
            rows = await consumer.poll_arrow(10)
            assert rows.column("offset")[0].as_py() == 0
        with pytest.raises(ClosedError):
            await consumer.poll(0)

    asyncio.run(main())


def test_a_group_with_coroutines_as_callbacks(bootstrap: str, topic: str, name: str, fill: Any) -> None:
    fill(topic, 10)

    class Listener(RebalanceListener):
        def __init__(self) -> None:
            self.told: list[str] = []

        async def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
            await asyncio.sleep(0)
            assert threading.current_thread() is threading.main_thread()
            self.told.append("assigned")

        def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
            self.told.append("revoked")

    async def main() -> None:
        listener = Listener()
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        async def on_commit(offsets: Any, error: Any) -> None:
            done.set_result((offsets, error))

        async with Consumer(bootstrap, group_id=name, enable_auto_commit=False, **QUICK) as consumer:
            consumer.subscribe([topic], listener)
            await read(consumer, 10)
            await consumer.commit({(topic, 0): 4})
            assert (await consumer.committed([(topic, 0)])) == {TopicPartition(topic, 0): OffsetAndMetadata(4)}
            consumer.commit_async(callback=on_commit)
            while not done.done():
                await consumer.poll(0.05)
            assert done.result()[1] is None
        assert listener.told == ["assigned", "revoked"]

    asyncio.run(main())


def test_the_loop_goes_on_while_a_poll_waits(bootstrap: str, topic: str, fill: Any) -> None:
    async def main() -> None:
        async with Consumer(bootstrap, **QUICK) as consumer:
            consumer.assign([(topic, 0)])
            waiting = asyncio.create_task(consumer.poll(30))
            await asyncio.sleep(0.2)
            with pytest.raises(IllegalStateError, match="one at a time"):
                await consumer.poll(0)
            await asyncio.to_thread(consumer.wakeup)
            with pytest.raises(WakeupError):
                await waiting
            cancelled = asyncio.create_task(consumer.poll(30))
            await asyncio.sleep(0.1)
            cancelled.cancel()
            with pytest.raises(asyncio.CancelledError):
                await cancelled
            await asyncio.to_thread(fill, topic, [b"after"])
            assert [record.value for record in await read(consumer, 1)] == [b"after"]

    asyncio.run(main())


def test_a_cancelled_call_ends_on_the_other_side_too(bootstrap: str, name: str) -> None:
    async def main() -> None:
        async with Consumer(bootstrap, **QUICK) as consumer:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await consumer.end_offsets([("no-such-topic", 0)], timeout=60)
            assert isinstance(await consumer.list_topics(timeout=10), dict)

    asyncio.run(main())
