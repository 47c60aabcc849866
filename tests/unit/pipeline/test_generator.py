"""Generated traffic: reproducible, shaped like what real producers send, and the right size."""

import itertools
import json
from collections import Counter

import pytest

from barnabas.pipeline.generator import GeneratedRecord, GeneratorOptions, generate


def take(number: int, **options: object) -> list[GeneratedRecord]:
    return list(itertools.islice(generate(GeneratorOptions(**options)), number))  # type: ignore[arg-type]


def test_same_seed_same_records() -> None:
    assert take(3000, dirty=0.05, duplicates=0.05) == take(3000, dirty=0.05, duplicates=0.05)
    assert take(3000) != take(3000, seed=2)


@pytest.mark.parametrize("generation", ["A", "B"])
def test_events(generation: str) -> None:
    records = [record for record in take(6000, generations=(generation,)) if record.topic == "ods_base_log"]
    events = [json.loads(record.value or b"") for record in records]
    for record, event in zip(records, events):
        assert record.key == event["common"]["mid"].encode() and event["ts"] == record.timestamp
        assert ("start" in event) != ("page" in event)
        assert event["common"]["is_new"] in ("0", "1")
        assert ("sid" in event["common"]) == (generation == "B")
    displays = [display for event in events for display in event.get("displays", ())]
    assert all(("pos_seq" in display) == (generation == "B") for display in displays)
    errors = sum("err" in event for event in events)
    assert 0.01 < errors / len(events) < 0.05
    assert 900 < sum(len(record.value or b"") for record in records) / len(records) < 1300


def test_changes_of_one_row_follow_each_other() -> None:
    records = [record for record in take(20_000, formats=("maxwell",)) if record.topic == "ods_base_db"]
    changes = [json.loads(record.value or b"") for record in records]
    kinds = Counter(change["type"] for change in changes)
    assert set(kinds) == {"bootstrap-insert", "insert", "update", "delete"}
    state: dict[tuple[str, int], dict[str, object]] = {}
    for record, change in zip(records, changes):
        row, key = change["data"], (change["table"], change["data"]["id"])
        assert record.key == str(row["id"]).encode()
        if change["type"] == "update":
            assert state[key] == {**row, **change["old"]}
        assert (change["type"] in ("update", "delete")) == (key in state)
        if change["type"] == "delete":
            del state[key]
        else:
            state[key] = row
    last = [change for change in changes if change.get("commit")]
    assert len({change["xid"] for change in last}) == len(last)


def test_formats_tell_the_same() -> None:
    told = []
    for name in ("maxwell", "canal", "debezium"):
        records = [record for record in take(4000, formats=(name,)) if record.topic == "ods_base_db"]
        told.append([_row(json.loads(record.value or b"")) for record in records])
    assert told[0] == told[1] == told[2]


def _row(change: dict[str, object]) -> tuple[object, object]:
    """(table, the row as strings), whichever tool wrote it."""
    if "op" in change:
        source, row = change["source"], change["after"] or change["before"]
        assert isinstance(source, dict) and isinstance(row, dict)
        return source["table"], {name: None if value is None else str(value) for name, value in row.items()}
    data = change["data"]
    row = data[0] if isinstance(data, list) else data
    assert isinstance(row, dict)
    return change["table"], {name: None if value is None else str(value) for name, value in row.items()}


def test_dirt_and_duplicates() -> None:
    clean = take(5000)
    assert len({(record.topic, record.key, record.value) for record in clean}) > 4990
    records = take(5000, dirty=0.1, duplicates=0.1)
    doubled = sum(first == second for first, second in itertools.pairwise(records))
    assert 300 < doubled < 700
    unreadable = 0
    for record in records:
        try:
            unreadable += not isinstance(json.loads(record.value or b""), dict)
        except ValueError:
            unreadable += 1
    assert 200 < unreadable < 700
