"""No descriptors or no memory left: the request fails and can be retried, the directory stays online."""

import errno
from pathlib import Path

import pytest
from storage_logs import (
    NOW,
    append,
    append_marker,
    make_batch,
    make_marker,
    max_timestamp_offset,
    offset_for_timestamp,
    open_test_log,
    read_all,
    small_config,
)

from barnabas.errors import ErrorCode, KafkaError, StorageError
from barnabas.storage.files import Files, OpenFile
from barnabas.storage.log import Log
from barnabas.storage.log_directories import LogDirectories
from barnabas.types import TopicPartition


class ShortFiles(Files):
    """Whatever needs a descriptor fails while `error` is set."""

    def __init__(self) -> None:
        self.error = 0

    def _check(self) -> None:
        if self.error:
            raise OSError(self.error, "short")

    def open(self, path: str, *, create: bool = False) -> OpenFile:
        self._check()
        return super().open(path, create=create)

    def read(self, path: str) -> bytes:
        self._check()
        return super().read(path)

    def map_readable(self, path: str):  # type: ignore[no-untyped-def]
        self._check()
        return super().map_readable(path)

    def sync_directory(self, path: str) -> None:
        self._check()
        super().sync_directory(path)


def reopened(folder: Path, files: ShortFiles) -> Log:
    log = open_test_log(folder, small_config(segment_bytes=400))
    for number in range(12):
        append(log, make_batch(1, producer_id=1, epoch=0, sequence=number, transactional=True), epoch=1)
    log.close()
    return open_test_log(folder, log.config, files=files, clean=True)


@pytest.mark.parametrize("error", [errno.EMFILE, errno.ENFILE, errno.ENOMEM])
@pytest.mark.parametrize("epoch", [1, 2])
def test_an_append_can_be_tried_again(tmp_path: Path, error: int, epoch: int) -> None:
    files = ShortFiles()
    log = reopened(tmp_path, files)
    files.error = error
    for _ in range(2):
        with pytest.raises(KafkaError) as caught:
            append(log, make_batch(), epoch=epoch)
        assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR and log.failure is None
    assert log.log_end_offset == 12
    files.error = 0
    assert append(log, make_batch(), epoch=epoch).first_offset == 12
    assert len(read_all(log)) == 13


def test_a_roll_and_a_marker_can_be_tried_again(tmp_path: Path) -> None:
    files = ShortFiles()
    log = reopened(tmp_path, files)
    append(log, make_batch(), epoch=1)
    files.error = errno.EMFILE
    with pytest.raises(KafkaError):
        append(log, make_batch(size=300), epoch=1)
    with pytest.raises(KafkaError):
        append_marker(log, make_marker(abort=True, producer_id=1), epoch=1)
    files.error = 0
    assert log.failure is None and log.log_end_offset == 13
    append(log, make_batch(size=300), epoch=1)
    append_marker(log, make_marker(abort=True, producer_id=1), epoch=1)
    assert log.log_end_offset == 15 and len(log.aborted_transactions(0, 15)) == 1


def test_reads_can_be_tried_again(tmp_path: Path) -> None:
    files = ShortFiles()
    log = reopened(tmp_path, files)
    files.error = errno.EMFILE
    for read in (
        lambda: log.read(5, 1000, 12, True),
        lambda: offset_for_timestamp(log, NOW),
        lambda: max_timestamp_offset(log),
    ):
        with pytest.raises(KafkaError) as caught:
            read()
        assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR and log.failure is None
    files.error = 0
    assert len(read_all(log)) == 12


def test_a_flush_can_be_tried_again_but_is_not_taken_for_done(tmp_path: Path) -> None:
    files = ShortFiles()
    log = reopened(tmp_path, files)
    append(log, make_batch(), epoch=2)
    files.error = errno.EMFILE
    with pytest.raises(StorageError):
        log.flush()
    assert log.failure is None and log.recovery_point == 12
    assert log.leader_epochs._unsynced
    files.error = 0
    log.flush()
    assert log.recovery_point == 13 and not log.leader_epochs._unsynced


@pytest.mark.parametrize("error", [errno.EMFILE, errno.ENOSPC])
def test_checkpoints_can_be_tried_again(tmp_path: Path, error: int) -> None:
    files = ShortFiles()
    directories = LogDirectories([str(tmp_path)], files=files)
    directories.acquire()
    directories.identify(1, "cluster")
    directories.load(lambda topic: small_config(), NOW, threads_per_directory=1)
    append(directories.create_log(TopicPartition("t", 0), bytes(range(16)), small_config(), NOW), make_batch())
    (directory,) = directories.directories
    files.error = error
    with pytest.raises(StorageError):
        directory.checkpoint_high_watermarks()
    assert not directory.is_offline
    files.error = 0
    directory.checkpoint_high_watermarks()
    directories.release()
