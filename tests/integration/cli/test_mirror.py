"""`barnabas mirror` between two brokers: exactly once, also when it is killed, with groups that move along."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator

import pytest
from eventually import eventually

from barnabas import Admin, Consumer, Producer
from barnabas.cli.main import main
from barnabas.client.admin.types import ConfigResource
from barnabas.testing import Broker
from barnabas.types import TopicPartition


@pytest.fixture
def source() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def target() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


def run(source: Broker, target: Broker, *words: str) -> int:
    return main(["mirror", "--from", source.bootstrap, "--to", target.bootstrap, *words])


def values(broker: Broker, topic: str) -> list[bytes | None]:
    return [record.value for record in broker.records(topic, committed=True)]


def test_all_of_a_record_is_copied(source: Broker, target: Broker) -> None:
    source.create_topic("orders", 3, {"retention.ms": 7_200_000, "min.insync.replicas": 1})
    source.create_topic("other")
    with Producer(source.bootstrap) as producer:
        for number in range(30):
            producer.send(
                "orders",
                None if number % 7 == 0 else b"v%d" % number,
                key=b"k%d" % number,
                headers=[("h", b"1"), ("n", None)],
                timestamp=1_700_000_000_000 + number,
            )
    assert run(source, target, "--topics", "ord.*", "--stop-at-end") == 0
    wanted, found = source.records("orders"), target.records("orders", committed=True)

    def told(record: object) -> tuple[object, ...]:
        names = ("partition", "key", "value", "headers", "timestamp")
        return tuple(getattr(record, name) for name in names)

    assert [told(each) for each in found] == [told(each) for each in wanted]
    with Admin(target.bootstrap) as admin:
        assert set(admin.list_topics()) == {"orders", "barnabas-mirror-default"}
        described = admin.describe_configs([ConfigResource.topic("orders")])[ConfigResource.topic("orders")]
        assert described["retention.ms"].value == "7200000"
        assert described["min.insync.replicas"].is_default


def test_again_copies_what_is_new_and_only_that(source: Broker, target: Broker) -> None:
    source.create_topic("t", 2)
    with Producer(source.bootstrap) as producer:
        for rounds in range(3):
            for number in range(10):
                producer.send("t", b"%d-%d" % (rounds, number))
            producer.flush()
            assert run(source, target, "--topics", "t", "--stop-at-end") == 0
            assert Counter(values(target, "t")) == Counter(values(source, "t"))
        with Admin(source.bootstrap) as admin:
            admin.add_partitions("t", 4)
        for partition in range(4):
            producer.send("t", b"late", partition=partition)
        producer.flush()
    assert run(source, target, "--topics", "t", "--stop-at-end") == 0
    assert Counter(values(target, "t")) == Counter(values(source, "t"))


def test_aborted_records_are_not_copied(source: Broker, target: Broker) -> None:
    source.create_topic("t")
    with Producer(source.bootstrap, transactional_id="x") as producer:
        with producer.transaction():
            producer.send("t", b"kept")
        with pytest.raises(RuntimeError), producer.transaction():
            producer.send("t", b"aborted")
            raise RuntimeError
        with producer.transaction():
            producer.send("t", b"kept too")
    assert run(source, target, "--topics", "t", "--stop-at-end") == 0
    assert [each.value for each in target.records("t")] == [b"kept", b"kept too"]


def test_a_group_goes_on_in_the_target_where_it_was(source: Broker, target: Broker) -> None:
    source.create_topic("t")
    with Producer(source.bootstrap, transactional_id="x") as producer:
        for number in range(10):
            with producer.transaction():  # every transaction leaves a marker between the records
                producer.send("t", b"%d" % number)
    place = TopicPartition("t", 0)
    with Admin(source.bootstrap) as admin:
        admin.alter_group_offsets("g", {place: source.records("t")[4].offset})
        admin.alter_group_offsets("at-end", {place: 20})
    assert run(source, target, "--topics", "t", "--groups", ".*", "--prefix", "copy.", "--stop-at-end") == 0
    for group, left in (("g", [b"4", b"5", b"6", b"7", b"8", b"9"]), ("at-end", [])):
        with Consumer(target.bootstrap, group_id=group, isolation_level="read_committed") as consumer:
            consumer.subscribe(["copy.t"])
            seen = [each.value for batch in consumer.batches(0.5, stop_when_idle=True) for each in batch]
        assert seen == left, group
    # The group has read on in the target: its offset does not go back.
    assert run(source, target, "--topics", "t", "--groups", ".*", "--prefix", "copy.", "--stop-at-end") == 0
    with Admin(target.bootstrap) as admin:
        stored = admin.list_group_offsets("g")[TopicPartition("copy.t", 0)]
        assert stored is not None and stored.offset > target.records("copy.t")[-1].offset


def test_killed_again_and_again_every_record_is_copied_once(source: Broker, target: Broker) -> None:
    source.create_topic("t", 3)
    command = [sys.executable, "-m", "barnabas", "mirror", "--from", source.bootstrap, "--to", target.bootstrap]
    sent = 0
    with Producer(source.bootstrap) as producer:
        for _ in range(5):
            process = subprocess.Popen([*command, "--topics", "t"], stdout=subprocess.DEVNULL)
            try:
                for _ in range(200):
                    producer.send("t", b"%d" % sent)
                    sent += 1
                producer.flush()
                before = len(target.records("t", committed=True)) if "t" in topics(target) else 0
                eventually(lambda: "t" in topics(target) and len(target.records("t")) > before, timeout=60)  # noqa: B023
            finally:
                os.kill(process.pid, signal.SIGKILL)
                process.wait()
    assert run(source, target, "--topics", "t", "--stop-at-end") == 0
    assert Counter(values(target, "t")) == Counter(b"%d" % number for number in range(sent))
    for partition in range(3):
        order = [each.value for each in source.records("t") if each.partition == partition]
        assert [each.value for each in target.records("t", committed=True) if each.partition == partition] == order


def topics(broker: Broker) -> set[str]:
    with Admin(broker.bootstrap) as admin:
        return set(admin.list_topics())


def test_a_second_mirror_of_the_name_takes_over(source: Broker, target: Broker) -> None:
    source.create_topic("t")
    command = [sys.executable, "-m", "barnabas", "mirror", "--from", source.bootstrap, "--to", target.bootstrap]
    first = subprocess.Popen([*command, "--topics", "t"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert first.stdout is not None
    assert "mirroring t to t, 1 partition" in first.stdout.readline()
    assert run(source, target, "--topics", "t", "--stop-at-end") == 0
    with Producer(source.bootstrap) as producer:
        producer.send("t", b"1")
    _, errors = first.communicate(timeout=120)
    assert first.returncode == 1 and "another mirror named default has taken over" in errors


def test_a_recreated_topic_is_refused(source: Broker, target: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    source.create_topic("t")
    with Producer(source.bootstrap) as producer:
        producer.send("t", b"1")
    assert run(source, target, "--topics", "t", "--stop-at-end") == 0
    with Admin(source.bootstrap) as admin:
        admin.delete_topic("t")
    source.create_topic("t")
    assert run(source, target, "--topics", "t", "--stop-at-end") == 1
    assert "deleted and created again" in capsys.readouterr().err
    assert values(target, "t") == [b"1"]


def test_what_retention_removed_is_skipped(source: Broker, target: Broker) -> None:
    source.create_topic("t")
    with Producer(source.bootstrap) as producer:
        for number in range(10):
            producer.send("t", b"%d" % number)
    with Admin(source.bootstrap) as admin:
        admin.delete_records({TopicPartition("t", 0): 6})
    assert run(source, target, "--topics", "t", "--stop-at-end") == 0
    assert values(target, "t") == [b"6", b"7", b"8", b"9"]


def test_wrong_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mirror", "--from", "127.0.0.1:1", "--to", "127.0.0.1:1", "--topics", "("]) == 2
    assert "not a regular expression" in capsys.readouterr().err
