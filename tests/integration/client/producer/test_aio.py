"""The asyncio twin: the same core, awaited; a full buffer holds up only who sends."""

from __future__ import annotations

import asyncio

import pytest
from confluent import read_partition
from faulty_proxy import FaultyProxy

from barnabas.aio import Producer
from barnabas.client.errors import BufferFullError, ClosedError, SerializationError
from barnabas.client.producer.record import ProducerRecord


def test_send_and_await(bootstrap: str, topic: str) -> None:
    async def run() -> None:
        async with Producer(bootstrap) as producer:
            deliveries = [await producer.send(topic, b"%d" % number) for number in range(500)]
            results = await asyncio.gather(*(deliveries[:10]))
            await producer.flush()
            assert [each.offset for each in results] == list(range(10))
            assert (await deliveries[-1]).offset == 499
            with pytest.raises(SerializationError):
                await producer.send(topic, "text")
            assert len(await producer.partitions_for(topic)) == 1
        with pytest.raises(ClosedError):
            await producer.send(topic, b"x")

    asyncio.run(run())
    assert len(read_partition(bootstrap, topic, 500)) == 500


def test_a_full_buffer_blocks_only_its_sender(proxy: FaultyProxy, topic: str) -> None:
    async def run() -> None:
        async with Producer(proxy.bootstrap, buffer_memory=40_000, max_block_ms=300, retry_backoff_ms=5) as producer:
            await (await producer.send(topic, b"0"))
            proxy.black_hole()
            ticks = 0

            async def tick() -> None:
                nonlocal ticks
                while True:
                    await asyncio.sleep(0.01)
                    ticks += 1

            ticking = asyncio.create_task(tick())
            with pytest.raises(BufferFullError):
                for _ in range(100):
                    await producer.send(topic, b"x" * 1000)
            ticking.cancel()
            assert ticks > 5
            proxy.heal()
            await producer.flush()

    asyncio.run(run())


def test_a_waiting_send_can_be_cancelled(proxy: FaultyProxy, topic: str) -> None:
    async def run() -> None:
        async with Producer(proxy.bootstrap, buffer_memory=40_000, retry_backoff_ms=5) as producer:
            await (await producer.send(topic, b"0"))
            proxy.black_hole()
            await producer.send(topic, b"x" * 1000)
            await producer.send(topic, b"x" * 17_000)
            waiting = asyncio.create_task(producer.send(topic, b"x" * 20_000))
            await asyncio.sleep(0.05)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            proxy.heal()
            await producer.flush()
            assert producer.metrics()["buffer-available-bytes"] == 40_000
            assert (await (await producer.send(topic, b"last"))).offset == 3

    asyncio.run(run())


def test_transactions(bootstrap: str, topic: str, name: str) -> None:
    async def run() -> None:
        async with Producer(bootstrap, transactional_id=name) as producer:
            async with producer.transaction():
                await producer.send(topic, b"kept")
            with pytest.raises(RuntimeError):
                async with producer.transaction():
                    await producer.send(topic, b"aborted")
                    raise RuntimeError("no")
            async with producer.transaction():
                await producer.send(topic, b"kept too")

    asyncio.run(run())
    values = [each.value() for each in read_partition(bootstrap, topic, 2, isolation_level="read_committed")]
    assert values == [b"kept", b"kept too"]


def test_an_interceptor_may_send_it_elsewhere(bootstrap: str, topic: str) -> None:
    class Elsewhere:
        def on_send(self, record: ProducerRecord) -> ProducerRecord:
            return record._replace(topic=topic)

    async def run() -> None:
        async with Producer(bootstrap, interceptor_classes=[Elsewhere()]) as producer:
            async with asyncio.timeout(20):
                assert (await (await producer.send(f"{topic}.asked", b"0"))).topic == topic

    asyncio.run(run())
