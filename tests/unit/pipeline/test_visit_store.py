"""The state of first visits: what a batch starts from never depends on what came after it."""

import random
from pathlib import Path

import pytest

from barnabas.pipeline import visits
from barnabas.pipeline.visits import VisitStore


def add(store: VisitStore, batch: int, days: dict[str, int]) -> dict[str, int]:
    """What the batch started from."""
    state = store.before(batch)
    started = dict(state)
    state.update(days)
    store.commit(batch, days)
    return started


def test_batches_follow_each_other(tmp_path: Path) -> None:
    store = VisitStore(str(tmp_path), "ods_base_log-0")
    assert add(store, 0, {"a": 1}) == {}
    assert add(store, 1, {"b": 2}) == {"a": 1}
    assert add(store, 5, {}) == {"a": 1, "b": 2}, "a batch may have nothing for this partition"
    assert VisitStore(str(tmp_path), "ods_base_log-0").before(6) == {"a": 1, "b": 2}
    assert VisitStore(str(tmp_path), "ods_base_log-1").before(6) == {}


def test_a_replay_starts_from_where_the_first_attempt_did(tmp_path: Path) -> None:
    store = VisitStore(f"file://{tmp_path}", "p")
    add(store, 0, {"a": 1})
    add(store, 1, {"a": 0, "b": 1})
    for again in (store, VisitStore(str(tmp_path), "p")):
        assert again.before(1) == {"a": 1}
    assert add(VisitStore(str(tmp_path), "p"), 1, {"c": 3}) == {"a": 1}
    assert VisitStore(str(tmp_path), "p").before(2) == {"a": 1, "c": 3}, (
        "the second attempt's delta replaces the first's"
    )


def test_another_worker_wrote_in_between(tmp_path: Path) -> None:
    here, there = VisitStore(str(tmp_path), "p"), VisitStore(str(tmp_path), "p")
    add(here, 0, {"a": 1})
    assert add(there, 1, {"b": 1}) == {"a": 1}
    assert add(here, 2, {"c": 1}) == {"a": 1, "b": 1}


@pytest.mark.parametrize("seed", range(5))
def test_any_history(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers that come and go, replays, snapshots: always what a plain list of versions says."""
    monkeypatch.setattr(visits, "_SNAPSHOT_EVERY", 7)
    chance = random.Random(seed)
    versions: list[dict[str, int]] = [{}]
    workers = [VisitStore(str(tmp_path), "p") for _ in range(3)]
    batch = 0
    for _ in range(120):
        number = chance.randrange(3)
        if chance.random() < 0.1:
            workers[number] = VisitStore(str(tmp_path), "p")
        if chance.random() < 0.2 and batch > 0:
            batch -= 1
            del versions[batch + 1 :]
        made = random.Random(f"{seed} {batch}")
        days = {f"m{made.randrange(40)}": made.randrange(100) for _ in range(made.randrange(4))}
        assert add(workers[number], batch, days) == versions[batch], f"seed {seed}, batch {batch}"
        versions.append(versions[batch] | days)
        batch += 1
    names = [path.name for path in (tmp_path / "visits" / "p").iterdir()]
    assert len(names) < 40, "old versions are cleaned up"


def test_a_file_that_was_not_finished_is_none(tmp_path: Path) -> None:
    store = VisitStore(str(tmp_path), "p")
    add(store, 0, {"a": 1})
    folder = tmp_path / "visits" / "p"
    (folder / f"{1:020d}.delta.new").write_bytes(b"half")
    assert VisitStore(str(tmp_path), "p").before(2) == {"a": 1}


class KilledFiles:
    """A file system of a process that is killed before a file gets its name."""

    def __init__(self, files: object) -> None:
        self._files = files

    def __getattr__(self, name: str) -> object:
        if name == "move":
            raise InterruptedError
        return getattr(self._files, name)


def test_attempts_at_once_have_files_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one name for both, one would give the other's unfinished file its name. What the killed leave goes."""
    folder = tmp_path / "visits" / "p"
    for _ in range(2):
        killed = VisitStore(str(tmp_path), "p")
        monkeypatch.setattr(killed, "_files", KilledFiles(killed._files))
        with pytest.raises(InterruptedError):
            add(killed, 0, {"a": 1})
    assert len(list(folder.iterdir())) == 2
    monkeypatch.setattr(visits, "_SNAPSHOT_EVERY", 7)
    store = VisitStore(str(tmp_path), "p")
    for batch in range(40):
        assert len(add(store, batch, {f"m{batch}": 1})) == batch
    assert not list(folder.glob("*.new"))
