import errno
import queue
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from compacted_log import TOPIC_PARTITION, CompactedLog, CrashingFiles, call_directly

from barnabas.clock import ManualClock, SystemClock
from barnabas.records import read_records
from barnabas.storage.cleaner.batch_filter import BatchFilter
from barnabas.storage.cleaner.checkpoint import CleanerCheckpoint
from barnabas.storage.cleaner.cleaner import Cleaner
from barnabas.storage.cleaner.log_cleaner import CleanerSettings, LogCleaner
from barnabas.storage.cleaner.throttle import Throttle
from barnabas.storage.files import Files
from barnabas.types import TopicPartition


@pytest.fixture
def compacted(tmp_path: Path) -> CompactedLog:
    compacted = CompactedLog(str(tmp_path))
    compacted.append([(b"a", b"1"), (b"a", b"2")])
    compacted.append([(b"b", b"1"), (b"b", b"2")])
    compacted.roll()
    return compacted


def checkpoint_text(compacted: CompactedLog) -> str:
    return (Path(compacted.directory).parent / "cleaner-offset-checkpoint").read_text()


def test_the_checkpoint_is_written_and_read_again(compacted: CompactedLog) -> None:
    assert compacted.clean()
    assert checkpoint_text(compacted) == "0\n1\ncompacted 0 4\n"
    compacted.reopen()
    assert compacted.cleaner.clean_offset(compacted.log) == 4
    assert not compacted.clean()


def test_a_broken_checkpoint_means_cleaning_again(compacted: CompactedLog) -> None:
    assert compacted.clean()
    (Path(compacted.directory).parent / "cleaner-offset-checkpoint").write_bytes(b"\x00" * 30)
    compacted.reopen()
    assert compacted.clean()
    assert checkpoint_text(compacted) == "0\n1\ncompacted 0 4\n"


def test_truncation_and_deletion_move_the_checkpoint(compacted: CompactedLog) -> None:
    assert compacted.clean()
    compacted.cleaner.on_truncated(compacted.log, 10)
    assert compacted.cleaner.clean_offset(compacted.log) == 4
    compacted.cleaner.on_truncated(compacted.log, 2)
    compacted.cleaner.pause(TOPIC_PARTITION)
    assert not compacted.clean()
    assert checkpoint_text(compacted) == "0\n1\ncompacted 0 2\n"
    compacted.cleaner.on_deleted(compacted.log)
    assert not compacted.clean()
    assert checkpoint_text(compacted) == "0\n0\n"


def test_a_paused_log_is_not_cleaned_until_all_have_resumed(compacted: CompactedLog) -> None:
    compacted.cleaner.pause(TOPIC_PARTITION)
    compacted.cleaner.pause(TOPIC_PARTITION)
    compacted.cleaner.resume(TOPIC_PARTITION)
    assert not compacted.clean()
    compacted.cleaner.resume(TOPIC_PARTITION)
    assert compacted.clean()


@pytest.mark.parametrize("policy", [("compact",), ("compact", "delete"), ("delete",)])
def test_only_compacted_topics_are_cleaned(tmp_path: Path, policy: tuple[str, ...]) -> None:
    compacted = CompactedLog(str(tmp_path), cleanup_policy=policy)
    compacted.append([(b"a", b"1"), (b"a", b"2")])
    compacted.roll()
    assert compacted.clean() is ("compact" in policy)


def test_compact_and_delete_together(tmp_path: Path) -> None:
    compacted = CompactedLog(str(tmp_path), cleanup_policy=("compact", "delete"), retention_ms=1_000)
    compacted.append([(b"a", b"1"), (b"a", b"2")])
    compacted.clean_all()
    compacted.clock.advance(2_000)
    compacted.append([(b"b", b"1")])
    compacted.roll()
    assert compacted.log.delete_old_segments(compacted.clock.now_ms()) == 1
    compacted.clean_all()
    assert compacted.last_values() == {b"b": b"1"}


def interrupt_copying(monkeypatch: pytest.MonkeyPatch, action: Callable[[], None]) -> None:
    """Runs `action` once, in the middle of the first group that is copied."""
    keep = BatchFilter.keep
    pending = [action]

    def keep_after_action(self, header, batch):  # type: ignore[no-untyped-def]
        if pending:
            pending.pop()()
        return keep(self, header, batch)

    monkeypatch.setattr(BatchFilter, "keep", keep_after_action)


@pytest.mark.parametrize("change", ["pause", "truncate", "rewrite", "delete", "stop", "close"])
def test_a_log_that_changes_under_the_cleaner_is_left_as_it_is(
    compacted: CompactedLog, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    log, cleaner = compacted.log, compacted.cleaner
    compacted.append([(b"a", b"3")])
    actions: dict[str, Callable[[], object]] = {
        "pause": lambda: cleaner.pause(TOPIC_PARTITION),
        "truncate": lambda: log.truncate_to(2, compacted.clock.now_ms()),
        "delete": lambda: (
            log.retention.increase_log_start_offset(4),
            log.delete_old_segments(compacted.clock.now_ms()),
        ),
        "stop": cleaner.stop,
        "close": log.close,
    }

    def rewrite() -> None:
        """Other records of the same size come in place of those that were cut."""
        log.truncate_to(2, compacted.clock.now_ms())
        compacted.append([(b"c", b"1"), (b"c", b"2")])
        compacted.roll()
        compacted.append([(b"a", b"3")])

    actions["rewrite"] = rewrite
    interrupt_copying(monkeypatch, lambda: (actions[change](), None)[1])
    assert not compacted.clean()
    left = {"truncate": [0, 1], "delete": [4]}.get(change, [0, 1, 2, 3, 4])
    assert [record.offset for record in compacted.records()] == left
    assert (b"c" in compacted.last_values()) is (change == "rewrite")
    assert not any(name.endswith(".cleaned") for name in compacted.file_names())
    assert cleaner.clean_offset(log) == 0, "noted before the first swap, with nothing clean yet"
    assert cleaner.uncleanable == frozenset()


def test_damage_is_reported_and_never_copied(compacted: CompactedLog, caplog: pytest.LogCaptureFixture) -> None:
    path = Path(compacted.directory, "00000000000000000000.log")
    damaged = bytearray(path.read_bytes())
    damaged[-1] ^= 1
    path.write_bytes(damaged)
    compacted.clean()
    assert compacted.cleaner.uncleanable == {TOPIC_PARTITION}
    assert "bad CRC" in caplog.text
    assert path.read_bytes() == damaged
    assert not compacted.clean()
    compacted.cleaner.on_deleted(compacted.log)
    assert compacted.cleaner.uncleanable == frozenset()


class FailingFiles(CrashingFiles):
    """Fails once, with the error given."""

    def __init__(self, code: int) -> None:
        super().__init__(10**9)
        self.code = code

    def step(self) -> None:
        self.left -= 1
        if self.left < 0:
            self.left = 10**9
            raise OSError(self.code, "injected")


def test_a_full_disk_is_tried_again(compacted: CompactedLog) -> None:
    files = FailingFiles(errno.ENOSPC)
    compacted.open(clean=True, files=files)
    files.left = 4
    assert not compacted.clean()
    assert compacted.log.failure is None
    assert not any(name.endswith(".cleaned") for name in compacted.file_names())
    assert compacted.clean()
    assert [record.offset for record in compacted.records()] == [1, 3]


def test_a_broken_disk_takes_the_log_offline(compacted: CompactedLog) -> None:
    files = FailingFiles(errno.EIO)
    compacted.open(clean=True, files=files)
    files.left = 4
    assert not compacted.clean()
    assert compacted.log.failure is not None
    assert not compacted.clean()


def test_a_slice_that_is_being_sent_stays_readable(compacted: CompactedLog) -> None:
    sending = compacted.log.read(0, 10_000, 4, True).slice
    assert sending is not None
    assert compacted.clean()
    content = sending.file.pread(sending.length, sending.position)
    assert [record.offset for record in read_records(content)] == [0, 1]


def test_the_throttle_waits_for_what_was_taken_beyond_the_rate() -> None:
    clock = ManualClock()
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(round(seconds, 3))
        clock.advance(int(seconds * 1000))

    throttle = Throttle(1_000, clock, wait)
    throttle.take(600)
    throttle.take(400)
    assert waits == []
    throttle.take(500)
    assert waits == [0.5]
    clock.advance(60_000)
    throttle.take(3_000)
    assert waits == [0.5, 2.0]
    throttle.set_rate(100)
    throttle.take(50)
    assert waits[-1] == 0.5
    unlimited = Throttle(float("inf"), clock, wait)
    unlimited.take(10**12)
    assert len(waits) == 3
    unlimited.set_rate(100)
    unlimited.take(200)
    assert waits[3:] == [1.0]


def test_cleaning_counts_what_it_reads_and_writes(compacted: CompactedLog) -> None:
    taken: list[int] = []

    class Counting(Throttle):
        def take(self, size: int) -> None:
            taken.append(size)

    compacted.cleaner._throttle = Counting(1, compacted.clock, lambda _: None)
    size = compacted.log.segments[0].size
    assert compacted.clean()
    assert sum(taken) == 2 * size + compacted.log.segments[0].size


def test_no_two_threads_take_the_same_log(compacted: CompactedLog) -> None:
    seen: list[bool] = []

    class Nosy(Cleaner):
        def clean(self, target, now_ms):  # type: ignore[no-untyped-def]
            seen.append(compacted.cleaner.clean_filthiest(compacted.cleaner.new_cleaner()))
            return super().clean(target, now_ms)

    cleaner = compacted.cleaner
    nosy = Nosy(cleaner.new_cleaner()._map, cleaner._throttle, call_directly, cleaner._check_may_continue)
    assert cleaner.clean_filthiest(nosy)
    assert seen == [False]


def test_threads_clean_on_their_own_and_touch_the_log_only_on_the_loop(compacted: CompactedLog) -> None:
    """This thread is the event loop: it runs what the cleaner hands over until the log is clean."""
    calls: queue.Queue[tuple[Callable[[], object], list[object], threading.Event]] = queue.Queue()

    def call_on_loop(function):  # type: ignore[no-untyped-def]
        result: list[object] = []
        done = threading.Event()
        calls.put((function, result, done))
        done.wait()
        return result[0]

    settings = CleanerSettings(threads=2, backoff_ms=600_000)
    cleaner = LogCleaner(lambda: [compacted.log], settings, SystemClock(), call_on_loop)
    cleaner.start()
    while not cleaner.clean_offset(compacted.log):
        run_next(calls)
    assert [record.offset for record in compacted.records()] == [1, 3]
    compacted.append([(b"a", b"3")])
    compacted.roll()
    cleaner.wake()
    while cleaner.clean_offset(compacted.log) != 5:
        run_next(calls)
    cleaner.stop()
    ended = threading.Thread(target=cleaner.join)
    ended.start()
    while ended.is_alive():
        try:
            run_next(calls, timeout=0.01)
        except queue.Empty:
            pass
    assert [record.offset for record in compacted.records()] == [3, 4]


def run_next(calls: queue.Queue, timeout: float = 60) -> None:  # type: ignore[type-arg]
    function, result, done = calls.get(timeout=timeout)
    result.append(function())
    done.set()


def test_a_checkpoint_that_could_not_be_written_is_written_later(tmp_path: Path) -> None:
    files = FailingFiles(errno.ENOSPC)
    checkpoint = CleanerCheckpoint(files, str(tmp_path))
    checkpoint.set(TopicPartition("t", 1), 5)
    files.left = 0
    with pytest.raises(OSError, match="injected"):
        checkpoint.write_if_changed()
    checkpoint.write_if_changed()
    assert CleanerCheckpoint(Files(), str(tmp_path)).get(TopicPartition("t", 1)) == 5
