"""asyncio from end to end: read, process many records concurrently, send the results, then commit.

At least once: offsets are committed when every result of a batch is stored. A batch is processed concurrently, but its
results are sent in the order of its records. Run it with a broker:

    barnabas server &
    python examples/asyncio_pipeline.py localhost:9092 orders priced-orders
"""

import argparse
import asyncio
from collections.abc import Awaitable, Callable

from barnabas.aio import Consumer, Producer
from barnabas.client.consumer import ConsumerRecord

Work = Callable[[ConsumerRecord], Awaitable[bytes]]
AT_THE_SAME_TIME = 100


async def pipeline(
    bootstrap: str, source: str, target: str, group: str, work: Work, until_idle: float | None = None
) -> int:
    """Runs until cancelled, or that many seconds pass without a record. Returns how many records it processed."""
    done = 0
    limit = asyncio.Semaphore(AT_THE_SAME_TIME)

    async def limited(record: ConsumerRecord) -> bytes:
        async with limit:
            return await work(record)

    async with (
        Producer(bootstrap, linger_ms=0) as producer,
        Consumer(bootstrap, group_id=group, auto_offset_reset="earliest", enable_auto_commit=False) as consumer,
    ):
        consumer.subscribe([source])
        async for batch in consumer.batches(timeout=until_idle or 2.0, stop_when_idle=until_idle is not None):
            results = await asyncio.gather(*map(limited, batch))
            deliveries = [
                await producer.send(target, result, key=record.key)
                for record, result in zip(batch, results, strict=True)
            ]
            for delivery in deliveries:
                await delivery
            await consumer.commit()
            done += len(batch)
    return done


async def price(record: ConsumerRecord) -> bytes:
    """Stands for a query to a database or another service."""
    await asyncio.sleep(0.01)
    return (record.value or b"") + b" for 3 coins"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("bootstrap")
    arguments.add_argument("source")
    arguments.add_argument("target")
    arguments.add_argument("--group", default="asyncio-pipeline")
    arguments.add_argument("--until-idle", type=float, metavar="SECONDS", help="stop after this time without records")
    given = arguments.parse_args()
    try:
        done = asyncio.run(pipeline(given.bootstrap, given.source, given.target, given.group, price, given.until_idle))
        print(f"{done} records processed")
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
