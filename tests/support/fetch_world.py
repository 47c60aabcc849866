"""A fetcher over a cluster of functions, with the buffer and the collector behind it, for tests of the three."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from fake_cluster import FakeCluster

from barnabas.client.consumer.collector import Collector
from barnabas.client.consumer.fetch_buffer import FetchBuffer
from barnabas.client.consumer.fetcher import Fetcher
from barnabas.client.consumer.offsets import EARLIEST
from barnabas.client.consumer.partition_state import PartitionState
from barnabas.client.consumer.subscription import SubscriptionState
from barnabas.client.options import ConsumerOptions
from barnabas.clock import SystemClock
from barnabas.errors import ErrorCode
from barnabas.protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from barnabas.types import TopicPartition

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
TOPIC_ID = b"t".ljust(16, b"-")
SESSION = 55


class World:
    def __init__(self, cluster: FakeCluster, reset: Any = EARLIEST, **options: Any) -> None:
        self.cluster = cluster
        self.arrivals = asyncio.Event()
        self.stale = 0
        self.subscription = SubscriptionState(reset)
        self.buffer = FetchBuffer(self.subscription)
        made = ConsumerOptions.of("fake:9092", **{"retry_backoff_ms": 1, "retry_backoff_max_ms": 1, **options})
        self.fetcher = Fetcher(
            cluster,  # type: ignore[arg-type]
            self.subscription,
            self.buffer,
            made,
            SystemClock(),
            on_arrival=self.arrivals.set,
            on_stale_metadata=self._on_stale,
        )
        self.collector = Collector(self.subscription, self.buffer)

    def _on_stale(self) -> None:
        self.stale += 1

    def assign(self, *partitions: TopicPartition) -> None:
        self.subscription.assign(partitions)
        for entry in partitions:
            self.subscription.seek(entry, 0)
            leader = self.cluster.metadata.leader(entry)
            assert leader is not None
            self[entry].check_leader(leader.node_id, leader.leader_epoch, TOPIC_ID)

    def __getitem__(self, entry: TopicPartition) -> PartitionState:
        return self.subscription.state(entry)

    async def taken(self, count: int) -> list[bytes]:
        seen: list[bytes] = []
        while len(seen) < count:
            self.arrivals.clear()
            chunks = self.collector.take(500)
            seen += [record.value for chunk in chunks for record in chunk.records]
            if self.buffer.made_room():
                self.fetcher.kick()
            if len(seen) < count:
                await self.arrivals.wait()
        return seen


def answer(
    partitions: dict[TopicPartition, bytes] | None = None, *, session_id: int = SESSION, **about: Any
) -> FetchResponse:
    data = [
        PartitionData(
            partition_index=entry.partition,
            error_code=0,
            high_watermark=100,
            last_stable_offset=100,
            log_start_offset=0,
            aborted_transactions=None,
            records=records,
            **about,
        )
        for entry, records in (partitions or {}).items()
    ]
    topics = [FetchableTopicResponse(topic="t", topic_id=TOPIC_ID, partitions=data)] if data else []
    return FetchResponse(session_id=session_id, responses=topics)


def failed(error: ErrorCode, **about: Any) -> FetchResponse:
    response = answer({A: b""}, **about)
    response.responses[0].partitions[0].error_code = int(error)
    return response


async def never(*_: Any) -> Any:
    await asyncio.Event().wait()


async def until(condition: Callable[[], object]) -> None:
    while not condition():  # noqa: ASYNC110 - there is no event for what is looked at
        await asyncio.sleep(0)


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(20):
            await test()

    asyncio.run(main())


def asked(request: FetchRequest) -> dict[int, int]:
    return {each.partition: each.fetch_offset for topic in request.topics for each in topic.partitions}
