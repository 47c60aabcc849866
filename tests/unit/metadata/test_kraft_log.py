"""Kafka's metadata log: what is read of it, and what is said of one that is damaged."""

from pathlib import Path

import pytest
from kraft_files import framed, kraft_batch, topic_records, topic_setting, write_kraft

from barnabas.machines.controller.acls import (
    Acl,
    AclEntry,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
    SecuredType,
)
from barnabas.machines.controller.delegation_tokens import DelegationToken
from barnabas.machines.sasl.scram_server import ScramCredential
from barnabas.metadata import kraft_records as kraft
from barnabas.metadata.image import CLUSTER_DEFAULT, ConfigResource
from barnabas.metadata.kraft_log import KraftMetadata, read_kraft_metadata
from barnabas.records import iter_headers
from barnabas.storage.files import Files

A, B = b"a" * 16, b"b" * 16
ORDERS = topic_records("orders", A, 3)


def read(directory: Path) -> KraftMetadata:
    return read_kraft_metadata(Files(), str(directory))


def names(metadata: KraftMetadata) -> list[str]:
    return sorted(topic.name for topic in metadata.topics.values())


def test_topics_partitions_settings_and_producer_ids(tmp_path: Path) -> None:
    change = kraft.PartitionChangeRecord(topic_id=A, partition_id=1, leader=2, isr=[2], replicas=[2, 1])
    in_sync_only = kraft.PartitionChangeRecord(topic_id=A, partition_id=0, isr=[1])
    write_kraft(
        tmp_path,
        [
            *ORDERS,
            topic_setting("orders", "cleanup.policy", "compact"),
            topic_setting("orders", "retention.ms", "5"),
            topic_setting("orders", "retention.ms", None),
            kraft.ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="1"),
            kraft.ProducerIdsRecord(broker_id=1, next_producer_id=7000),
            framed(change, 1),
            framed(in_sync_only, 2),
        ],
    )
    metadata = read(tmp_path)
    assert metadata.damage is None
    partitions = metadata.topics[A].partitions
    assert [(number, each.leader_epoch, each.replicas) for number, each in partitions.items()] == [
        (0, 3, [1]),
        (1, 4, [2, 1]),
        (2, 3, [1]),
    ]
    assert metadata.configs == {
        ConfigResource.topic("orders"): {"cleanup.policy": "compact"},
        CLUSTER_DEFAULT: {"min.insync.replicas": "1"},
    }
    assert metadata.next_producer_id == 7000


def test_a_removed_topic_takes_its_settings_with_it(tmp_path: Path) -> None:
    again = topic_records("orders", B, 1)
    setting = topic_setting("orders", "retention.ms", "5")
    write_kraft(tmp_path, [*ORDERS, setting, kraft.RemoveTopicRecord(topic_id=A), *again])
    metadata = read(tmp_path)
    assert list(metadata.topics) == [B] and not metadata.configs


def test_a_transaction_counts_once_it_has_ended(tmp_path: Path) -> None:
    begin, end, abort = kraft.BeginTransactionRecord(), kraft.EndTransactionRecord(), kraft.AbortTransactionRecord()
    aborted, open_one = topic_records("aborted", b"c" * 16, 1), topic_records("open", b"d" * 16, 1)
    write_kraft(tmp_path, [begin, *aborted, abort, begin, *ORDERS, end, begin, *open_one])
    assert names(read(tmp_path)) == ["orders"]


def test_the_newest_snapshot_and_what_came_after_it(tmp_path: Path) -> None:
    write_kraft(tmp_path, topic_records("older", b"o" * 16, 1), snapshot_end=2)
    snapshot = write_kraft(tmp_path, ORDERS, snapshot_end=9)
    snapshot.write_bytes(kraft_batch(0, [b"header"], control=True) + snapshot.read_bytes())
    # Offsets 6 to 8 are in the snapshot: a topic that was there then and is not in it was removed.
    removed, later = topic_records("removed", b"r" * 16, 2), topic_records("later", B, 1)
    write_kraft(tmp_path, [*removed, *later], base_offset=6)
    metadata = read(tmp_path)
    assert metadata.damage is None and names(metadata) == ["later", "orders"]


def test_several_segments_and_control_batches(tmp_path: Path) -> None:
    first = write_kraft(tmp_path, ORDERS)
    first.write_bytes(first.read_bytes() + kraft_batch(4, [b"leader change"], control=True))
    write_kraft(tmp_path, topic_records("later", B, 1), base_offset=5)
    metadata = read(tmp_path)
    assert metadata.damage is None and names(metadata) == ["later", "orders"]


def test_access_rules(tmp_path: Path) -> None:
    def rule(number: int, principal: str, permission: Permission) -> kraft.AccessControlEntryRecord:
        return kraft.AccessControlEntryRecord(
            id=bytes([number]) * 16,
            resource_type=SecuredType.TOPIC,
            resource_name="orders",
            pattern_type=PatternType.PREFIXED,
            principal=principal,
            host="*",
            operation=Operation.READ,
            permission_type=permission,
        )

    removed = kraft.RemoveAccessControlEntryRecord(id=bytes([1]) * 16)
    rules = [rule(1, "User:a", Permission.DENY), rule(2, "User:b", Permission.ALLOW), removed]
    write_kraft(tmp_path, [*ORDERS, *rules])
    pattern = ResourcePattern(SecuredType.TOPIC, "orders", PatternType.PREFIXED)
    entry = AclEntry("User:b", "*", Operation.READ, Permission.ALLOW)
    assert list(read(tmp_path).acls.values()) == [Acl(pattern, entry)]


def test_users_and_tokens(tmp_path: Path) -> None:
    def user(name: str, mechanism: int, iterations: int) -> kraft.UserScramCredentialRecord:
        return kraft.UserScramCredentialRecord(
            name=name, mechanism=mechanism, salt=b"s", stored_key=b"k", server_key=b"v", iterations=iterations
        )

    def token(token_id: str) -> kraft.DelegationTokenRecord:
        return kraft.DelegationTokenRecord(
            owner="User:a",
            requester="User:b",
            renewers=["User:c"],
            issue_timestamp=1,
            max_timestamp=3,
            expiration_timestamp=2,
            token_id=token_id,
        )

    records = [
        *(user("a", 1, 4096), user("a", 2, 4096), user("b", 1, 4096), user("b", 1, 8192)),
        kraft.RemoveUserScramCredentialRecord(name="a", mechanism=2),
        *(token("kept"), token("removed"), kraft.RemoveDelegationTokenRecord(token_id="removed")),
    ]
    write_kraft(tmp_path, [*ORDERS, *records])
    metadata = read(tmp_path)
    assert metadata.scram == {
        ("a", "SCRAM-SHA-256"): ScramCredential(b"s", b"k", b"v", 4096),
        ("b", "SCRAM-SHA-256"): ScramCredential(b"s", b"k", b"v", 8192),
    }
    assert metadata.tokens == {"kept": DelegationToken("kept", "User:a", "User:b", ("User:c",), 1, 2, 3)}
    assert not metadata.not_taken_over


def test_what_is_not_taken_over_is_named(tmp_path: Path) -> None:
    write_kraft(tmp_path, [*ORDERS, b"\x01\x0e\x00", b"\x01\x7f\x09unknown"])
    metadata = read(tmp_path)
    assert metadata.not_taken_over == {"client quotas"} and metadata.damage is None


def test_every_cut_and_every_flipped_byte_is_told(tmp_path: Path) -> None:
    """Up to the damage everything is there; only a cut between two batches cannot be told from a shorter log."""
    path = write_kraft(tmp_path, [*ORDERS, topic_setting("orders", "cleanup.policy", "compact")])
    whole = path.read_bytes()
    starts = [position for position, _ in iter_headers(whole)]
    assert len(starts) == 3
    for position in {*range(0, len(whole), 7), *starts}:
        path.write_bytes(whole[:position])
        metadata = read(tmp_path)
        assert (metadata.damage is None) == (position in starts[1:]), position
        assert names(metadata) == (["orders"] if position >= starts[1] else []), position
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 0x20]) + whole[position + 1 :])
        if not any(start + 12 <= position < start + 16 for start in starts):  # the leader epoch is not in the CRC
            assert read(tmp_path).damage is not None, position


@pytest.mark.parametrize(
    "content",
    [
        [framed(kraft.EndTransactionRecord(), frame_version=2)],
        [b"\x01"],
        [b""],
        [framed(kraft.TopicRecord(name="x", topic_id=A))[:-3]],
        [kraft.RemoveTopicRecord(topic_id=B)],
        [b"\x01\x02\x09" + bytes(40)],
    ],
    ids=["frame version", "short frame", "empty", "short message", "unknown topic", "unknown version"],
)
def test_a_record_that_makes_no_sense_is_damage(tmp_path: Path, content: list[object]) -> None:
    write_kraft(tmp_path, [*ORDERS, *content])
    metadata = read(tmp_path)
    assert metadata.damage is not None and names(metadata) == ["orders"]


def test_records_that_are_missing_are_damage(tmp_path: Path) -> None:
    write_kraft(tmp_path, ORDERS, base_offset=4)
    assert "from 0 to 4 are missing" in (read(tmp_path).damage or "")


def test_no_folder_and_an_empty_one(tmp_path: Path) -> None:
    assert "there is no __cluster_metadata-0" in (read(tmp_path).damage or "")
    (tmp_path / "__cluster_metadata-0").mkdir()
    assert "it holds no records" in (read(tmp_path).damage or "")
