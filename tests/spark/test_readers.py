"""The readers by themselves, without a Spark session: what they plan, refuse and tell, against a broker."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from confluent import produce_all
from confluent_kafka.admin import AdminClient
from eventually import eventually
from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from barnabas import Consumer, Producer
from barnabas.client.errors import ConfigError, UnknownTopicError
from barnabas.spark.data_loss import DataLossError
from barnabas.spark.data_source import BarnabasDataSource, source_schema
from barnabas.spark.options import read_source_options
from barnabas.spark.planning import OffsetRange
from barnabas.spark.source import BatchReader, StreamReader
from barnabas.spark.tasks import read_range, read_ranges

NewTopic = Callable[..., str]


def stream(bootstrap: str, **options: str) -> StreamReader:
    return StreamReader(read_source_options({"kafka.bootstrap.servers": bootstrap, **options}))


def ranges(tasks: Any) -> list[tuple[int, int, int]]:
    return [(each.partition, each.start, each.end) for task in tasks for each in task.value]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"startingOffsets": {"0": 1}}, "-1 is missing"),
        ({"startingOffsets": {"0": 1, "1": 0, "7": 0}}, "-7 is not read"),
        ({"assign": [5]}, "has 2 partitions, so there is no 5"),
        ({"startingTimestamp": "99999999999999"}, "has no record from that time on"),
    ],
)
def test_offsets_that_do_not_fit(bootstrap: str, new_topic: NewTopic, options: dict[str, Any], words: str) -> None:
    topic = new_topic(partitions=2)
    given = {name: each if isinstance(each, str) else json.dumps({topic: each}) for name, each in options.items()}
    if "assign" not in given:
        given["subscribe"] = topic
    with pytest.raises(ConfigError, match=words):
        BatchReader(read_source_options({"kafka.bootstrap.servers": bootstrap, **given})).partitions()


def test_nothing_to_read_is_no_rows() -> None:
    """Spark stands in for a plan without partitions with one that says nothing."""
    reader = BatchReader(read_source_options({"kafka.bootstrap.servers": "nowhere:1", "subscribe": "t"}))
    assert list(reader.read(InputPartition(None))) == []


def test_only_for_streams_and_only_for_batches() -> None:
    options = {"kafka.bootstrap.servers": "nowhere:1", "subscribe": "t"}
    schema = source_schema(False)
    for more in ({"maxOffsetsPerTrigger": "1"}, {"groupId": "g"}, {"startingOffsets": "latest"}):
        with pytest.raises(ConfigError, match=r"only for streams|cannot start at latest"):
            BarnabasDataSource({**options, **more}).reader(schema)
    with pytest.raises(ConfigError, match="a stream has no end"):
        BarnabasDataSource({**options, "endingOffsets": "latest"}).streamReader(schema)
    with pytest.raises(ConfigError, match="columns of this source are fixed"):
        BarnabasDataSource(options).reader(source_schema(True))


def test_a_batch_waits_for_enough_but_not_forever(bootstrap: str, new_topic: NewTopic) -> None:
    topic = new_topic()
    patient = stream(bootstrap, subscribe=topic, startingOffsets="earliest", minOffsetsPerTrigger="3")
    hasty = stream(
        bootstrap, subscribe=topic, startingOffsets="earliest", minOffsetsPerTrigger="3", maxTriggerDelay="1ms"
    )
    start = patient.initialOffset()
    produce_all(bootstrap, topic, [b"a", b"b"])
    assert patient.latestOffset(start, ReadAllAvailable()) == start
    hasty.latestOffset(start, ReadAllAvailable())
    eventually(lambda: hasty.latestOffset(start, ReadAllAvailable()) != start)
    produce_all(bootstrap, topic, [b"c"])
    end = patient.latestOffset(start, ReadAllAvailable())
    assert ranges(patient.partitions(start, end)) == [(0, 0, 3)]
    for reader in (patient, hasty):
        reader.stop()


def test_a_replayed_batch_has_the_same_tasks(bootstrap: str, new_topic: NewTopic) -> None:
    topic = new_topic(partitions=2)
    for partition in (0, 1):
        produce_all(bootstrap, topic, [b"v"] * 10, partition)
    options = {"subscribe": topic, "startingOffsets": "earliest", "minPartitions": "5"}
    first = stream(bootstrap, **options)
    start = first.initialOffset()
    end = first.latestOffset(start, ReadMaxRows(15))
    planned = ranges(first.partitions(start, end))
    # 2.5 for each of the two, rounded up: about minPartitions, as the official connector has it.
    assert len(planned) == 6 and sum(last - begin for _, begin, last in planned) <= 15
    produce_all(bootstrap, topic, [b"v"] * 10)
    again = pickle.loads(pickle.dumps(first))
    assert ranges(again.partitions(json.loads(json.dumps(start)), json.loads(json.dumps(end)))) == planned
    assert first.getDefaultReadLimit() == ReadAllAvailable()
    for reader in (first, again):
        reader.stop()


def test_several_partitions_in_a_task(bootstrap: str, new_topic: NewTopic) -> None:
    topic = new_topic(partitions=5)
    for partition in range(5):
        produce_all(bootstrap, topic, [b"%d" % partition] * (3 + partition), partition)
    options = {"subscribe": topic, "startingOffsets": "earliest", "maxTasks": "2"}
    reader = stream(bootstrap, **options)
    start = reader.initialOffset()
    tasks = reader.partitions(start, reader.latestOffset(start, ReadAllAvailable()))
    assert [[(each.partition, each.end) for each in task.value] for task in tasks] == [
        [(0, 3), (1, 4), (4, 7)],
        [(2, 5), (3, 6)],
    ]
    rows = [batch for task in tasks for batch in reader.read(task)]
    assert all(len(set(batch.column("partition").to_pylist())) == 1 for batch in rows)
    values = [value for batch in rows for value in batch.column("value").to_pylist()]
    assert sorted(values) == sorted(b"%d" % partition for partition in range(5) for _ in range(3 + partition))
    reader.stop()


def test_the_lag_is_reported_with_and_without_new_records(bootstrap: str, new_topic: NewTopic) -> None:
    topic = new_topic()
    reader = stream(bootstrap, subscribe=topic, startingOffsets="earliest", groupId=f"{topic}-g")
    produce_all(bootstrap, topic, [b"v"] * 4)
    end = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())

    def committed() -> Any:
        with Consumer(bootstrap, group_id=f"{topic}-g") as consumer:
            return {tp: each and each.offset for tp, each in consumer.committed([(topic, 0)]).items()}

    assert committed() == {(topic, 0): 0}
    reader.latestOffset(end, ReadAllAvailable())  # the batch is done, and there is nothing new
    assert committed() == {(topic, 0): 4}
    reader.stop()


def test_a_topic_that_is_deleted(bootstrap: str, judge: AdminClient, new_topic: NewTopic) -> None:
    topic, other = new_topic(), new_topic()
    produce_all(bootstrap, topic, [b"v"] * 4)
    pattern = f"{topic}|{other}"
    reader = stream(bootstrap, subscribePattern=pattern, startingOffsets="earliest")
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadAllAvailable())
    (task,) = reader.partitions(start, end)
    judge.delete_topics([topic])[topic].result(30)
    eventually(lambda: topic not in judge.list_topics(timeout=10).topics)
    options = {"subscribe": topic, "kafkaConsumer.pollTimeoutMs": "20000"}
    with pytest.raises(DataLossError, match="offsets 0 to 3 are lost: the topic was deleted"):
        list(stream_read(bootstrap, task, **options))
    assert list(stream_read(bootstrap, task, failOnDataLoss="false", **options)) == []
    assert reader.latestOffset(end, ReadAllAvailable()) == end, "what is gone stays where it was"
    named = stream(bootstrap, subscribe=topic)
    with pytest.raises(UnknownTopicError, match=topic):
        named.initialOffset()
    for each in (reader, named):
        each.stop()


def test_a_group_that_cannot_be_reported_ends_no_query(bootstrap: str, judge: AdminClient, new_topic: NewTopic) -> None:
    topic, other = new_topic(), new_topic()
    options = {"subscribePattern": f"{topic}|{other}", "startingOffsets": "earliest", "groupId": f"{topic}-g"}
    reader = stream(bootstrap, **options)
    end = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    judge.delete_topics([other])[other].result(30)
    eventually(lambda: other not in judge.list_topics(timeout=10).topics)
    produce_all(bootstrap, topic, [b"v"] * 4)
    end = reader.latestOffset(end, ReadAllAvailable())
    end = reader.latestOffset(end, ReadAllAvailable())
    reader.commit(end)  # with the topic that is gone
    with Consumer(bootstrap, group_id=f"{topic}-g") as consumer:
        (committed,) = consumer.committed([(topic, 0)]).values()
        assert committed is not None and committed.offset == 4
    reader.stop()


def test_a_log_that_lost_its_end(bootstrap: str, new_topic: NewTopic) -> None:
    topic = new_topic()
    produce_all(bootstrap, topic, [b"v"] * 4)
    options = {"subscribe": topic, "startingOffsets": "earliest", "fetchOffset.retryIntervalMs": "1"}
    strict, lenient = stream(bootstrap, **options), stream(bootstrap, failOnDataLoss="false", **options)
    start = strict.initialOffset()
    start[topic]["0"] = 10
    for limit in (ReadAllAvailable(), ReadMaxRows(3)):
        with pytest.raises(DataLossError, match="ends at 4, although offsets up to 9 were read"):
            strict.latestOffset(start, limit)
    end = lenient.latestOffset(start, ReadAllAvailable())
    assert end[topic]["0"] == 4
    assert lenient.partitions(start, end) == []
    produce_all(bootstrap, topic, [b"w"])
    assert ranges(lenient.partitions(end, lenient.latestOffset(end, ReadAllAvailable()))) == [(0, 4, 5)]
    for each in (strict, lenient):
        each.stop()


def test_a_batch_that_is_done_again_on_another_topic(bootstrap: str, new_topic: NewTopic) -> None:
    topic = new_topic()
    produce_all(bootstrap, topic, [b"v"] * 4)
    options = {"subscribe": topic, "startingOffsets": "earliest"}
    strict, lenient = stream(bootstrap, **options), stream(bootstrap, failOnDataLoss="false", **options)
    start = strict.initialOffset()
    end = strict.latestOffset(start, ReadAllAvailable())
    for position in (start, end):
        position[topic]["topicId"] = "AAAAAAAAAAAAAAAAAAAAAQ"
    restarted = stream(bootstrap, **options)
    with pytest.raises(DataLossError, match="was deleted and recreated"):
        restarted.partitions(start, end)
    assert lenient.partitions(start, end) == []
    for position in (start, end):
        position[topic]["topicId"] = "AAAAAAAAAAAAAAAAAAAAAA"  # brokers before 2.8 have no ids
    assert ranges(restarted.partitions(start, end)) == [(0, 0, 4)]
    assert ranges(restarted.partitions(start, restarted.latestOffset(start, ReadAllAvailable()))) == [(0, 0, 4)]
    for each in (strict, lenient, restarted):
        each.stop()


def stream_read(bootstrap: str, task: Any, **options: str) -> Any:
    given = read_source_options({"kafka.bootstrap.servers": bootstrap, **options})
    return read_ranges(task.value, given, task.topic_ids)


def test_markers_at_the_end_cost_no_waiting(
    bootstrap: str, new_topic: NewTopic, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = new_topic()
    with Producer(bootstrap, transactional_id=name) as producer:
        for _ in range(3):
            with producer.transaction():
                producer.send(topic, b"v")
        with pytest.raises(ZeroDivisionError), producer.transaction():
            producer.send(topic, b"never").result(30)
            raise ZeroDivisionError
    waits: list[float] = []
    poll = Consumer.poll_arrow

    def counted(self: Consumer, timeout: float, *more: Any) -> Any:
        waits.append(timeout)
        return poll(self, timeout, *more)

    monkeypatch.setattr(Consumer, "poll_arrow", counted)
    options = read_source_options(
        {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, "kafka.isolation.level": "read_committed"}
    )
    rows = list(read_range(OffsetRange(topic, 0, 0, 8), options, ""))
    assert sum(each.num_rows for each in rows) == 3
    assert sum(waits) < 5, "as long as fetching takes, and not until kafkaConsumer.pollTimeoutMs"


def test_a_read_waits_no_longer_than_told(bootstrap: str, new_topic: NewTopic) -> None:
    """kafkaConsumer.pollTimeoutMs: offsets that do not come end the task in words."""
    topic = new_topic()
    produce_all(bootstrap, topic, [b"a", b"b"])
    given = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, "kafkaConsumer.pollTimeoutMs": "200"}
    rows = read_range(OffsetRange(topic, 0, 0, 5), read_source_options(given), "")
    assert next(rows).num_rows == 2
    with pytest.raises(TimeoutError, match=r"no record at offset 2 within 200 ms .* goes to 5"):
        next(rows)


def test_a_pattern_leaves_out_what_brokers_keep_for_themselves(bootstrap: str, new_topic: NewTopic, name: str) -> None:
    topic = new_topic()
    with Producer(bootstrap, transactional_id=name) as producer, producer.transaction():
        producer.send(topic, b"a")
    options = {"kafka.bootstrap.servers": bootstrap, "subscribePattern": f"{topic}|__transaction_state"}
    assert [each.value[0].topic for each in BatchReader(read_source_options(options)).partitions()] == [topic]
