"""Reads a number of records as a member of a group, measures how fast, and has Kafka's lines about it."""

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import NamedTuple

from barnabas.cli.data.java_text import date_text, fixed, ratio
from barnabas.cli.data.produce_statistics import now_ms
from barnabas.cli.progress import Progress
from barnabas.client.consumer import Consumer, RebalanceListener
from barnabas.records.codec import ConsumerRecord
from barnabas.types import TopicPartition

POLL_S = 0.1
NEW_FIELDS = "rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
FIELDS = f"data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, {NEW_FIELDS}"
DEFAULT_DATE_FORMAT = "yyyy-MM-dd HH:mm:ss:SSS"

_value_size = attrgetter("serialized_value_size")
_key_size = attrgetter("serialized_key_size")


class ReadLoad(NamedTuple):
    topic: str
    messages: int
    timeout_ms: int = 10_000
    """Gives up when nothing came for so long."""
    reporting_interval_ms: int = 5000
    detailed: bool = False
    date_format: str = DEFAULT_DATE_FORMAT

    def header(self) -> str:
        return f"time, threadId, {FIELDS}" if self.detailed else f"start.time, end.time, {FIELDS}"


class ReadTotals(NamedTuple):
    start_ms: int
    end_ms: int
    size: int
    messages: int
    rebalance_ms: int
    complete: bool

    @property
    def fetch_ms(self) -> int:
        return self.end_ms - self.start_ms - self.rebalance_ms


class _Rebalances(RebalanceListener):
    """How long this member had to wait for its partitions."""

    def __init__(self, started_ms: int) -> None:
        self._since_ms = started_ms
        self.total_ms = 0
        self.round_ms = 0

    def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        self._since_ms = now_ms()

    def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        waited = now_ms() - self._since_ms
        self.total_ms += waited
        self.round_ms += waited


def read_load(
    consumer: Consumer, load: ReadLoad, report: Callable[[str], None], progress: Progress | None = None
) -> ReadTotals:
    start = reported_ms = consumed_ms = now = now_ms()
    rebalances = _Rebalances(start)
    consumer.subscribe([load.topic], rebalances)
    messages = size = reported_messages = reported_size = 0
    while messages < load.messages and now - consumed_ms <= load.timeout_ms:
        records = consumer.poll(POLL_S)
        now = now_ms()
        if not records:
            continue
        consumed_ms = now
        messages += len(records)
        read = _size(records)
        size += read
        if progress is not None:
            progress.add(read, len(records))
        if now - reported_ms >= load.reporting_interval_ms:
            if load.detailed:
                window = ReadTotals(
                    reported_ms, now, size - reported_size, messages - reported_messages, rebalances.round_ms, True
                )
                report(_window_line(load, window, size, messages))
            rebalances.round_ms = 0
            reported_ms, reported_messages, reported_size = now, messages, size
    return ReadTotals(start, now_ms(), size, messages, rebalances.total_ms, messages >= load.messages)


def total_line(load: ReadLoad, totals: ReadTotals) -> str:
    megabytes = totals.size / 2**20
    elapsed_s = (totals.end_ms - totals.start_ms) / 1000.0
    fetch_s = totals.fetch_ms / 1000.0
    return ", ".join(
        [
            date_text(totals.start_ms, load.date_format),
            date_text(totals.end_ms, load.date_format),
            fixed(megabytes, 4),
            fixed(ratio(megabytes, elapsed_s), 4),
            str(totals.messages),
            fixed(ratio(totals.messages, elapsed_s), 4),
            str(totals.rebalance_ms),
            str(totals.fetch_ms),
            fixed(ratio(megabytes, fetch_s), 4),
            fixed(ratio(totals.messages, fetch_s), 4),
        ]
    )


def too_few_line(load: ReadLoad, option: str) -> str:
    """`option` is what a longer time is given with."""
    return (
        "WARNING: Exiting before consuming the expected number of messages:"
        f" timeout ({load.timeout_ms} ms) exceeded. You can use the {option} option to increase the timeout."
    )


def _window_line(load: ReadLoad, window: ReadTotals, size: int, messages: int) -> str:
    elapsed = window.end_ms - window.start_ms
    megabytes = window.size / 2**20
    fetch_ms = window.fetch_ms
    return ", ".join(
        [
            date_text(window.end_ms, load.date_format),
            "0",
            fixed(size / 2**20, 4),
            fixed(ratio(1000.0 * megabytes, elapsed), 4),
            str(messages),
            fixed(ratio(window.messages * 1000.0, elapsed), 4),
            str(window.rebalance_ms),
            str(fetch_ms),
            fixed(1000.0 * megabytes / fetch_ms if fetch_ms > 0 else 0.0, 4),
            fixed(1000.0 * window.messages / fetch_ms if fetch_ms > 0 else 0.0, 4),
        ]
    )


def _size(records: list[ConsumerRecord]) -> int:
    """Bytes of keys and values without a step of Python for each record; null is -1 and counts nothing."""
    total = 0
    for getter in (_value_size, _key_size):
        sizes = list(map(getter, records))
        total += sum(sizes)
        if min(sizes) < 0:
            total += sizes.count(-1)
    return total
