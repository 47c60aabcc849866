"""Formats of the small files, byte for byte, and what happens with a truncated or zeroed one."""

from pathlib import Path

import pytest

from barnabas.storage.checkpoints import CorruptCheckpointError, read_offsets, write_offsets
from barnabas.storage.file_names import deleted_folder_name, is_deleted_folder, parse_file_name, parse_folder_name
from barnabas.storage.files import Files
from barnabas.storage.leader_epoch import LeaderEpochs
from barnabas.storage.meta_properties import (
    CorruptMetaPropertiesError,
    MetaProperties,
    read_meta_properties,
    write_meta_properties,
)
from barnabas.storage.offset_index import OffsetIndex
from barnabas.storage.partition_metadata import (
    CorruptPartitionMetadataError,
    read_partition_metadata,
    write_partition_metadata,
)
from barnabas.storage.producer_snapshot import CorruptSnapshotError, decode_snapshot, encode_snapshot
from barnabas.storage.producer_state import BatchMetadata, ProducerEntry
from barnabas.storage.time_index import TimeIndex
from barnabas.storage.transaction_index import AbortedTransaction, TransactionIndex
from barnabas.types import NO_TOPIC_ID, TopicPartition

FILES = Files()


def test_offset_checkpoint(tmp_path: Path) -> None:
    path = str(tmp_path / "recovery-point-offset-checkpoint")
    offsets = {TopicPartition("a", 0): 5, TopicPartition("b.c-d", 12): 1 << 40}
    write_offsets(FILES, path, offsets)
    content = Path(path).read_bytes()
    assert content == b"0\n2\na 0 5\nb.c-d 12 1099511627776\n"
    assert read_offsets(FILES, path) == offsets
    assert read_offsets(FILES, path + "-none") == {}
    for length in range(1, len(content)):
        Path(path).write_bytes(content[:length])
        with pytest.raises(CorruptCheckpointError):
            read_offsets(FILES, path)
    for content in (bytes(20), b"1\n0\n", b"0\n1\na b c\n", b"0\n1\na 1\n", b"\xff\xfe\n"):
        Path(path).write_bytes(content)
        with pytest.raises(CorruptCheckpointError):
            read_offsets(FILES, path)


def test_leader_epochs(tmp_path: Path) -> None:
    path = str(tmp_path / "leader-epoch-checkpoint")
    epochs = LeaderEpochs(FILES, path)
    for epoch, start in [(0, 0), (2, 10), (3, 20), (5, 20), (6, 35)]:
        epochs.assign(epoch, start)
    assert epochs.entries() == [(0, 0), (2, 10), (5, 20), (6, 35)], "epoch 3 wrote nothing"
    assert Path(path).read_text() == "0\n4\n0 0\n2 10\n5 20\n6 35\n"
    for epoch, expected in {
        -1: (-1, -1),
        0: (0, 10),
        1: (0, 10),
        2: (2, 20),
        4: (2, 20),
        6: (6, 50),
        7: (-1, -1),
    }.items():
        assert epochs.end_offset_for(epoch, 50) == expected
    assert [epochs.epoch_for_offset(offset) for offset in (0, 9, 10, 34, 99)] == [0, 0, 2, 5, 6]
    epochs.truncate_from_start(15)
    assert epochs.entries() == [(2, 15), (5, 20), (6, 35)]
    assert epochs.end_offset_for(1, 50) == (1, 15)
    epochs.truncate_from_end(35)
    again = LeaderEpochs(FILES, path)
    again.load()
    assert again.entries() == [(2, 15), (5, 20)] and again.latest == 5


def test_meta_properties(tmp_path: Path) -> None:
    assert read_meta_properties(FILES, str(tmp_path)) is None
    properties = MetaProperties(3, "4L6g3nShT-eMCtK--X86sw", "kkkkkkkkkkkkkkkkkkkkkk")
    write_meta_properties(FILES, str(tmp_path), properties)
    assert read_meta_properties(FILES, str(tmp_path)) == properties
    path = tmp_path / "meta.properties"
    path.write_text("#\n#Tue Jan 01\nbroker.id=7\nversion=0\ncluster.id=abc\n")
    found = read_meta_properties(FILES, str(tmp_path))
    assert found is not None and (found.node_id, found.cluster_id) == (7, "abc")
    for content in (
        "",
        "version=1\nnode.id=1\n",
        "version=2\nnode.id=1\ncluster.id=a\n",
        "version=1\nnode.id=x\n",
        "\0",
    ):
        path.write_text(content)
        with pytest.raises(CorruptMetaPropertiesError):
            read_meta_properties(FILES, str(tmp_path))


def test_partition_metadata(tmp_path: Path) -> None:
    assert read_partition_metadata(FILES, str(tmp_path)) == NO_TOPIC_ID
    write_partition_metadata(FILES, str(tmp_path), bytes(range(16)))
    assert (tmp_path / "partition.metadata").read_text() == "version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"
    assert read_partition_metadata(FILES, str(tmp_path)) == bytes(range(16))
    for content in (b"", b"version: 1\ntopic_id: AAECAwQFBgcICQoLDA0ODw", b"version: 0\ntopic_id: AA", bytes(30)):
        (tmp_path / "partition.metadata").write_bytes(content)
        with pytest.raises(CorruptPartitionMetadataError):
            read_partition_metadata(FILES, str(tmp_path))


def test_snapshot_bytes_and_damage() -> None:
    entry = ProducerEntry(5, 2)
    entry.batches.append(BatchMetadata(9, 100, 3, 1234))
    entry.last_timestamp = 1234
    entry.current_txn_first_offset = 90
    silent = ProducerEntry(6, 0)
    silent.coordinator_epoch, silent.last_timestamp = 4, 77
    data = encode_snapshot([entry, silent])
    assert data[:2] == b"\0\1" and data[6:10] == b"\0\0\0\2" and len(data) == 10 + 2 * 46
    first, second = decode_snapshot(data)
    assert (first.producer_id, first.epoch, first.batches, first.current_txn_first_offset) == (5, 2, entry.batches, 90)
    assert (second.batches, second.coordinator_epoch, second.last_timestamp) == ([], 4, 77)
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 0x40
        for broken in (bytes(damaged), data[:position], data[:position] + bytes(len(data) - position)):
            if broken != data:
                with pytest.raises(CorruptSnapshotError):
                    decode_snapshot(broken)


def test_index_bytes(tmp_path: Path) -> None:
    index = OffsetIndex(FILES, str(tmp_path / "i"), 100, 80)
    index.reset()
    for number in range(10):
        index.append(110 + number * 10, 1000 * number)
    assert index.is_full
    assert index.lookup(109) == (100, 0) and index.lookup(125) == (120, 1000) and index.lookup(999) == (200, 9000)
    assert index.last_position_at_or_below(4999) == 4000
    index.release()
    assert (tmp_path / "i").read_bytes()[8:16] == bytes([0, 0, 0, 20, 0, 0, 3, 0xE8])
    assert index.lookup(125) == (120, 1000)
    index.truncate_to(130)
    index.release()
    assert (tmp_path / "i").stat().st_size == 16


def test_time_index_bytes(tmp_path: Path) -> None:
    index = TimeIndex(FILES, str(tmp_path / "t"), 100, 1200)
    index.reset()
    for timestamp, offset in [(5, 101), (5, 102), (4, 103), (9, 104)]:
        index.maybe_append(timestamp, offset)
    assert [index.entry(number) for number in range(index.entry_count)] == [(5, 101), (9, 104)]
    assert index.lookup(4) == (-1, 100) and index.lookup(8) == (5, 101)
    index.release()
    assert (tmp_path / "t").read_bytes()[:12] == bytes([0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 1])


def test_transaction_index_bytes(tmp_path: Path) -> None:
    index = TransactionIndex(FILES, str(tmp_path / "x"), 0)
    entries = [AbortedTransaction(1, 0, 10, 5), AbortedTransaction(2, 5, 20, 21)]
    for entry in entries:
        index.append(entry)
    assert (tmp_path / "x").read_bytes()[:10] == bytes([0, 0, 0, 0, 0, 0, 0, 0, 0, 1])
    index.release()
    assert index.entries() == entries
    assert index.collect(11, 15) == ([entries[1]], True)
    index.truncate_to(15)
    index.release()
    assert index.entries() == entries[:1] and (tmp_path / "x").stat().st_size == 34


def test_names() -> None:
    assert parse_file_name("00000000000000000123.log") == (123, ".log", "")
    assert parse_file_name("00000000000000000123.index.swap") == (123, ".index", ".swap")
    assert parse_file_name("leader-epoch-checkpoint") is None
    assert parse_folder_name("my-topic.x-12") == TopicPartition("my-topic.x", 12)
    assert parse_folder_name("nothing") is None and parse_folder_name("a-01") is None
    deleted = deleted_folder_name(TopicPartition("t" * 249, 2_000_000_000))
    assert is_deleted_folder(deleted) and len(deleted) <= 255 and parse_folder_name(deleted) is None
