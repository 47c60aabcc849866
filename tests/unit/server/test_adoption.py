"""Folders without metadata: what becomes of them at the first start, and at later ones."""

import asyncio
import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

import pytest
from kraft_files import topic_records, topic_setting, write_kraft
from storage_logs import NOW, make_batch

from barnabas.config.broker import BrokerConfig
from barnabas.config.topic import TopicConfig
from barnabas.machines.controller.commands import AdoptedTopic, AdoptTopics
from barnabas.metadata import kraft_records as kraft
from barnabas.metadata.image import CLUSTER_DEFAULT, BrokerEndpoint, ClusterImage, ConfigResource
from barnabas.metadata.kraft_log import KraftMetadata
from barnabas.metadata.store import Create
from barnabas.metadata.stores.memory import MemoryStore, MemoryTree
from barnabas.metadata.tree import config_path, encode_config
from barnabas.protocol.messages.transaction_log_record import TransactionLogKey, TransactionLogValue
from barnabas.protocol.versioned import encode_record_key, encode_versioned
from barnabas.records import BatchBuilder
from barnabas.server.adoption import adopt_folders, find_topics
from barnabas.server.cluster_membership import ClusterMembership
from barnabas.server.controller_client import ControllerClient
from barnabas.server.settings import Settings
from barnabas.storage.log_directories import LogDirectories
from barnabas.storage.producer_state import AppendOrigin
from barnabas.types import NO_TOPIC_ID, TopicId, TopicPartition

NODE = 1
A, B = b"a" * 16, b"b" * 16
KEEP = {"retention.ms": "-1", "retention.bytes": "-1"}


def config(*paths: Path) -> BrokerConfig:
    return BrokerConfig.parse({"node.id": str(NODE), "log.dirs": ",".join(map(str, paths))})


def opened(*paths: Path) -> LogDirectories:
    directories = LogDirectories([str(path) for path in paths])
    directories.acquire()
    directories.identify(NODE, "cluster")
    directories.load(lambda _: TopicConfig(), NOW)
    return directories


class Writer:
    """Puts partition folders into a directory."""

    def __init__(self, path: Path) -> None:
        self.directories = opened(path)

    def partition(
        self, topic: str, number: int, topic_id: TopicId = NO_TOPIC_ID, *, epoch: int = -1, batches: Sequence[Any] = ()
    ) -> "Writer":
        log = self.directories.create_log(TopicPartition(topic, number), topic_id, TopicConfig(), NOW)
        for batch in batches or ([make_batch()] if epoch >= 0 else []):
            log.append_as_leader(batch, max(epoch, 0), NOW, AppendOrigin.COORDINATOR)
        return self

    def done(self) -> None:
        self.directories.shutdown()


def found_in(*paths: Path) -> tuple[AdoptTopics, KraftMetadata]:
    directories = opened(*paths)
    try:
        return find_topics(directories, config(*paths))
    finally:
        directories.shutdown()


# ---- what is found


def test_kafkas_metadata_says_how_a_topic_is_and_was_set(tmp_path: Path) -> None:
    Writer(tmp_path).partition("orders", 0, A, epoch=2).partition("orders", 2, A, epoch=9).done()
    setting = topic_setting("orders", "cleanup.policy", "compact")
    ids = kraft.ProducerIdsRecord(broker_id=1, next_producer_id=5000)
    dynamic = [
        kraft.ConfigRecord(resource_type=4, resource_name=name, name="log.cleaner.threads", value="2")
        for name in ("", "1", "8")
    ]
    write_kraft(tmp_path, [*topic_records("orders", A, 4, leader_epoch=5), setting, ids, *dynamic])
    found, metadata = found_in(tmp_path)
    assert metadata.damage is None
    assert found.topics == (AdoptedTopic("orders", (6, 6, 10, 6), A, {"cleanup.policy": "compact"}),)
    assert [resource for resource, _ in found.configs] == [CLUSTER_DEFAULT, ConfigResource.broker(1)]
    assert found.next_producer_id == 5000


def test_folders_that_kafkas_metadata_does_not_know_are_not_taken_in(tmp_path: Path) -> None:
    Writer(tmp_path).partition("deleted", 0, B, epoch=0).partition("orders", 0, B, epoch=7).done()
    write_kraft(tmp_path, topic_records("orders", A, 1, leader_epoch=1))
    found, _ = found_in(tmp_path)
    assert found.topics == (AdoptedTopic("orders", (2,), A, {}),), "of another id: its epochs do not count"


def test_a_topic_of_other_brokers_is_not_taken_in(tmp_path: Path) -> None:
    write_kraft(tmp_path, [*topic_records("theirs", B, 1, node_id=2), *topic_records("ours", A, 1, node_id=NODE)])
    found, _ = found_in(tmp_path)
    assert [topic.name for topic in found.topics] == ["ours"]


def test_without_metadata_nothing_is_deleted(tmp_path: Path) -> None:
    writer = Writer(tmp_path).partition("orders", 3, A, epoch=4).partition("__consumer_offsets", 0, B, epoch=0)
    writer.partition("empty-folder", 2).partition("backup", 1731715200, B, epoch=0).done()
    found, metadata = found_in(tmp_path)
    assert metadata.damage is not None
    offsets, orders = found.topics
    assert orders == AdoptedTopic("orders", (0, 0, 0, 5), A, KEEP)
    assert offsets.config["cleanup.policy"] == "compact" and "retention.ms" not in offsets.config


def test_damaged_metadata_keeps_the_settings_it_still_has_and_deletes_nothing(tmp_path: Path) -> None:
    Writer(tmp_path).partition("compacted", 0, A, epoch=0).partition("plain", 0, B, epoch=0).done()
    settings = [topic_setting("compacted", "cleanup.policy", "compact"), topic_setting("plain", "retention.ms", "5")]
    write_kraft(tmp_path, [*topic_records("compacted", A, 2), *topic_records("plain", B, 1), *settings, b"\x01"])
    found, _ = found_in(tmp_path)
    compacted, plain = found.topics
    assert compacted == AdoptedTopic("compacted", (4, 4), A, {"cleanup.policy": "compact"})
    assert plain.config == KEEP


def test_without_metadata_most_folders_decide_on_the_id(tmp_path: Path) -> None:
    writer = Writer(tmp_path)
    for number, topic_id in enumerate((B, A, A)):
        writer.partition("orders", number, topic_id, epoch=number)
    writer.done()
    found, _ = found_in(tmp_path)
    assert found.topics == (AdoptedTopic("orders", (0, 2, 3), A, KEEP),)


def test_metadata_may_lie_in_any_of_the_directories(tmp_path: Path) -> None:
    Writer(tmp_path / "one").partition("orders", 0, A, epoch=0).done()
    Writer(tmp_path / "two").partition("orders", 1, A, epoch=0).done()
    write_kraft(tmp_path / "two", topic_records("orders", A, 2))
    found, metadata = found_in(tmp_path / "one", tmp_path / "two")
    assert metadata.damage is None and len(found.topics[0].leader_epochs) == 2


def test_producer_ids_go_on_above_those_in_the_logs(tmp_path: Path) -> None:
    idempotent = make_batch(producer_id=1234, epoch=0, sequence=0)
    Writer(tmp_path).partition("orders", 0, A, batches=[idempotent]).done()
    assert found_in(tmp_path)[0].next_producer_id == 2000


def test_producer_ids_go_on_above_those_of_transactional_ids(tmp_path: Path) -> None:
    builder = BatchBuilder()
    key = encode_record_key(TransactionLogKey(transactional_id="t"))
    builder.append(NOW, key, encode_versioned(TransactionLogValue(producer_id=7001, transaction_partitions=[]), 0))
    builder.append(NOW, key, None)
    Writer(tmp_path).partition("__transaction_state", 0, A, batches=[memoryview(builder.build())]).done()
    assert found_in(tmp_path)[0].next_producer_id == 8000


def test_a_damaged_partition_belongs_to_its_topic(tmp_path: Path) -> None:
    Writer(tmp_path).partition("orders", 0, A, epoch=0).partition("orders", 1, A, epoch=0).done()
    (log,) = (tmp_path / "orders-1").glob("*.log")
    log.write_bytes(log.read_bytes()[:-1])
    found, _ = found_in(tmp_path)
    assert found.topics == (AdoptedTopic("orders", (1, 0), A, KEEP),)


# ---- what the cluster makes of it


def image_after(store: MemoryStore, path: Path) -> ClusterImage:
    """Starts a cluster of one on the store, with the folders in the directory; gives its image."""

    async def start() -> ClusterImage:
        settings = Settings(config(path))
        cluster = ClusterMembership(
            store,
            broker_id=NODE,
            rules=settings.rules,
            random=Random(3),
        )
        endpoint = BrokerEndpoint("PLAINTEXT", "localhost", 9092)
        directories = opened(path)
        with ThreadPoolExecutor(1) as executor:
            await cluster.start([endpoint])
            await adopt_folders(cluster, ControllerClient(cluster), directories, settings.static, executor)
            await cluster.stop()
        directories.shutdown()
        cluster._machine.check()
        return cluster.image

    return asyncio.run(start())


def test_topics_are_adopted_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    tree = MemoryTree()
    Writer(tmp_path).partition("orders", 0, A, epoch=4).done()
    write_kraft(tmp_path, [*topic_records("orders", A, 1), topic_setting("orders", "segment.ms", "777")])
    image = image_after(MemoryStore(tree), tmp_path)
    (partition,) = image.topics["orders"].partitions
    assert image.topics["orders"].topic_id == A and image.topic_config("orders") == {"segment.ms": "777"}
    assert (partition.leader, partition.replicas, partition.leader_epoch) == (NODE, (NODE,), 5)

    Writer(tmp_path).partition("late", 0, B, epoch=0).done()
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        image = image_after(MemoryStore(tree), tmp_path)
    assert [*image.topics] == ["orders"] and image.folders_adopted
    assert image.topics["orders"].partitions[0].leader_epoch == 6, "a restart elects again, above the epoch before"
    assert "late-0" in caplog.text and "orders-0" not in caplog.text


def test_settings_that_are_not_valid_here_are_left_out_and_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = [topic_setting("orders", "retention.ms", "soon"), topic_setting("orders", "segment.ms", "777")]
    broker = kraft.ConfigRecord(resource_type=4, resource_name="", name="node.id", value="8")
    write_kraft(tmp_path, [*topic_records("orders", A, 1), *settings, broker])
    with caplog.at_level(logging.WARNING):
        image = image_after(MemoryStore(), tmp_path)
    assert image.topic_config("orders") == {"segment.ms": "777", **KEEP}
    assert "retention.ms of topic orders" in caplog.text and "node.id of broker default" in caplog.text
    assert not image.config(CLUSTER_DEFAULT)


def test_a_topic_without_an_id_gets_one(tmp_path: Path) -> None:
    Writer(tmp_path).partition("orders", 0, epoch=0).done()
    image = image_after(MemoryStore(), tmp_path)
    assert image.topics["orders"].topic_id != NO_TOPIC_ID
    assert image.topic_config("orders") == KEEP


def test_producer_ids_are_given_out_above_the_ones_found(tmp_path: Path) -> None:
    Writer(tmp_path).partition("orders", 0, A, batches=[make_batch(producer_id=41, epoch=0, sequence=0)]).done()
    tree = MemoryTree()
    assert image_after(MemoryStore(tree), tmp_path).next_producer_id == 1000
    assert image_after(MemoryStore(tree), tmp_path).next_producer_id == 1000, "from the store, not found again"


def test_an_empty_directory_is_remembered_as_looked_at(tmp_path: Path) -> None:
    tree = MemoryTree()
    assert image_after(MemoryStore(tree), tmp_path).folders_adopted
    Writer(tmp_path).partition("late", 0, B, epoch=0).done()
    assert not image_after(MemoryStore(tree), tmp_path).topics


def test_nothing_is_adopted_while_a_directory_is_missing(tmp_path: Path) -> None:
    """What lies in it would be made anew, empty, somewhere else."""
    Writer(tmp_path).partition("orders", 0, A, epoch=0).done()

    async def start() -> ClusterImage:
        settings = Settings(config(tmp_path))
        endpoint = BrokerEndpoint("PLAINTEXT", "localhost", 9092)
        cluster = ClusterMembership(MemoryStore(), broker_id=NODE, rules=settings.rules)
        (tmp_path / "file").write_bytes(b"")
        directories = LogDirectories([str(tmp_path), str(tmp_path / "file" / "under")])
        directories.acquire()
        directories.load(lambda _: TopicConfig(), NOW)
        await cluster.start([endpoint])
        with ThreadPoolExecutor(1) as executor:
            await adopt_folders(cluster, ControllerClient(cluster), directories, settings.static, executor)
        await cluster.stop()
        directories.shutdown()
        return cluster.image

    image = asyncio.run(start())
    assert not image.topics and not image.folders_adopted


SECURED = [
    *(
        kraft.UserScramCredentialRecord(
            name=name, mechanism=1, salt=b"s", stored_key=b"k", server_key=b"v", iterations=4096
        )
        for name in ("alice", "bob")
    ),
    kraft.DelegationTokenRecord(owner="User:alice", requester="User:alice", token_id="id", max_timestamp=9),
]


def test_users_and_tokens_are_taken_over_but_for_those_that_are_there(tmp_path: Path) -> None:
    write_kraft(tmp_path, [*topic_records("orders", A, 1), *SECURED])
    tree = MemoryTree()
    bob = ConfigResource.user("bob")
    own = {"SCRAM-SHA-256": "made before the first start"}
    tree.commit(0, [Create(config_path(bob), encode_config(own))])
    image = image_after(MemoryStore(tree), tmp_path)
    assert image.config(bob) == own
    assert image.config(ConfigResource.user("alice")) == {
        "SCRAM-SHA-256": "salt=cw==,stored_key=aw==,server_key=dg==,iterations=4096"
    }
    assert image.tokens["id"].owner == "User:alice" and image.tokens["id"].max_at_ms == 9


def test_nobody_gets_in_by_damaged_metadata(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_kraft(tmp_path, [*topic_records("orders", A, 1), *SECURED, b"\x01"])
    with caplog.at_level(logging.WARNING):
        image = image_after(MemoryStore(), tmp_path)
    assert not image.tokens and not image.config(ConfigResource.user("alice"))
    assert "not taken over from Kafka's metadata: SCRAM credentials, delegation tokens" in caplog.text
