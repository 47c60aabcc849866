"""Sends records as fast as the producer takes them, or at a given rate, and measures each one's latency.

The loop around `send` is what is measured, so it does nothing else: records go out in blocks, and the block's handles
are looked at afterwards. A handle knows its batch, its place there and its time, and neighbours share all three: a few
looks find where a batch ends, and one callback per batch gives the latency of all its records. Records of a block are
the last of their partition, so their batch is not acknowledged before the block is through when the buffer is full.
"""

import sys
import time
from functools import partial
from typing import NamedTuple

from barnabas.cli.data.deliveries import batch_end
from barnabas.cli.data.payloads import Blocks
from barnabas.cli.data.produce_statistics import ProduceStatistics, Run, now_ms
from barnabas.client.errors import ClosedError
from barnabas.client.producer import Producer
from barnabas.client.producer.fast_path import Delivery

BLOCK_RECORDS = 200
SHORTEST_BLOCK_S = 0.01


class Load(NamedTuple):
    topic: str
    throughput: float
    """Records per second, roughly; negative is as many as possible."""
    transaction_ms: int | None = None
    """How long a transaction lasts; None is without."""

    @property
    def block_records(self) -> int:
        if self.throughput < 0:
            return BLOCK_RECORDS
        return max(1, min(BLOCK_RECORDS, int(self.throughput * SHORTEST_BLOCK_S)))


def run_load(producer: Producer, load: Load, blocks: Blocks, statistics: ProduceStatistics) -> None:
    """Returns when all is handed over; what is on its way is known after a flush."""
    send, topic = producer.send, load.topic
    started = time.monotonic()
    transaction_started: int | None = None
    sent = 0
    for block in blocks:
        if load.transaction_ms is not None and transaction_started is None:
            producer.begin_transaction()
            transaction_started = now_ms()
        deliveries = [send(topic, payload) for payload in block]
        _watch(deliveries, block, statistics)
        sent += len(block)
        if transaction_started is not None and now_ms() - transaction_started >= (load.transaction_ms or 0):
            producer.commit_transaction()
            transaction_started = None
        if load.throughput >= 0:
            ahead = sent / load.throughput - (time.monotonic() - started)
            if ahead > 0:
                time.sleep(ahead)
    if transaction_started is not None:
        producer.commit_transaction()


def _watch(deliveries: list[Delivery], payloads: list[bytes], statistics: ProduceStatistics) -> None:
    start = 0
    while start < len(deliveries):
        end = batch_end(deliveries, start)
        run = Run(sum(map(len, payloads[start:end])), _sent(deliveries, start, end))
        deliveries[end - 1].add_callback(partial(_on_done, statistics, run))
        start = end


def _sent(deliveries: list[Delivery], start: int, end: int) -> tuple[tuple[int, int], ...]:
    """How many records were sent in which millisecond; time does not run backwards within a block."""
    sent = []
    while start < end:
        timestamp = deliveries[start].timestamp
        low, high = start + 1, end
        while low < high:
            middle = (low + high) // 2
            if deliveries[middle].timestamp == timestamp:
                low = middle + 1
            else:
                high = middle
        sent.append((timestamp, low - start))
        start = low
    return tuple(sent)


def _on_done(statistics: ProduceStatistics, run: Run, delivery: Delivery) -> None:
    error = delivery.exception(0)
    if error is None:
        statistics.record(run)
    else:
        statistics.fail(run)
        if not isinstance(error, ClosedError):  # Ctrl-C: the command counts what is lost
            print(error, file=sys.stderr)
