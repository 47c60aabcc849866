"""What a task of the sink does, without a Spark session: notes, replays, zombies, failures at every step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from barnabas import Admin, Consumer
from barnabas.errors import KafkaError
from barnabas.spark import writing
from barnabas.spark.options import SinkOptions, read_sink_options
from barnabas.spark.writing import ReplayError, TaskWriter, Written, write_task

NewTopic = Callable[..., str]


_lost: list[TaskWriter] = []
"""Of workers that are gone: kept, because a client that nobody has any more ends what it was at."""


@pytest.fixture(autouse=True)
def no_clients_left() -> Iterator[None]:
    yield
    lose_the_worker()
    for writer in _lost:
        writer.close()
    _lost.clear()
    for producer in writing._plain.values():
        producer.close(0)
    writing._plain.clear()


def options_of(bootstrap: str, **more: str) -> SinkOptions:
    return read_sink_options({"kafka.bootstrap.servers": bootstrap, **more})


def rows_of(topic: str, *values: str) -> pa.RecordBatch:
    return pa.record_batch([pa.array(values), pa.array([topic] * len(values))], names=["value", "topic"])


def committed(bootstrap: str, topic: str) -> list[str]:
    with Consumer(bootstrap, isolation_level="read_committed", auto_offset_reset="earliest") as consumer:
        tp = (topic, 0)
        consumer.assign([tp])
        end = consumer.end_offsets([tp])[tp]
        values: list[str] = []
        while consumer.position(tp) < end:
            values += [each.decode() for each in consumer.poll_arrow(0.1).column("value").to_pylist()]
    return values


def lose_the_worker() -> None:
    """What it kept is gone; its transaction, if one is open, stays open."""
    _lost.extend(writing._writers.values())
    writing._writers.clear()


@pytest.mark.parametrize("worker", ["the same worker", "another worker"])
def test_a_replay_writes_nothing(bootstrap: str, new_topic: NewTopic, name: str, worker: str) -> None:
    topic, options = new_topic(), options_of(bootstrap)
    batches = [rows_of(topic, "a", "b"), rows_of(topic), rows_of(topic, "c")]
    assert write_task(iter(batches), options, name, 7, 0) == Written(3, 3)
    if worker == "another worker":
        lose_the_worker()
    assert write_task(iter([rows_of(topic, "a", "b", "c")]), options, name, 7, 0) == Written(3, 3, replayed=True)
    assert write_task(iter([rows_of(topic, "d")]), options, name, 8, 0) == Written(1, 1)
    assert write_task(iter([rows_of(topic, "e")]), options, name, 8, 1) == Written(1, 1), "a task of its own"
    assert write_task(iter([]), options, name, 9, 0) == Written(0, 0)
    assert committed(bootstrap, topic) == ["a", "b", "c", "d", "e"]
    with Admin(bootstrap) as admin:
        notes = admin.list_group_offsets(f"__barnabas_sink.barnabas-sink-{name}-0")
    assert [(note.offset, note.metadata) for note in notes.values() if note] == [(9, "1 rows, 1 bytes")]


def test_the_newest_note_counts_whatever_topic_it_names(bootstrap: str, new_topic: NewTopic, name: str) -> None:
    one, two, options = new_topic(), new_topic(), options_of(bootstrap)
    write_task(iter([rows_of(one, "a")]), options, name, 0, 0)
    write_task(iter([rows_of(two, "b")]), options, name, 1, 0)
    assert write_task(iter([rows_of(one, "b")]), options, name, 1, 0).replayed
    assert (committed(bootstrap, one), committed(bootstrap, two)) == (["a"], ["b"])


def test_other_rows_in_a_replay_are_refused(bootstrap: str, new_topic: NewTopic, name: str) -> None:
    topic, options = new_topic(), options_of(bootstrap)
    write_task(iter([rows_of(topic, "a", "b")]), options, name, 3, 0)
    for rows in (rows_of(topic, "a"), rows_of(topic, "a", "bb")):
        with pytest.raises(ReplayError, match=r"batch 3 of .* was written with 2 rows, 2 bytes, and now has"):
            write_task(iter([rows]), options, name, 3, 0)
    assert committed(bootstrap, topic) == ["a", "b"]


def test_a_batch_older_than_what_is_written_is_refused(bootstrap: str, new_topic: NewTopic, name: str) -> None:
    """Skipped in silence, the rows of a checkpoint that was put back would be lost: they are others than then."""
    topic, options = new_topic(), options_of(bootstrap)
    for batch in (3, 4):
        write_task(iter([rows_of(topic, "a")]), options, name, batch, 0)
    with pytest.raises(ReplayError, match=r"batch 3 of .* arrived although batch 4 is written"):
        write_task(iter([rows_of(topic, "b", "c")]), options, name, 3, 0)
    assert committed(bootstrap, topic) == ["a", "a"]


def test_rows_that_fail_halfway_leave_nothing(bootstrap: str, new_topic: NewTopic, name: str) -> None:
    topic, options = new_topic(), options_of(bootstrap)

    def failing() -> Iterator[pa.RecordBatch]:
        yield rows_of(topic, *["never"] * 5000)
        raise ZeroDivisionError

    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            write_task(failing(), options, name, 0, 0)
    write_task(iter([rows_of(topic, "a")]), options, name, 0, 0)
    assert committed(bootstrap, topic) == ["a"]


@pytest.mark.parametrize("step", ["rows", "offsets"])
def test_a_worker_that_died_in_its_transaction(bootstrap: str, new_topic: NewTopic, name: str, step: str) -> None:
    """And one that only seemed dead: what it commits afterwards is refused."""
    topic, options = new_topic(), options_of(bootstrap)
    zombie = TaskWriter(f"barnabas-sink-{name}-0", options)
    try:
        zombie.begin()
        zombie.producer.begin_transaction()
        zombie.producer.send_arrow(rows_of(topic, "zombie")).result(30)
        if step == "offsets":
            zombie.producer.send_offsets({(topic, 0): 1}, zombie.group)
        assert write_task(iter([rows_of(topic, "a")]), options, name, 0, 0) == Written(1, 1)
        with pytest.raises(KafkaError):
            zombie.producer.commit_transaction()
    finally:
        zombie.close()
    assert committed(bootstrap, topic) == ["a"]


def test_two_workers_in_turns(bootstrap: str, new_topic: NewTopic, name: str) -> None:
    """Each keeps its producer, and takes the transactional id back when it is its turn."""
    topic, options = new_topic(), options_of(bootstrap)
    kept: list[Any] = [{}, {}]
    for batch in range(6):
        writing._writers.clear()
        writing._writers.update(kept[batch % 2])
        write_task(iter([rows_of(topic, str(batch))]), options, name, batch, 0)
        kept[batch % 2] = dict(writing._writers)
    writing._writers.clear()
    for each in kept:
        assert len(each) == 1
        next(iter(each.values())).close()
    assert committed(bootstrap, topic) == [str(batch) for batch in range(6)]


def test_at_least_once(bootstrap: str, new_topic: NewTopic, name: str) -> None:
    topic = new_topic()
    options = options_of(bootstrap, delivery="at-least-once", topic=topic)
    for _ in range(2):
        assert write_task(iter([rows_of("nowhere", "a"), rows_of("nowhere", "bb")]), options, name, 0, 0) == Written(
            2, 3
        )
    assert committed(bootstrap, topic) == ["a", "bb", "a", "bb"]
    with pytest.raises(KafkaError, match="larger than"):
        write_task(iter([rows_of(topic, "x" * 2_000_000)]), options, name, 0, 0)
    assert write_task(iter([rows_of(topic, "c")]), options, name, 1, 0) == Written(1, 1)
