"""The demo's check must see whatever can go wrong: a row lost, a row twice, a row of nowhere, rows in another order."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from barnabas import Admin, Producer
from barnabas.pipeline.demo import summary
from barnabas.pipeline.demo_check import Row, check, expected_rows, found_rows
from barnabas.pipeline.demo_reading import ReadingError, RecordCounter, read_all
from barnabas.pipeline.generator import GeneratorOptions, generate
from barnabas.pipeline.ods_records import DIRTY_TOPIC
from barnabas.pipeline.routing import parse_routing
from barnabas.pipeline.warehouse import DEFAULT_ROUTING, topics
from barnabas.testing import Broker
from barnabas.types import TopicPartition

ROUTING = parse_routing(DEFAULT_ROUTING)
SOURCE = TopicPartition("ods_base_log", 0)


def row(topic: str, key: str | None, value: str, source: TopicPartition = SOURCE, offset: int = 0) -> Row:
    return Row(topic, None if key is None else key.encode(), value.encode(), (), source, offset)


ROWS = [row("a", "k", "1"), row("a", "k", "2"), row("a", "l", "1"), row("a", "l", "1"), row("b", None, "x")]


def without(number: int) -> list[Row]:
    return [each for place, each in enumerate(ROWS) if place != number]


class TestComparison:
    def test_the_same_rows(self) -> None:
        results = check(lambda: ROWS, lambda: ROWS, ["b", "a", "empty"])
        assert [(each.topic, each.expected, each.found, each.is_ok) for each in results] == [
            ("b", 1, 1, True),
            ("a", 4, 4, True),
            ("empty", 0, 0, True),
        ]
        assert summary(results)[-1].startswith("exact")

    @pytest.mark.parametrize("number", range(len(ROWS)))
    def test_a_row_that_is_missing(self, number: int) -> None:
        results = {each.topic: each for each in check(lambda: ROWS, lambda: without(number), ["a", "b"])}
        wrong = results.pop(ROWS[number].topic)
        assert (wrong.missing, wrong.twice, wrong.strange, wrong.is_ok) == (1, 0, 0, False)
        assert wrong.examples == [f"missing: from ods_base_log-0@0, key {(ROWS[number].key or b'none').decode()}"]
        assert all(each.is_ok for each in results.values())
        assert any("1 missing" in line for line in summary([wrong])) and "NOT" in summary([wrong])[-1]

    @pytest.mark.parametrize("number", range(len(ROWS)))
    def test_a_row_that_is_there_twice(self, number: int) -> None:
        wrong = next(each for each in check(lambda: ROWS, lambda: [*ROWS, ROWS[number]], "ab") if not each.is_ok)
        assert (wrong.topic, wrong.missing, wrong.twice, wrong.strange) == (ROWS[number].topic, 0, 1, 0)
        assert len(wrong.examples) == 1

    def test_one_lost_and_another_twice_is_not_equal_though_the_count_is(self) -> None:
        (wrong,) = (each for each in check(lambda: ROWS, lambda: [*without(0), ROWS[1]], "ab") if not each.is_ok)
        assert (wrong.expected, wrong.found, wrong.missing, wrong.twice) == (4, 4, 1, 1)

    def test_a_row_of_nowhere_and_a_topic_of_nowhere(self) -> None:
        found = [*ROWS, row("a", "k", "3"), row("other", "k", "1")]
        results = {each.topic: each for each in check(lambda: ROWS, lambda: found, ["a", "b"])}
        assert (results["a"].strange, results["other"].strange, results["b"].is_ok) == (1, 1, True)

    def test_headers_count(self) -> None:
        headers = (("reason", b"not JSON"),)
        results = check(lambda: ROWS, lambda: [each._replace(headers=headers) for each in ROWS], ["a", "b"])
        assert not any(each.is_ok for each in results)

    def test_the_order_of_a_key(self) -> None:
        disordered = [ROWS[1], ROWS[0], *ROWS[2:]]
        (wrong,) = (each for each in check(lambda: ROWS, lambda: disordered, "ab") if not each.is_ok)
        assert (wrong.missing, wrong.twice, wrong.disordered, wrong.words) == (0, 0, 1, "1 keys in another order")
        other_keys_first = [*ROWS[2:], *ROWS[:2]]
        assert all(each.is_ok for each in check(lambda: ROWS, lambda: other_keys_first, "ab"))

    def test_a_key_of_two_source_partitions_has_no_order(self) -> None:
        rows = [row("a", "k", "1"), row("a", "k", "2", TopicPartition("ods_base_log", 1))]
        assert all(each.is_ok for each in check(lambda: rows, lambda: rows[::-1], "a"))


class Warehouse(NamedTuple):
    bootstrap: str
    written: list[str]

    def expected(self) -> Iterator[Row]:
        return expected_rows(self.bootstrap, ROUTING)

    def found(self) -> Iterator[Row]:
        return found_rows(self.bootstrap, self.written)


@pytest.fixture(scope="module")
def warehouse() -> Iterator[Warehouse]:
    """Generated ODS records, and what the rules make of them, written to the topics in one transaction."""
    with Broker() as broker:
        plans = topics(ROUTING, with_sources=True)
        with Admin(broker.bootstrap) as admin:
            for plan in plans:
                admin.create_topic(plan.name, plan.partitions, config=plan.config)
        with Producer(broker.bootstrap) as producer:
            options = GeneratorOptions(seed=7, devices=50, dirty=0.05, duplicates=0.05)
            for record in itertools.islice(generate(options), 1500):
                producer.send(record.topic, record.value, record.key)
        warehouse = Warehouse(broker.bootstrap, [plan.name for plan in plans if not plan.name.startswith("ods_base")])
        with Producer(broker.bootstrap, transactional_id="pipeline") as producer:
            with producer.transaction():
                for each in warehouse.expected():
                    producer.send(each.topic, each.value, each.key, headers=list(each.headers))
            with pytest.raises(ZeroDivisionError), producer.transaction():
                producer.send("dwd_page_log", b"aborted").result()
                raise ZeroDivisionError
        yield warehouse


class TestAgainstABroker:
    def test_what_was_written_by_the_rules_is_exact(self, warehouse: Warehouse) -> None:
        results = check(warehouse.expected, warehouse.found, warehouse.written)
        assert [each for each in results if not each.is_ok] == []
        counts = {each.topic: each.found for each in results}
        assert set(counts) == set(warehouse.written)
        assert min(counts["dwd_page_log"], counts["dwd_order_info"], counts["dim_user_info"], counts[DIRTY_TOPIC]) > 10

    def test_a_record_that_is_lost_or_twice_is_noticed_in_any_topic(self, warehouse: Warehouse) -> None:
        expected, found = list(warehouse.expected()), list(warehouse.found())
        first = {each.topic: number for number, each in reversed(list(enumerate(found)))}
        topics = sorted(first)
        for lost in (topics[::2], topics[1::2]):
            doubled = [topic for topic in topics if topic not in lost]
            gone = {first[topic] for topic in lost}
            tampered = [each for number, each in enumerate(found) if number not in gone]
            tampered += [found[first[topic]] for topic in doubled]
            wrong = [each for each in check(lambda: expected, lambda: tampered, ()) if not each.is_ok]  # noqa: B023
            told = {each.topic: each.words for each in wrong}
            assert told == dict.fromkeys(lost, "1 missing") | dict.fromkeys(doubled, "1 duplicate")

    def test_a_dirty_record_tells_its_origin(self, warehouse: Warehouse) -> None:
        dirty = [each for each in warehouse.found() if each.topic == DIRTY_TOPIC]
        assert dirty
        for each in dirty:
            assert [name for name, _ in each.headers] == ["reason", "topic", "partition", "offset"]

    def test_the_counter_counts_what_is_committed(self, warehouse: Warehouse) -> None:
        names = [*warehouse.written, "ods_base_log", "ods_base_db"]
        with RecordCounter(warehouse.bootstrap, names) as counter:
            while counter.counts.total() < 1500 + len(list(warehouse.found())):
                counter.count_for(0.05)
            counter.count_for(0.2)
        assert counter.counts["ods_base_log"] + counter.counts["ods_base_db"] == 1500
        rows = Counter(each.topic for each in warehouse.found())
        assert {name: counter.counts[name] for name in warehouse.written} == {
            name: rows[name] for name in warehouse.written
        }

    def test_what_retention_has_removed_cannot_be_checked(self, warehouse: Warehouse) -> None:
        with Admin(warehouse.bootstrap) as admin, Producer(warehouse.bootstrap) as producer:
            admin.create_topic("shortened", 1)
            for _ in range(3):
                producer.send("shortened", b"x").result()
            admin.delete_records({TopicPartition("shortened", 0): 2})
        with pytest.raises(ReadingError, match=r"begins at 2"):
            list(read_all(warehouse.bootstrap, ["shortened"]))
