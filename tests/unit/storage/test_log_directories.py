"""log.dirs as a whole: locks, identity, checkpoints, clean and unclean starts, deletion, failures."""

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from faulty_files import FaultyFiles
from storage_logs import NOW, append, make_batch, offset_for_timestamp, read_all, small_config

from barnabas.config.topic import TopicConfig
from barnabas.errors import ErrorCode, KafkaError, StorageError
from barnabas.storage.checkpoints import read_offsets
from barnabas.storage.files import Files, OpenFile
from barnabas.storage.log_directories import LogDirectories
from barnabas.types import TopicPartition

TOPIC_ID = bytes(range(16))


def started(*paths: Path, files: Files | None = None, node_id: int = 1, cluster_id: str = "cluster") -> LogDirectories:
    directories = LogDirectories([str(path) for path in paths], files=files)
    directories.acquire()
    try:
        directories.identify(node_id, cluster_id)
        directories.load(lambda topic: small_config(), NOW, threads_per_directory=2)
    except StorageError:
        directories.release()
        raise
    return directories


def tp(number: int) -> TopicPartition:
    return TopicPartition("orders", number)


def test_clean_restart(tmp_path: Path) -> None:
    directories = started(tmp_path)
    log = directories.create_log(tp(0), TOPIC_ID, small_config(), NOW)
    for number in range(30):
        append(log, make_batch(2, producer_id=1, epoch=0, sequence=number * 2))
    log.delete_records_before(11)
    expected = read_all(log)
    directories.shutdown(broker_epoch=5)
    names = {path.name for path in tmp_path.iterdir()}
    assert names >= {"meta.properties", ".lock", ".kafka_cleanshutdown", "recovery-point-offset-checkpoint", "orders-0"}
    assert (tmp_path / ".kafka_cleanshutdown").read_text() == '{"version":0,"brokerEpoch":5}'
    again = started(tmp_path)
    found = again.get(tp(0))
    assert found is not None and found.topic_id == TOPIC_ID
    assert (found.log_start_offset, found.log_end_offset, found.high_watermark) == (11, 60, 60)
    assert read_all(found) == expected and again.directories[0].was_clean
    assert not (tmp_path / ".kafka_cleanshutdown").exists(), "the mark speaks for one start"
    again.release()


class ForgetfulFiles(Files):
    """A power loss brings back what was removed, unless its directory was flushed since."""

    def __init__(self) -> None:
        self._removed: dict[str, bytes] = {}

    def remove(self, path: str) -> None:
        if os.path.exists(path):
            self._removed[path] = Path(path).read_bytes()
        super().remove(path)

    def sync_directory(self, path: str) -> None:
        super().sync_directory(path)
        self._removed = {each: data for each, data in self._removed.items() if os.path.dirname(each) != path}

    def lose_power(self) -> None:
        for path, data in self._removed.items():
            Path(path).write_bytes(data)


def test_the_mark_of_an_earlier_stop_is_not_back_after_a_power_loss(tmp_path: Path) -> None:
    """The broker would be trusted with records that the power loss took."""
    started(tmp_path).shutdown()
    files = ForgetfulFiles()
    directories = started(tmp_path, files=files)
    assert directories.directories[0].was_clean
    directories.release()
    files.lose_power()
    again = started(tmp_path)
    assert not again.directories[0].was_clean
    again.release()


def test_a_directory_that_cannot_forget_its_clean_stop_is_not_used(tmp_path: Path) -> None:
    directories = started(tmp_path / "a", tmp_path / "b")
    directories.create_log(tp(0), TOPIC_ID, small_config(), NOW)
    directories.shutdown()
    files = FaultyFiles()
    files.error = ("remove", str(tmp_path / "a"), errno.EROFS)
    again = started(tmp_path / "a", tmp_path / "b", files=files)
    assert [each.is_offline for each in again.directories] == [True, False]
    again.release()


def test_unclean_restart(tmp_path: Path) -> None:
    directories = started(tmp_path)
    log = directories.create_log(tp(0), TOPIC_ID, small_config(), NOW)
    for _ in range(30):
        append(log, make_batch(2))
    log.flush()
    directories.checkpoint_recovery_points()
    append(log, make_batch(2))
    directories.release()
    again = started(tmp_path)
    found = again.get(tp(0))
    assert found is not None and found.log_end_offset == 62 and found.recovery_point == 60
    assert not again.directories[0].was_clean
    again.release()


def test_second_broker_is_refused(tmp_path: Path) -> None:
    first = started(tmp_path)
    with pytest.raises(StorageError, match="in use"):
        started(tmp_path)
    first.shutdown()
    started(tmp_path).release()


def test_foreign_directory_is_refused(tmp_path: Path) -> None:
    started(tmp_path).shutdown()
    for wrong in ({"node_id": 2}, {"cluster_id": "other"}):
        with pytest.raises(StorageError, match="belongs to"):
            started(tmp_path, **wrong)  # type: ignore[arg-type]
    (tmp_path / "meta.properties").write_bytes(bytes(10))
    with pytest.raises(StorageError, match=r"meta\.properties"):
        started(tmp_path)


def test_logs_go_to_the_emptiest_directory(tmp_path: Path) -> None:
    directories = started(tmp_path / "a", tmp_path / "b")
    for number in range(6):
        directories.create_log(tp(number), TOPIC_ID, small_config(), NOW)
    assert [len(directory.logs) for directory in directories.directories] == [3, 3]
    assert directories.create_log(tp(0), TOPIC_ID) is directories.get(tp(0))
    with pytest.raises(KafkaError) as caught:
        directories.create_log(tp(0), bytes(15) + b"x")
    assert caught.value.code == ErrorCode.INCONSISTENT_TOPIC_ID
    directories.shutdown()
    again = started(tmp_path / "a", tmp_path / "b")
    assert len(again) == 6
    again.shutdown()
    os.rename(tmp_path / "a" / "orders-0", tmp_path / "b" / "orders-0")
    both = started(tmp_path / "a", tmp_path / "b")
    assert len(both) == 6
    both.shutdown()


def test_delete_and_create_again(tmp_path: Path) -> None:
    directories = started(tmp_path)
    log = directories.create_log(tp(0), TOPIC_ID, small_config(), NOW)
    append(log, make_batch(5))
    log.flush()
    directories.checkpoint_recovery_points()
    directories.delete_log(tp(0), NOW)
    assert directories.get(tp(0)) is None
    with pytest.raises(KafkaError):
        append(log, make_batch())
    log.flush()
    assert not directories.directories[0].is_offline, "a flush that was under way finds nothing to do"
    new = directories.create_log(tp(0), bytes(16)[:15] + b"2", small_config(), NOW)
    assert new.log_end_offset == 0
    append(new, make_batch())
    assert directories.delete_due_files(NOW) == 0
    assert directories.delete_due_files(NOW + 60_000) == 1
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == ["orders-0"]
    directories.release()
    again = started(tmp_path)
    found = again.get(tp(0))
    assert not again.damaged and found is not None and found.log_end_offset == 1
    again.release()


def test_deletion_goes_on_after_a_restart(tmp_path: Path) -> None:
    directories = started(tmp_path)
    directories.create_log(tp(0), TOPIC_ID, small_config(), NOW)
    directories.delete_log(tp(0), NOW)
    directories.shutdown()
    again = started(tmp_path)
    assert len(again) == 0 and again.delete_due_files(NOW) == 1
    assert not [path for path in tmp_path.iterdir() if path.is_dir()]
    again.release()


def test_damaged_log_is_refused_and_the_others_served(tmp_path: Path) -> None:
    directories = started(tmp_path)
    for number in range(2):
        append(directories.create_log(tp(number), TOPIC_ID, small_config(), NOW), make_batch(3))
    directories.shutdown()
    path = tmp_path / "orders-0" / "00000000000000000000.log"
    path.write_bytes(path.read_bytes()[:-1])
    again = started(tmp_path)
    assert list(again.damaged) == [tp(0)] and again.get(tp(1)) is not None
    with pytest.raises(KafkaError) as caught:
        again.create_log(tp(0), TOPIC_ID)
    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    again.release()


def test_torn_partition_metadata_of_an_empty_log(tmp_path: Path) -> None:
    directories = started(tmp_path)
    directories.create_log(tp(0), TOPIC_ID, small_config(), NOW)
    append(directories.create_log(tp(1), TOPIC_ID, small_config(), NOW), make_batch())
    directories.release()
    for number in range(2):
        (tmp_path / f"orders-{number}" / "partition.metadata").write_bytes(b"")
    again = started(tmp_path)
    assert list(again.damaged) == [tp(1)]
    assert again.create_log(tp(0), TOPIC_ID).log_end_offset == 0
    again.release()


def test_torn_partition_metadata_of_a_log_that_was_never_flushed_and_has_other_replicas(tmp_path: Path) -> None:
    directories = started(tmp_path)
    for number in range(2):
        append(directories.create_log(tp(number), TOPIC_ID, small_config(), NOW), make_batch())
    flushed = directories.get(tp(1))
    assert flushed is not None
    flushed.flush()
    directories.checkpoint_recovery_points()
    directories.release()
    for number in range(2):
        (tmp_path / f"orders-{number}" / "partition.metadata").write_bytes(b"")
    again = LogDirectories([str(tmp_path)], files=None)
    again.acquire()
    again.load(lambda _: small_config(), NOW, is_replicated=lambda _: True)
    assert list(again.damaged) == [tp(1)]
    assert again.create_log(tp(0), TOPIC_ID).log_end_offset == 0
    again.release()


@pytest.mark.parametrize("content", [b"", bytes(9), b"0\n7\n", b"0\n1\norders 0 x\n"])
def test_damaged_checkpoints_cost_only_time(tmp_path: Path, content: bytes) -> None:
    directories = started(tmp_path)
    append(directories.create_log(tp(0), TOPIC_ID, small_config(), NOW), make_batch(3))
    directories.shutdown()
    for name in ("recovery-point-offset-checkpoint", "log-start-offset-checkpoint", "replication-offset-checkpoint"):
        (tmp_path / name).write_bytes(content)
    again = started(tmp_path)
    found = again.get(tp(0))
    assert found is not None and found.log_end_offset == 3
    again.release()


def test_failed_flush_takes_its_directory_offline(tmp_path: Path) -> None:
    files = FaultyFiles()
    directories = started(tmp_path / "a", tmp_path / "b", files=files)
    one = directories.create_log(tp(0), TOPIC_ID, small_config(), NOW)
    two = directories.create_log(tp(1), TOPIC_ID, small_config(), NOW)
    append(one, make_batch())
    append(two, make_batch())
    files.error = ("fsync", "/a/orders-0", errno.EIO)
    with pytest.raises(StorageError):
        one.flush()
    files.error = None
    assert one.recovery_point == 0 and directories.directories[0].is_offline
    with pytest.raises(StorageError):
        one.flush()
    with pytest.raises(KafkaError) as caught:
        append(one, make_batch())
    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    append(two, make_batch())
    two.flush()
    assert directories.directory_of(directories.create_log(tp(2), TOPIC_ID)) is directories.directories[1]
    directories.shutdown()
    assert not (tmp_path / "a" / ".kafka_cleanshutdown").exists()
    assert (tmp_path / "b" / ".kafka_cleanshutdown").exists()


def test_read_only_directory(tmp_path: Path) -> None:
    files = FaultyFiles()
    directories = started(tmp_path, files=files)
    log = directories.create_log(tp(0), TOPIC_ID, small_config(), NOW)
    files.error = ("write", ".log", errno.EROFS)
    with pytest.raises(StorageError):
        append(log, make_batch())
    assert directories.directories[0].is_offline
    with pytest.raises(KafkaError):
        directories.create_log(tp(1), TOPIC_ID)
    directories.release()


@pytest.mark.parametrize("operation", ["write", "create", "rename"])
@pytest.mark.parametrize("keep_fraction", [0.0, 0.5, 1.0])
def test_full_disk(tmp_path: Path, operation: str, keep_fraction: float) -> None:
    """Whatever the operation that meets the full disk, and however much of it was written: retriable, nothing torn."""
    files = FaultyFiles()
    files.keep_fraction = keep_fraction
    directories = started(tmp_path, files=files)
    log = directories.create_log(tp(0), TOPIC_ID, small_config(segment_bytes=400), NOW)
    sequence = refused = 0
    for number in range(60):
        files.error = (operation, "orders-0", errno.ENOSPC) if number % 3 == 1 else None
        try:
            append(log, make_batch(producer_id=1, epoch=0, sequence=sequence), epoch=number // 5)
            sequence += 1
        except KafkaError as error:
            assert error.code == ErrorCode.KAFKA_STORAGE_ERROR
            refused += 1
        assert log.log_end_offset == sequence and len(read_all(log)) == sequence
        assert os.path.getsize(log.active.path(".log")) == log.active.size, "no torn bytes stay behind"
    files.error = None
    assert refused > 0 and not directories.directories[0].is_offline
    directories.release()
    again = started(tmp_path)
    found = again.get(tp(0))
    assert found is not None and found.log_end_offset == sequence and len(read_all(found)) == sequence
    again.release()


def test_full_disk_while_a_new_segment_is_made(tmp_path: Path) -> None:
    """A left-over empty file would be taken for a later segment, while the records go on in the one before it."""
    files = FaultyFiles()
    directories = started(tmp_path, files=files)
    log = directories.create_log(tp(0), TOPIC_ID, small_config(segment_bytes=400, preallocate=True), NOW)
    while log.active.size + 100 < 400:
        append(log, make_batch())
    end = log.log_end_offset
    files.error = ("truncate", f"{end:020d}.log", errno.ENOSPC)
    with pytest.raises(KafkaError):
        append(log, make_batch(size=90))
    assert not (tmp_path / "orders-0" / f"{end:020d}.log").exists()
    files.error = None
    append(log, make_batch(size=90))
    assert len(read_all(log)) == end + 1
    directories.release()


def test_truncation_lowers_the_checkpoint_first(tmp_path: Path) -> None:
    directories = started(tmp_path)
    log = directories.create_log(tp(0), TOPIC_ID, small_config(), NOW)
    for _ in range(20):
        append(log, make_batch())
    log.flush()
    directories.checkpoint_recovery_points()
    directories.truncate_to(log, 7, NOW)
    assert read_offsets(Files(), str(tmp_path / "recovery-point-offset-checkpoint"))[tp(0)] == 7
    directories.release()
    again = started(tmp_path)
    found = again.get(tp(0))
    assert found is not None and found.log_end_offset == 7
    again.release()


def test_roll_is_reported(tmp_path: Path) -> None:
    rolled: list[int] = []
    directories = LogDirectories([str(tmp_path)], on_roll=lambda log: rolled.append(log.active.base_offset))
    directories.acquire()
    log = directories.create_log(tp(0), TOPIC_ID, TopicConfig(segment_bytes=300), NOW)
    for _ in range(9):
        append(log, make_batch(size=30))
    assert rolled == [segment.base_offset for segment in log.segments][1:] != []
    directories.release()


def test_stray_folders_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "lost+found").mkdir()
    started(tmp_path).shutdown()
    assert (tmp_path / "lost+found").exists()


def test_nothing_usable(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageError, match="no log directory"):
        started(tmp_path / "file" / "a")
    both = started(tmp_path / "file" / "a", tmp_path / "b")
    assert [directory.is_offline for directory in both.directories] == [True, False]
    both.shutdown()


def test_a_log_is_set_aside_and_its_name_is_free(tmp_path: Path) -> None:
    directories = started(tmp_path)
    old = directories.create_log(tp(0), b"a" * 16, None, NOW)
    append(old, make_batch())
    old.flush()
    renamed = Path(directories.set_aside(tp(0)))
    assert directories.get(tp(0)) is None and renamed.name.endswith("-stray")
    directories.create_log(tp(0), b"b" * 16, None, NOW)
    directories.shutdown()
    again = started(tmp_path)
    assert [log.topic_id for log in again] == [b"b" * 16]
    again.delete_due_files(NOW + 10**12)
    again.shutdown()
    assert next(renamed.glob("*.log")).stat().st_size > 0


def test_kafkas_metadata_log_is_not_a_partition(tmp_path: Path) -> None:
    folder = tmp_path / "__cluster_metadata-0"
    folder.mkdir()
    directories = started(tmp_path)
    assert len(directories) == 0
    directories.shutdown()
    assert list(folder.iterdir()) == []


def test_another_node_is_refused_before_anything_is_touched(tmp_path: Path) -> None:
    started(tmp_path).shutdown()
    directories = LogDirectories([str(tmp_path)])
    directories.acquire()
    with pytest.raises(StorageError, match="belongs to node 1, this is node 2"):
        directories.check_node(2)
    directories.check_node(1)
    directories.release()


def test_a_log_without_topic_id_gets_one_for_good(tmp_path: Path) -> None:
    directories = started(tmp_path)
    directories.assign_topic_id(directories.create_log(tp(0), now_ms=NOW), b"a" * 16)
    directories.shutdown()
    again = started(tmp_path)
    assert [log.topic_id for log in again] == [b"a" * 16]
    again.shutdown()


class DeletedMeanwhile(Files):
    """Deletes a log, as the event loop may, while another thread is in its first fsync."""

    def __init__(self) -> None:
        self.delete: Callable[[], object] = lambda: None

    def open(self, path: str, *, create: bool = False) -> OpenFile:
        opened = super().open(path, create=create)
        return FlushedSlowly(self, opened)


class FlushedSlowly(OpenFile):
    __slots__ = ("_files",)

    def __init__(self, files: DeletedMeanwhile, file: OpenFile) -> None:
        super().__init__(file.path, os.dup(file.fileno()))
        self._files = files

    def fsync(self) -> None:
        delete, self._files.delete = self._files.delete, lambda: None
        delete()
        super().fsync()


@pytest.mark.parametrize("way", ["delete_log", "set_aside"])
def test_a_log_deleted_while_it_is_flushed_does_not_take_its_directory_offline(tmp_path: Path, way: str) -> None:
    files = DeletedMeanwhile()
    directories = started(tmp_path, files=files)
    directory = directories.directories[0]
    log = directories.create_log(tp(0), TOPIC_ID, small_config(), NOW)
    other = directories.create_log(tp(1), TOPIC_ID, small_config(), NOW)
    append(log, make_batch())
    files.delete = (
        (lambda: directory.delete_log(tp(0), NOW)) if way == "delete_log" else lambda: directory.set_aside(tp(0))
    )
    log.flush()
    assert log.closed and log.recovery_point == 0
    assert not directory.is_offline
    append(other, make_batch())
    other.flush()
    directories.release()


def test_a_folder_that_cannot_be_renamed_takes_its_directory_offline(tmp_path: Path) -> None:
    files = FaultyFiles()
    directories = started(tmp_path, files=files)
    directories.create_log(tp(0), TOPIC_ID, small_config(), NOW)
    files.error = ("rename", "orders-0", errno.EIO)
    with pytest.raises(StorageError):
        directories.directories[0].delete_log(tp(0), NOW)
    assert directories.directories[0].is_offline
    directories.release()


@pytest.mark.parametrize("operation", ["write", "create"])
def test_a_stop_and_a_start_without_any_room(tmp_path: Path, operation: str, caplog: pytest.LogCaptureFixture) -> None:
    directories = started(tmp_path)
    log = directories.create_log(tp(0), TOPIC_ID, small_config(), NOW)
    for number in range(30):
        append(log, make_batch(2, producer_id=1, epoch=0, sequence=number * 2, timestamp=NOW + number))
    expected = read_all(log)
    times = [offset_for_timestamp(log, NOW + number) for number in range(30)]
    directories.shutdown()
    for _ in range(3):
        files = FaultyFiles()
        files.error = (operation, "", errno.ENOSPC)
        again = started(tmp_path, files=files)
        found = again.get(tp(0))
        assert found is not None and not again.directories[0].is_offline
        assert read_all(found) == expected, "reading is possible"
        assert [offset_for_timestamp(found, NOW + number) for number in range(30)] == times
        with pytest.raises(KafkaError) as caught:
            append(found, make_batch(size=900), epoch=3)
        assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
        again.shutdown()
        assert "not clean" in caplog.text
        for path in tmp_path.glob("orders-0/*index"):
            path.unlink()
    again = started(tmp_path)
    found = again.get(tp(0))
    assert found is not None and read_all(found) == expected
    assert append(found, make_batch()).first_offset == 60
    again.shutdown()
    assert started(tmp_path).directories[0].was_clean


def test_a_directory_that_is_not_there_any_more_is_offline(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    directories = LogDirectories([str(one), str(two)])
    directories.acquire()  # the first start makes them
    directories.identify(1, "c")
    directories.shutdown()
    shutil.move(two, tmp_path / "away")
    again = LogDirectories([str(one), str(two)])
    again.acquire()
    again.identify(1, "c")
    again.load(lambda _: small_config(), NOW)
    assert [each.is_offline for each in again.directories] == [False, True]
    assert not two.exists()
    with pytest.raises(KafkaError, match=r"may be in .*two, which is offline"):
        again.create_log(tp(0), TOPIC_ID, small_config(), NOW, is_new=False)
    assert again.create_log(tp(0), TOPIC_ID, small_config(), NOW).directory == str(one / "orders-0")
    again.shutdown()


def test_a_new_log_does_not_find_the_checkpoints_of_an_earlier_one(tmp_path: Path) -> None:
    """Its log start would empty the new one at the next start after a crash."""
    directories = started(tmp_path)
    log = directories.create_log(tp(0), TOPIC_ID, small_config(), NOW)
    for _ in range(9):
        append(log, make_batch())
    log.delete_records_before(7)
    directories.checkpoint_log_start_offsets()
    directories.checkpoint_high_watermarks()
    directories.delete_log(tp(0), NOW)
    log = directories.create_log(tp(0), TOPIC_ID[::-1], small_config(), NOW)
    append(log, make_batch(), commit=False)
    directories.release()
    again = started(tmp_path).get(tp(0))
    assert again is not None
    assert (again.log_start_offset, again.high_watermark, again.log_end_offset) == (0, 0, 1)
