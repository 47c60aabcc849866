"""Folders change hands: Kafka's dump tool reads ours, we serve what Kafka wrote, Kafka serves what we wrote.

Each of the two brokers writes once for all tests. What Kafka wrote goes through the same as what we wrote: what the
tests expect is what Kafka itself does.
"""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from barnabas_process import BarnabasProcess
from confluent import make_topic, produce_all, read_partition
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, ConfigSource
from eventually import eventually
from kafka_commands import KafkaTools
from kafka_process import QuickKafka
from server_process import ServerProcess

pytestmark = pytest.mark.java

TOPIC = "orders"
TAKEN_OVER = "taken-over"
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


class Written(NamedTuple):
    data: Path
    values: list[bytes]

    @property
    def folder(self) -> Path:
        return self.data / f"{TOPIC}-0"


@pytest.fixture(scope="module")
def kafkas(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """What a Kafka left that made a snapshot after each change, and never shortened its log."""
    settings = {"metadata.log.max.record.bytes.between.snapshots": "1", "offsets.topic.num.partitions": "3"}
    with QuickKafka(tmp_path_factory.mktemp("kafka"), settings) as kafka:
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        make_topic(admin, "latest-state", 3, {"cleanup.policy": "compact", "segment.ms": "3600000"})
        make_topic(admin, "dropped")
        admin.delete_topics(["dropped"])["dropped"].result(30)
        make_topic(admin, TAKEN_OVER)
        values = fill(kafka)
        commit(kafka.bootstrap, 123)
    return Written(kafka.data, values)


@pytest.fixture(scope="module")
def barnabas(tmp_path_factory: pytest.TempPathFactory) -> Written:
    with BarnabasProcess(tmp_path_factory.mktemp("barnabas")) as barnabas:
        values = fill(barnabas)
    return Written(barnabas.data, values)


@pytest.fixture(params=["barnabas", pytest.param("kafkas", marks=pytest.mark.soak)])
def written(request: pytest.FixtureRequest) -> Written:
    found: Written = request.getfixturevalue(request.param)
    return found


def dump(tools: KafkaTools, files: list[Path], *options: str) -> str:
    done = tools.run_class("kafka.tools.DumpLogSegments", "--files", ",".join(map(str, files)), *options)
    assert done.status == 0, done.out[-2000:] + done.err
    return done.out


def test_dump_tool_reads_every_file(written: Written, kafka_tools: KafkaTools) -> None:
    logs = sorted(written.folder.glob("*.log"))
    assert len(logs) >= 3, "several segments"

    printed = dump(kafka_tools, logs, "--deep-iteration", "--print-data-log")
    assert re.findall(r"^\| offset: (\d+) .* payload: (.*)$", printed, re.MULTILINE) == [
        (str(offset), value.decode()) for offset, value in enumerate(written.values)
    ]
    batches = re.findall(r"^baseOffset: .* compresscodec: (\w+) .* isvalid: (\w+)$", printed, re.MULTILINE)
    assert {codec for codec, _ in batches} == set(CODECS) and {valid for _, valid in batches} == {"true"}

    indexes = sorted(written.folder.glob("*.index")) + sorted(written.folder.glob("*.timeindex"))
    assert len(indexes) == 2 * len(logs)
    looked_up = dump(kafka_tools, indexes)
    assert "Mismatches" not in looked_up and "out of order" not in looked_up and "Indexed offset:" not in looked_up
    assert len(re.findall(r"^offset: \d+ position: \d+$", looked_up, re.MULTILINE)) > 10 * len(logs)

    snapshots = sorted(written.folder.glob("*.snapshot"))
    assert snapshots, "producer state is kept at each new segment and at the stop"
    last = dump(kafka_tools, snapshots[-1:])
    assert len(re.findall(r"^producerId: \d+ producerEpoch: 0 ", last, re.MULTILINE)) == len(CODECS)


@pytest.mark.parametrize("snapshots", [False, True], ids=["log", "snapshots"])
def test_barnabas_serves_what_kafka_wrote(kafkas: Written, tmp_path: Path, snapshots: bool) -> None:
    """A whole directory: topics, their settings and committed offsets come with it, whether from log or snapshot."""
    barnabas = BarnabasProcess(tmp_path, "--node-id", "1")
    shutil.copytree(kafkas.data, barnabas.data)
    metadata = barnabas.data / "__cluster_metadata-0"
    made = list(metadata.glob("*.checkpoint"))
    assert made and (metadata / f"{0:020d}.log").exists()
    if not snapshots:
        for each in made:
            each.unlink()
    kafkas_own = content_of(metadata)
    values = kafkas.values
    with barnabas:
        messages = read_partition(barnabas.bootstrap, TOPIC, len(values), check_crcs=True)
        assert [message.value() for message in messages] == values
        # Idempotent: the ids of the producers in the folder must not be handed out again.
        assert produce_all(barnabas.bootstrap, TOPIC, [b"goes on"], enable_idempotence=True) == [len(values)]
        admin = AdminClient({"bootstrap.servers": barnabas.bootstrap})
        topics = {name: len(topic.partitions) for name, topic in admin.list_topics(timeout=10).topics.items()}
        assert topics == {TOPIC: 1, TAKEN_OVER: 1, "latest-state": 3, "__consumer_offsets": 3}
        assert settings_of(admin, "latest-state") == {"cleanup.policy": "compact", "segment.ms": "3600000"}
        assert settings_of(admin, TOPIC) == {"segment.bytes": str(SEGMENT_BYTES)}
        assert committed(barnabas.bootstrap) == 123
    assert content_of(metadata) == kafkas_own


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


def test_kafka_serves_what_was_written(written: Written, kafkas: Written, tmp_path: Path) -> None:
    """Kafka keeps topics in its own metadata: it knows an empty topic, and then finds our files in its folder."""
    kafka = QuickKafka(tmp_path)
    shutil.copytree(kafkas.data, kafka.data)
    target = kafka.data / f"{TAKEN_OVER}-0"
    for pattern in DATA_FILES:
        for stale in target.glob(pattern):
            stale.unlink()
        for file in written.folder.glob(pattern):
            shutil.copy(file, target)
    with kafka:
        messages = read_partition(kafka.bootstrap, TAKEN_OVER, len(written.values), check_crcs=True)
        assert [message.value() for message in messages] == written.values
        # Not idempotent: this cluster may hand out producer ids that the folder knows already.
        assert produce_all(kafka.bootstrap, TAKEN_OVER, [b"goes on"]) == [len(written.values)]
