from pathlib import Path

import pytest
from compacted_log import CompactedLog

from barnabas.storage.cleaner.candidates import cleanable_offsets, filthiest, log_to_clean
from barnabas.storage.cleaner.log_to_clean import LogToClean

DAY_MS = 86_400_000


def make(folder: Path, segments: int = 3, **config: object) -> CompactedLog:
    """Segments of two records each, an hour apart, and an active one."""
    compacted = CompactedLog(str(folder), **config)  # type: ignore[arg-type]
    for number in range(segments):
        compacted.append([(b"a", b"%d" % number)])
        compacted.append([(b"b", b"%d" % number)])
        compacted.roll()
        compacted.clock.advance(3_600_000)
    return compacted


def candidate(compacted: CompactedLog, checkpoint: int | None = None) -> LogToClean:
    now_ms = compacted.clock.now_ms()
    return log_to_clean(compacted.log, cleanable_offsets(compacted.log, checkpoint, now_ms), now_ms)


def test_everything_closed_is_dirty_at_first(tmp_path: Path) -> None:
    compacted = make(tmp_path)
    target = candidate(compacted)
    assert (target.first_dirty_offset, target.first_uncleanable_offset, len(target.segments)) == (0, 6, 3)
    assert target.clean_bytes == 0 and target.cleanable_ratio == 1.0


def test_the_dirty_ratio_counts_bytes_after_the_checkpoint(tmp_path: Path) -> None:
    compacted = make(tmp_path, segments=4)
    target = candidate(compacted, checkpoint=6)
    assert len(target.segments) == 4
    assert target.cleanable_bytes * 3 == target.clean_bytes
    assert target.cleanable_ratio == 0.25


@pytest.mark.parametrize(("ratio", "due"), [(0.2, True), (0.25, False), (0.5, False)])
def test_a_log_is_due_above_min_cleanable_dirty_ratio(tmp_path: Path, ratio: float, due: bool) -> None:
    compacted = make(tmp_path, segments=4, min_cleanable_dirty_ratio=ratio)
    assert candidate(compacted, checkpoint=6).is_due is due


def test_a_log_is_due_when_a_record_has_waited_too_long(tmp_path: Path) -> None:
    compacted = make(tmp_path, segments=4, min_cleanable_dirty_ratio=0.9, max_compaction_lag_ms=DAY_MS)
    assert not candidate(compacted, checkpoint=6).is_due
    compacted.clock.advance(DAY_MS)
    assert candidate(compacted, checkpoint=6).is_due
    assert candidate(compacted, checkpoint=6).compaction_delay_ms == 3_600_000
    assert not candidate(compacted, checkpoint=8).is_due


def test_young_records_are_left_for_min_compaction_lag(tmp_path: Path) -> None:
    compacted = make(tmp_path, min_compaction_lag_ms=3 * 3_600_000)
    assert candidate(compacted).first_uncleanable_offset == 2
    compacted.clock.advance(2 * 3_600_000)
    assert candidate(compacted).first_uncleanable_offset == 6


def test_the_segment_with_the_last_stable_offset_is_not_cleaned(tmp_path: Path) -> None:
    compacted = make(tmp_path)
    compacted.log.state.high_watermark = 3
    assert candidate(compacted).first_uncleanable_offset == 2
    assert cleanable_offsets(compacted.log, 4, 0)[:2] == (4, 4)  # cleaned before the high watermark was lost


def test_a_checkpoint_outside_the_log_is_put_right(tmp_path: Path) -> None:
    compacted = make(tmp_path)
    assert cleanable_offsets(compacted.log, 100, 0)[::2] == (0, True)
    compacted.log.retention.increase_log_start_offset(4)
    assert cleanable_offsets(compacted.log, 1, 0)[::2] == (4, True)
    assert cleanable_offsets(compacted.log, 5, 0)[::2] == (5, False)


def test_the_filthiest_log_that_is_due_comes_first(tmp_path: Path) -> None:
    logs = [make(tmp_path / str(number), segments=4) for number in range(3)]
    targets = [candidate(log, checkpoint) for log, checkpoint in zip(logs, (6, 2, 4))]
    assert filthiest(targets) is targets[1]
    assert filthiest([]) is None
    assert filthiest([candidate(logs[0], 8)]) is None
