"""The warehouse's topics, read by librdkafka as a user would, and judged by the reference implementation.

`check_warehouse` reads everything: the ODS records, and what is committed in the DWD, DIM and dirty topics. Equal means
that each topic has the same rows as often, and the rows of one key have the order of the ODS partition they come from.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition
from warehouse_reference import DIRTY, OdsRecord, Reference, Row, canonical, parse

ODS = ["ods_base_log", "ods_base_db"]


class Summary(NamedTuple):
    ods: int
    rows: dict[str, int]
    """By topic."""

    def __str__(self) -> str:
        return f"{self.ods} ODS records, {sum(self.rows.values())} rows in {len(self.rows)} topics"


def check_warehouse(bootstrap: str, reference: Reference | None = None) -> Summary:
    """Raises AssertionError with what is missing, too much or out of order."""
    source = ods_records(bootstrap)
    expected = (reference or Reference()).all(source)
    found = output_rows(bootstrap)
    compare(expected, found)
    return Summary(len(source), dict(Counter(row.topic for row in found)))


def compare(expected: list[tuple[OdsRecord, Row]], found: list[Row]) -> None:
    """`found` has the order of each output partition; partitions may follow each other in any way."""
    wanted, there = Counter(row for _, row in expected), Counter(found)
    missing, extra = wanted - there, there - wanted
    assert not missing and not extra, (
        f"{missing.total()} rows missing, {extra.total()} too many of {wanted.total()}\n"
        f"missing: {_some(missing)}\ntoo many: {_some(extra)}"
    )
    actual: dict[tuple[str, bytes | None], list[Row]] = defaultdict(list)
    for row in found:
        actual[row.topic, row.key].append(row)
    ordered: dict[tuple[str, bytes | None, str, int], list[Row]] = defaultdict(list)
    for record, row in expected:
        if row.key is not None:  # without a key there is no partition to keep an order in
            ordered[row.topic, row.key, record.topic, record.partition].append(row)
    for (topic, key, *source), rows in ordered.items():
        later = iter(actual[topic, key])
        lost = next((row for row in rows if not any(row == each for each in later)), None)
        assert lost is None, f"{topic}: rows of key {key!r} are not in the order of {source}: {lost}"


def ods_records(bootstrap: str) -> list[OdsRecord]:
    """In the order of each partition."""
    return [OdsRecord(*each[:5]) for each in read_topics(bootstrap, ODS)]


def output_rows(bootstrap: str, topics: list[str] | None = None) -> list[Row]:
    if topics is None:
        topics = [name for name in topic_names(bootstrap) if name.startswith(("dwd_", "dim_")) or name == DIRTY]
    return [_row(*each) for each in read_topics(bootstrap, topics)]


def topic_names(bootstrap: str) -> list[str]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "nobody"})
    try:
        return sorted(consumer.list_topics(timeout=30).topics)
    finally:
        consumer.close()


Fetched = tuple[Any, ...]
"""topic, partition, offset, key, value, headers"""


def read_topics(bootstrap: str, topics: list[str]) -> list[Fetched]:
    """What is committed, to the end of each partition."""
    options: dict[str, Any] = {"bootstrap.servers": bootstrap, "group.id": "nobody", "enable.auto.commit": False}
    options |= {"isolation.level": "read_committed", "enable.partition.eof": True, "check.crcs": True}
    # The end of a partition is told with the response that has nothing more, which may wait so long.
    options["fetch.wait.max.ms"] = 10
    consumer = Consumer(options)
    try:
        known = consumer.list_topics(timeout=30).topics
        left = {(topic, number) for topic in topics for number in known[topic].partitions}
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for topic, number in sorted(left)])
        found: list[Fetched] = []
        while left:
            for message in consumer.consume(10_000, timeout=0.1):
                error = message.error()
                if error is None:
                    place = (message.topic(), message.partition(), message.offset())
                    found.append((*place, message.key(), message.value(), message.headers()))
                elif error.code() == KafkaError._PARTITION_EOF:
                    left.discard((message.topic(), message.partition()))
                else:
                    assert error.retriable(), error
        return found
    finally:
        consumer.close()


def _row(
    topic: str,
    partition: int,
    offset: int,
    key: bytes | None,
    value: bytes | None,
    headers: list[tuple[str, bytes]] | None,
) -> Row:
    if topic == DIRTY:
        told = {name: text.decode() for name, text in headers or []}
        assert told.keys() == {"reason", "topic", "partition", "offset"} and told["reason"], told
        return Row(topic, key, value, (told["topic"], int(told["partition"]), int(told["offset"])))
    assert not headers, f"{topic}-{partition} offset {offset} has headers: {headers}"
    return Row(topic, key, None if value is None else canonical(parse(value)))


def _some(rows: Counter[Row]) -> str:
    by_topic = dict(Counter(row.topic for row in rows.elements()))
    return f"{by_topic}" + "".join(f"\n  {count} x {str(row)[:400]}" for row, count in list(rows.items())[:3])
