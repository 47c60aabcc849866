"""Closed segments that were damaged after they were written: the reader gets an error, nothing else is affected."""

from pathlib import Path

import pytest
from storage_logs import NOW, append, make_batch, open_test_log, read_all, small_config

from barnabas.errors import ErrorCode, KafkaError
from barnabas.records.header import iter_headers
from barnabas.storage.log import Log
from barnabas.storage.recovery import LogCheckpoints

COUNT = 30


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three segments or more, cleanly closed."""
    log = open_test_log(tmp_path / "orders-0")
    for _ in range(COUNT):
        append(log, make_batch())
    assert len(log.segments) >= 3
    log.close()
    return tmp_path / "orders-0"


def reopened(folder: Path, *, was_cleaned: bool = False, **settings: object) -> Log:
    log = open_test_log(
        folder, small_config(**settings), clean=True, checkpoints=LogCheckpoints(was_cleaned=was_cleaned)
    )
    log.update_high_watermark(log.log_end_offset)
    return log


def cut_last_batch_of_first_segment(folder: Path) -> int:
    """At a batch's start, so that nothing looks torn; returns the offset that is lost."""
    path = sorted(folder.glob("*.log"))[0]
    content = path.read_bytes()
    position, header = list(iter_headers(content))[-1]
    path.write_bytes(content[:position])
    return header.base_offset


def zero_the_middle_of_first_segment(folder: Path) -> None:
    path = sorted(folder.glob("*.log"))[0]
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2].ljust(len(content), b"\0"))


@pytest.mark.parametrize("everything", [False, True])
def test_a_segment_that_ends_early_is_damage(folder: Path, everything: bool) -> None:
    lost = cut_last_batch_of_first_segment(folder)
    if everything:
        sorted(folder.glob("*.log"))[0].write_bytes(b"")
        lost = 0
    log = reopened(folder)
    with pytest.raises(KafkaError) as refused:
        log.read(lost, 1 << 20, COUNT, True)
    assert refused.value.code is ErrorCode.CORRUPT_MESSAGE
    second = log.segments[1].base_offset
    assert [header.base_offset for header in read_all(log, second)] == list(range(second, COUNT))


@pytest.mark.parametrize("settings", [{"cleanup_policy": ("compact",)}, {"was_cleaned": True}])
def test_where_compaction_was_it_is_a_gap(folder: Path, settings: dict[str, object]) -> None:
    lost = cut_last_batch_of_first_segment(folder)
    log = reopened(folder, **settings)  # type: ignore[arg-type]
    assert read_all(log, lost)[0].base_offset == log.segments[1].base_offset


def test_a_damaged_segment_does_not_keep_the_log_from_closing(folder: Path) -> None:
    zero_the_middle_of_first_segment(folder)
    log = reopened(folder)
    with pytest.raises(KafkaError):
        read_all(log)
    log.close()
    assert log.closed and log.failure is None
    assert reopened(folder).log_end_offset == COUNT


def test_a_damaged_segment_grows_old_by_its_file(folder: Path) -> None:
    for path in folder.glob("*.timeindex"):
        path.unlink()
    zero_the_middle_of_first_segment(folder)
    log = reopened(folder, retention_ms=1000)
    second = log.segments[1].base_offset
    log.segments[0].modified_ms = NOW + 500
    assert log.delete_old_segments(NOW + 1200) == 0, "the records are older, but that cannot be read"
    assert log.delete_old_segments(NOW + 5000) > 0 and log.log_start_offset >= second
