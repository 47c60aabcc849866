"""What is pending, and the progress, against a model: once, in order, never early, whatever crashes and clocks do."""

import random
import tracemalloc

import pytest

from barnabas.machines.delayed.pending import Pending, hash_of
from barnabas.machines.delayed.progress import Key, Mark, Progress, SavedProgress, read_progress, write_progress

TOPIC_ID = bytes(range(16))


def pending_of(*keys: tuple[int, int]) -> Pending:
    pending = Pending()
    for due_ms, offset in sorted(keys, key=lambda each: each[1]):
        pending.add(Key(due_ms, offset), 10)
    return pending


def test_order_is_by_due_time_then_offset() -> None:
    pending = pending_of((200_000, 0), (5, 1), (70_000, 2), (5, 3), (70_000, 4))
    taken, _ = pending.due(100_000, 100, 1000)
    assert [entry.key.offset for entry in taken] == [1, 3, 2, 4]
    assert pending.first() == Key(180_000, -1), "only that it is later"
    assert pending.count == 1
    assert pending.oldest_offset() == 0


def test_nothing_is_taken_early_and_limits_hold() -> None:
    pending = pending_of((10, 0), (20, 1), (30, 2))
    assert pending.due(9, 100, 1000) == ([], [])
    assert len(pending.due(30, 1, 1000)[0]) == 1
    assert len(pending.due(30, 100, 15)[0]) == 1


def test_a_later_record_replaces_and_one_without_value_cancels() -> None:
    pending, name = Pending(), hash_of(b"id")
    pending.add(Key(300, 0), 10, name)
    pending.add(Key(100, 1), 10, name)
    assert [entry.key.offset for entry in pending.due(100, 9, 99)[0]] == [1]
    taken, superseded = pending.due(300, 9, 99)
    assert (taken, [entry.key.offset for entry in superseded]) == ([], [0])
    pending.add(Key(400, 2), 10, name)
    pending.supersede(name, 3)
    assert pending.due(400, 9, 99)[0] == []


def test_the_oldest_offset_is_known_while_many_come_and_go() -> None:
    pending = Pending()
    pending.add(Key(10**12, 0), 10)
    for offset in range(1, 5000):
        pending.add(Key(offset, offset), 10)
        pending.due(offset, 10, 1000)
    assert pending.oldest_offset() == 0
    assert pending.count == 1


def test_a_cancelled_offset_is_not_delivered() -> None:
    pending = pending_of((10, 0), (20, 1), (30, 2))
    pending.cancel(1)
    taken, superseded = pending.due(30, 9, 99)
    assert [entry.key.offset for entry in taken] == [0, 2]
    assert [entry.key.offset for entry in superseded] == [1]
    for offset in range(5000):
        pending.cancel(offset)
    assert len(pending._cancelled) < 2000, "those that are not pending are forgotten"


def test_records_that_come_while_a_day_is_divided_keep_the_order() -> None:
    pending = Pending()
    due_ms = 86_400_000 * 3 + 5
    for offset in range(100):
        pending.add(Key(due_ms + offset % 3, offset), 10)
    assert pending.prepare(due_ms + 10, 40), "not done yet"
    for offset in range(100, 120):
        pending.add(Key(due_ms + offset % 3, offset), 10)
    assert pending.oldest_offset() == 0
    taken, _ = pending.due(due_ms + 10, 500, 10**6)
    keys = [entry.key for entry in taken]
    assert keys == sorted(keys) and len(keys) == 120
    assert pending.oldest_offset() is None


@pytest.mark.parametrize(
    ("apart_ms", "with_ids", "most_bytes"),
    [(3_153_600, False, 60), (0, False, 45), (0, True, 200)],
    ids=["over ten years", "at the same moment", "with an id each"],
)
def test_a_pending_record_takes_little_memory(apart_ms: int, with_ids: bool, most_bytes: int) -> None:
    count = 100_000
    tracemalloc.start()
    pending = Pending()
    for offset in range(count):
        pending.add(Key(86_400_000 + offset * apart_ms, offset), 10, offset + 1 if with_ids else 0)
    pending.prepare(86_400_001, 1 << 30)
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert used / count < most_bytes


def test_progress_survives_its_text() -> None:
    saved = SavedProgress(Progress((Mark(10, Key(99, 4)), Mark(20, Key(5, 12)))), 3, 7)
    assert read_progress(write_progress(saved, TOPIC_ID), TOPIC_ID) == saved
    assert read_progress(write_progress(saved, TOPIC_ID), bytes(16)) is None


@pytest.mark.parametrize("text", [None, "", "2 aa 1 1", "1 aa", "somebody's note"])
def test_progress_that_nobody_wrote_is_refused(text: str | None) -> None:
    with pytest.raises(ValueError, match=r".+"):
        read_progress(text, TOPIC_ID)


def test_offsets_beyond_an_unclean_election_are_new() -> None:
    progress = Progress((Mark(10, Key(99, 4)),)).cut(8)
    assert progress.is_done(Key(50, 7))
    assert not progress.is_done(Key(50, 8))


def model_pending(log: list[int], progress: Progress, scanned: int) -> list[Key]:
    keys = [Key(log[offset], offset) for offset in range(scanned)]
    return [key for key in keys if not progress.is_done(key)]


@pytest.mark.parametrize("seed", range(60))
def test_once_in_order_never_early_whatever_happens(seed: int) -> None:
    """A broker that dies between any two steps, with late records and a clock that jumps both ways."""
    chance = random.Random(seed)
    log: list[int] = []  # due times, by offset
    delivered: list[int] = []
    saved = SavedProgress(Progress(), 0, 0)
    pending, scanned, progress, now_ms = Pending(), 0, Progress(), 1_000_000
    for _ in range(400):
        step = chance.random()
        if step < 0.35:
            log += [
                chance.choice((0, now_ms, now_ms - chance.randrange(300_000), now_ms + chance.randrange(300_000)))
                for _ in range(chance.randrange(1, 8))
            ]
        elif step < 0.45:
            now_ms += chance.choice((1, 1000, 60_000, -90_000, 200_000))
        elif step < 0.55:  # killed: the next leader has what was committed, and the log
            saved = read_progress(write_progress(saved, TOPIC_ID), TOPIC_ID) or saved
            pending, progress, scanned = Pending(), saved.progress, min(saved.oldest_pending_offset, saved.progress.end)
        else:
            for offset in range(scanned, len(log)):
                if not progress.is_done(Key(log[offset], offset)):
                    pending.add(Key(log[offset], offset), 10)
            scanned = len(log)
            taken, _ = pending.due(now_ms, chance.randrange(1, 6), 1000)
            if not taken:
                continue
            left = pending.first()
            lower = [key for key in model_pending(log, progress, scanned) if key not in {entry.key for entry in taken}]
            assert left is None or not lower or left <= min(lower), "first() is no lower bound"
            keys = [entry.key for entry in taken]
            assert keys == sorted(keys)
            assert all(key.due_ms <= now_ms for key in keys), "early"
            assert left is None or keys[-1] < left, "out of order"
            if chance.random() < 0.2:  # killed in the middle of the transaction: it is aborted
                pending, progress = Pending(), saved.progress
                scanned = min(saved.oldest_pending_offset, progress.end)
                continue
            progress = progress.advanced(keys[-1], scanned, left)
            oldest = pending.oldest_offset()
            saved = SavedProgress(progress, 0, scanned if oldest is None else oldest)
            delivered += [key.offset for key in keys]
            assert len(progress.marks) < 20
    assert len(delivered) == len(set(delivered)), "twice"
    undelivered = {offset for offset in range(len(log)) if not progress.is_done(Key(log[offset], offset))}
    assert undelivered == set(range(len(log))) - set(delivered)
