"""Folders change hands: Kafka's dump tool reads ours, we serve what Kafka wrote, Kafka serves what we wrote.

The dump is taken of a folder that Apache Kafka wrote as well: what the test expects is what Kafka itself does.
"""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from barnabas_process import BarnabasProcess
from confluent import make_topic, produce_all, read_partition
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, ConfigSource
from eventually import eventually
from kafka_process import KafkaProcess, run_tool
from server_process import ServerProcess

pytestmark = pytest.mark.java

TOPIC = "orders"
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
RECORDS_PER_CODEC = 700
SEGMENT_BYTES = 1024 * 1024  # the least that Kafka allows
DATA_FILES = ("*.log", "*.index", "*.timeindex", "*.snapshot", "leader-epoch-checkpoint")


def values_written() -> list[bytes]:
    """Incompressible enough to fill several segments, the same in every run."""
    source = random.Random(7)
    return [
        b"%d:%s" % (number, source.randbytes(600).hex().encode()) for number in range(len(CODECS) * RECORDS_PER_CODEC)
    ]


def fill(broker: ServerProcess) -> list[bytes]:
    """Write one partition with every codec, each by an idempotent producer of its own, over several segments."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    make_topic(admin, TOPIC, config={"segment.bytes": str(SEGMENT_BYTES)})
    values = values_written()
    for number, codec in enumerate(CODECS):
        part = values[number * RECORDS_PER_CODEC : (number + 1) * RECORDS_PER_CODEC]
        settings = {"compression_type": codec, "enable_idempotence": True, "batch_num_messages": 20}
        produce_all(broker.bootstrap, TOPIC, part, **settings)
    return values


def dump(files: list[Path], *options: str) -> str:
    done = run_tool("kafka.tools.DumpLogSegments", "--files", ",".join(map(str, files)), *options)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    return done.stdout


@pytest.mark.parametrize("writer", [KafkaProcess, BarnabasProcess])
def test_dump_tool_reads_every_file(writer: Callable[[Path], KafkaProcess | BarnabasProcess], tmp_path: Path) -> None:
    with writer(tmp_path) as broker:
        values = fill(broker)
    folder = broker.data / f"{TOPIC}-0"
    logs = sorted(folder.glob("*.log"))
    assert len(logs) >= 3, "several segments"

    printed = dump(logs, "--deep-iteration", "--print-data-log")
    assert re.findall(r"^\| offset: (\d+) .* payload: (.*)$", printed, re.MULTILINE) == [
        (str(offset), value.decode()) for offset, value in enumerate(values)
    ]
    batches = re.findall(r"^baseOffset: .* compresscodec: (\w+) .* isvalid: (\w+)$", printed, re.MULTILINE)
    assert {codec for codec, _ in batches} == set(CODECS) and {valid for _, valid in batches} == {"true"}

    indexes = sorted(folder.glob("*.index")) + sorted(folder.glob("*.timeindex"))
    assert len(indexes) == 2 * len(logs)
    looked_up = dump(indexes)
    assert "Mismatches" not in looked_up and "out of order" not in looked_up and "Indexed offset:" not in looked_up
    assert len(re.findall(r"^offset: \d+ position: \d+$", looked_up, re.MULTILINE)) > 10 * len(logs)

    snapshots = sorted(folder.glob("*.snapshot"))
    assert snapshots, "producer state is kept at each new segment and at the stop"
    last = dump(snapshots[-1:])
    assert len(re.findall(r"^producerId: \d+ producerEpoch: 0 ", last, re.MULTILINE)) == len(CODECS)


@pytest.mark.parametrize("snapshots", [False, True], ids=["log", "snapshots"])
def test_barnabas_serves_what_kafka_wrote(tmp_path: Path, snapshots: bool) -> None:
    """A whole directory: topics, their settings and committed offsets come with it, whether from log or snapshot."""
    settings = {"metadata.log.max.record.bytes.between.snapshots": "1"} if snapshots else {}
    with KafkaProcess(tmp_path / "kafka", settings) as kafka:
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        make_topic(admin, "latest-state", 3, {"cleanup.policy": "compact", "segment.ms": "3600000"})
        make_topic(admin, "dropped")
        admin.delete_topics(["dropped"])["dropped"].result(30)
        values = fill(kafka)
        commit(kafka.bootstrap, 123)
    kafkas_own = content_of(kafka.data / "__cluster_metadata-0")
    assert any(name.endswith(".checkpoint") for name in kafkas_own) == snapshots
    barnabas = BarnabasProcess(tmp_path / "barnabas", "--node-id", "1")
    shutil.copytree(kafka.data, barnabas.data)
    with barnabas:
        messages = read_partition(barnabas.bootstrap, TOPIC, len(values), check_crcs=True)
        assert [message.value() for message in messages] == values
        # Idempotent: the ids of the producers in the folder must not be handed out again.
        assert produce_all(barnabas.bootstrap, TOPIC, [b"goes on"], enable_idempotence=True) == [len(values)]
        admin = AdminClient({"bootstrap.servers": barnabas.bootstrap})
        topics = {name: len(topic.partitions) for name, topic in admin.list_topics(timeout=10).topics.items()}
        assert topics == {TOPIC: 1, "latest-state": 3, "__consumer_offsets": 50}
        assert settings_of(admin, "latest-state") == {"cleanup.policy": "compact", "segment.ms": "3600000"}
        assert settings_of(admin, TOPIC) == {"segment.bytes": str(SEGMENT_BYTES)}
        assert committed(barnabas.bootstrap) == 123
    assert content_of(barnabas.data / "__cluster_metadata-0") == kafkas_own


def settings_of(admin: AdminClient, topic: str) -> dict[str, str]:
    """What was set for this topic, without defaults."""
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    entries = admin.describe_configs([resource])[resource].result(30).values()
    return {entry.name: entry.value for entry in entries if entry.source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value}


@contextmanager
def member_of_readers(bootstrap: str) -> Iterator[Consumer]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "readers"})
    try:
        yield consumer
    finally:
        consumer.close()


def commit(bootstrap: str, offset: int) -> None:
    wanted = [TopicPartition(TOPIC, 0, offset)]
    with member_of_readers(bootstrap) as consumer:
        # The first commit makes the offsets topic, and a partition of it may take a moment to find its coordinator.
        eventually(lambda: consumer.commit(offsets=wanted, asynchronous=False), timeout=30)


def committed(bootstrap: str) -> int:
    with member_of_readers(bootstrap) as consumer:
        (found,) = consumer.committed([TopicPartition(TOPIC, 0)], timeout=30)
    offset: int = found.offset
    return offset


def content_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_kafka_serves_what_barnabas_wrote(tmp_path: Path) -> None:
    with BarnabasProcess(tmp_path / "barnabas") as barnabas:
        values = fill(barnabas)
    check_kafka_takes_over(barnabas.data / f"{TOPIC}-0", values, tmp_path / "kafka")


def test_kafka_serves_what_another_kafka_wrote(tmp_path: Path) -> None:
    """The control of the test above: the same hand-over between two Kafkas."""
    with KafkaProcess(tmp_path / "first") as first:
        values = fill(first)
    check_kafka_takes_over(first.data / f"{TOPIC}-0", values, tmp_path / "kafka")


def check_kafka_takes_over(folder: Path, values: list[bytes], directory: Path) -> None:
    """Kafka keeps topics in its own metadata: it makes the topic, and then finds our files in its folder."""
    kafka = KafkaProcess(directory)
    with kafka:
        make_topic(AdminClient({"bootstrap.servers": kafka.bootstrap}), TOPIC)
    target = kafka.data / f"{TOPIC}-0"
    for pattern in DATA_FILES:
        for stale in target.glob(pattern):
            stale.unlink()
        for file in folder.glob(pattern):
            shutil.copy(file, target)
    with kafka:
        messages = read_partition(kafka.bootstrap, TOPIC, len(values), check_crcs=True)
        assert [message.value() for message in messages] == values
        # Not idempotent: this cluster hands out producer ids from 0 again, and the folder knows those already.
        assert produce_all(kafka.bootstrap, TOPIC, [b"goes on"]) == [len(values)]
