"""A log that was refused as damaged stays refused at every start, until its files are restored or the loss accepted."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from storage_logs import NOW, append, make_batch, read_all, small_config

from barnabas.errors import ErrorCode, KafkaError, StorageError
from barnabas.storage.acceptance import NotRefusedError, accept_damaged_log
from barnabas.storage.checkpoints import read_offsets
from barnabas.storage.files import Files
from barnabas.storage.log import Log
from barnabas.storage.log_directories import LogDirectories
from barnabas.types import TopicPartition

DAMAGED, WHOLE = TopicPartition("orders", 0), TopicPartition("orders", 1)
CHECKPOINTS = ("recovery-point-offset-checkpoint", "log-start-offset-checkpoint", "replication-offset-checkpoint")


def started(path: Path) -> LogDirectories:
    directories = LogDirectories([str(path)])
    directories.acquire()
    directories.identify(1, "cluster")
    directories.load(lambda topic: small_config(), NOW)
    return directories


def filled(path: Path) -> LogDirectories:
    directories = started(path)
    for topic_partition in (DAMAGED, WHOLE):
        log = directories.create_log(topic_partition, bytes(range(16)), small_config(), NOW)
        for _ in range(40):
            append(log, make_batch(1))
        log.delete_records_before(3)
    return directories


def segments(path: Path) -> list[Path]:
    return sorted((path / "orders-0").glob("*.log"))


def entries(path: Path) -> dict[str, int | None]:
    return {name: read_offsets(Files(), str(path / name)).get(DAMAGED) for name in CHECKPOINTS}


def empty_last(path: Path) -> None:
    segments(path)[-1].write_bytes(b"")


def remove_last(path: Path) -> None:
    segments(path)[-1].unlink()


def remove_all(path: Path) -> None:
    for each in segments(path):
        each.unlink()


def break_the_last_header(path: Path) -> None:
    content = bytearray(segments(path)[-1].read_bytes())
    content[16 - len(make_batch(1))] = 9
    segments(path)[-1].write_bytes(content)


def break_partition_metadata(path: Path) -> None:
    (path / "orders-0" / "partition.metadata").write_bytes(b"what is this")


def refused(directories: LogDirectories) -> bool:
    if DAMAGED not in directories.damaged:
        return False
    with pytest.raises(KafkaError) as caught:
        directories.create_log(DAMAGED, bytes(range(16)), small_config(), NOW)
    return caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR and directories.get(DAMAGED) is None


@pytest.mark.parametrize(
    "damage",
    [empty_last, remove_last, remove_all, break_the_last_header, break_partition_metadata],
    ids=lambda each: each.__name__,
)
@pytest.mark.parametrize("clean", [True, False], ids=["clean stop", "crash"])
def test_a_refused_log_stays_refused(tmp_path: Path, damage: Callable[[Path], None], clean: bool) -> None:
    directories = filled(tmp_path)
    expected = [header.base_offset for header in read_all(directories.get(WHOLE) or pytest.fail())]
    if clean:
        directories.shutdown()
    else:
        for log in directories:
            log.flush()
        directories.checkpoint_recovery_points()
        directories.checkpoint_log_start_offsets()
        directories.checkpoint_high_watermarks()
        directories.release()
    before = entries(tmp_path)
    assert list(before.values()) == [40, 3, 40]
    damage(tmp_path)
    for end in ("clean", "clean", "crash", "clean"):
        again = started(tmp_path)
        assert refused(again), end
        log = again.get(WHOLE)
        assert log is not None and [header.base_offset for header in read_all(log)] == expected
        again.checkpoint_recovery_points()
        if end == "clean":
            again.shutdown()
        else:
            again.release()
        assert entries(tmp_path) == before
    accepted = accept_damaged_log(str(tmp_path), DAMAGED, NOW)
    last = started(tmp_path)
    log = last.get(DAMAGED)
    assert not last.damaged and log is not None and log.log_end_offset == accepted.log_end_offset
    assert accepted.next_kept_offset == 40 and accepted.first_lost_offset == log.log_end_offset
    assert [header.base_offset for header in read_all(log)] == list(range(log.log_start_offset, log.log_end_offset))
    assert log.log_start_offset == (40 if damage is remove_all else 3)
    append(log, make_batch(1))
    last.shutdown()
    for_good = started(tmp_path)
    assert not for_good.damaged and not (tmp_path / "refused-logs").exists()
    for_good.release()


def test_damage_that_only_recovery_sees_is_not_forgotten_by_a_clean_stop(tmp_path: Path) -> None:
    """After a clean stop only the end of a log is read, where nothing is wrong."""
    directories = filled(tmp_path)
    log = directories.get(DAMAGED)
    assert log is not None
    last = log.active.base_offset
    log.flush(last + 2)
    directories.checkpoint_recovery_points()
    directories.release()
    path = segments(tmp_path)[-1]
    content = bytearray(path.read_bytes())
    content[16] = 9
    path.write_bytes(content)
    for _ in range(3):
        again = started(tmp_path)
        assert refused(again)
        again.shutdown()
    assert path.read_bytes() == content
    content[16] = 2
    path.write_bytes(content)
    restored = started(tmp_path)
    log = restored.get(DAMAGED)
    assert log is not None and log.log_end_offset == 40, "its files are back"
    restored.release()


def test_nothing_is_dropped_from_a_log_that_is_refused(tmp_path: Path) -> None:
    """A flushed segment ends early, and there are good ones after it."""
    directories = filled(tmp_path)
    log = directories.get(DAMAGED)
    assert log is not None
    damaged = log.segments[-3]
    log.flush(log.segments[-2].base_offset - 1)
    directories.checkpoint_recovery_points()
    directories.release()
    path = tmp_path / "orders-0" / os.path.basename(damaged.path(".log"))
    os.truncate(path, 0)
    before = {each.name for each in segments(tmp_path)}
    for _ in range(2):
        again = started(tmp_path)
        assert refused(again)
        again.shutdown()
        assert {each.name for each in segments(tmp_path)} == before
    accepted = accept_damaged_log(str(tmp_path), DAMAGED, NOW)
    assert (accepted.first_lost_offset, accepted.next_kept_offset) == (damaged.base_offset, 40)


def test_a_damaged_list_of_refused_logs(tmp_path: Path) -> None:
    filled(tmp_path).shutdown()
    (tmp_path / "refused-logs").write_bytes(b"\0\0\0")
    again = started(tmp_path)
    assert not again.damaged and len(again) == 2
    again.shutdown()
    assert not (tmp_path / "refused-logs").exists()


def test_a_topic_whose_log_is_refused_can_be_deleted_and_made_again(tmp_path: Path) -> None:
    filled(tmp_path).shutdown()
    empty_last(tmp_path)
    again = started(tmp_path)
    again.delete_refused(DAMAGED, NOW)
    log = again.create_log(DAMAGED, bytes(16), small_config(), NOW)
    append(log, make_batch(1))
    again.delete_due_files(NOW)
    again.shutdown()
    assert not list(tmp_path.glob("*-delete"))
    last = started(tmp_path)
    found = last.get(DAMAGED)
    assert found is not None and (found.log_start_offset, found.log_end_offset) == (0, 1)
    last.release()


def test_what_cannot_be_accepted(tmp_path: Path) -> None:
    directories = filled(tmp_path)
    with pytest.raises(StorageError, match="in use"):
        accept_damaged_log(str(tmp_path), DAMAGED, NOW)
    directories.shutdown()
    with pytest.raises(NotRefusedError, match="not damaged"):
        accept_damaged_log(str(tmp_path), DAMAGED, NOW)
    with pytest.raises(StorageError, match="no folder"):
        accept_damaged_log(str(tmp_path), TopicPartition("orders", 7), NOW)
    with pytest.raises(StorageError, match="no folder"):
        accept_damaged_log(str(tmp_path / "nowhere"), DAMAGED, NOW)
    assert not (tmp_path / "nowhere").exists()
    again = started(tmp_path)
    assert again.directories[0].was_clean and len(again) == 2
    again.release()


def test_an_acceptance_that_is_interrupted_is_completed_by_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(tmp_path).shutdown()
    empty_last(tmp_path)
    again = started(tmp_path)
    end = int(segments(tmp_path)[-1].stem)
    again.shutdown()
    with monkeypatch.context() as patch:
        patch.setattr(Log, "close", lambda log: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            accept_damaged_log(str(tmp_path), DAMAGED, NOW)
    last = started(tmp_path)
    log = last.get(DAMAGED)
    assert log is not None and log.log_end_offset == end
    last.release()


def test_a_folder_that_is_gone_is_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    filled(tmp_path).shutdown()
    shutil.rmtree(tmp_path / "orders-0")
    for expected in (1, 0):
        caplog.clear()
        directories = started(tmp_path)
        for topic_partition in (DAMAGED, WHOLE):
            if directories.get(topic_partition) is None:
                directories.create_log(topic_partition, bytes(range(16)), small_config(), NOW)
        errors = [each.getMessage() for each in caplog.records if each.levelname == "ERROR"]
        assert len(errors) == expected
        assert all("orders-0 is gone" in each and "up to offset 40" in each for each in errors)
        directories.shutdown()


def test_a_deleted_topic_is_not_reported_when_it_is_created_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directories = filled(tmp_path)
    directories.delete_log(DAMAGED, NOW)
    directories.shutdown()
    directories = started(tmp_path)
    directories.create_log(DAMAGED, bytes(range(16)), small_config(), NOW)
    assert not [each for each in caplog.records if each.levelname == "ERROR"]
    directories.shutdown()
