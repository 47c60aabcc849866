"""Compaction against a dict: whatever is written, rolled, cleaned and reopened, the last value of each key is there."""

import tempfile

from compacted_log import DELETE_RETENTION_MS, CompactedLog
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.records import CompressionType
from barnabas.storage.cleaner.log_cleaner import CleanerSettings
from barnabas.storage.cleaner.offset_map import BYTES_PER_ENTRY

KEYS = st.sampled_from([b"a", b"b", b"c", b"d" * 40, b""])
VALUES = st.none() | st.sampled_from([b"", b"1", b"x" * 60])
CONTENTS = st.lists(st.tuples(KEYS, VALUES), min_size=1, max_size=4)
CODECS = st.sampled_from([CompressionType.NONE, CompressionType.LZ4])
STEPS = st.one_of(
    st.tuples(st.just("append"), CONTENTS, CODECS),
    st.tuples(st.just("append"), CONTENTS, CODECS),
    st.tuples(st.just("roll")),
    st.tuples(st.just("clean")),
    st.tuples(st.just("wait"), st.sampled_from([1, DELETE_RETENTION_MS])),
    st.tuples(st.just("reopen")),
)
PRODUCERS = st.integers(1, 3)
TRANSACTION_STEPS = st.one_of(
    st.tuples(st.just("transactional"), CONTENTS, PRODUCERS),
    st.tuples(st.just("transactional"), CONTENTS, PRODUCERS),
    st.tuples(st.just("end"), PRODUCERS, st.booleans()),
    st.tuples(st.just("end"), PRODUCERS, st.booleans()),
    STEPS,
)


class Model:
    def __init__(self) -> None:
        self.by_offset: dict[int, tuple[bytes | None, bytes | None]] = {}
        self.last: dict[bytes | None, bytes | None] = {}

    def append(self, offset: int, contents: list) -> None:  # type: ignore[type-arg]
        for index, content in enumerate(contents):
            self.by_offset[offset + index] = content

    def commit(self, contents: list) -> None:  # type: ignore[type-arg]
        self.last.update(contents)

    def check(self, compacted: CompactedLog, end_offset: int) -> None:
        records = compacted.records()
        offsets = [record.offset for record in records]
        assert offsets == sorted(set(offsets))
        assert all(self.by_offset[record.offset] == (record.key, record.value) for record in records)
        assert compacted.log.log_end_offset == end_offset
        seen = {record.key: record.value for record in compacted.committed_records()}
        values = {key: value for key, value in self.last.items() if value is not None}
        assert {key: value for key, value in seen.items() if value is not None} == values
        for offset in range(end_offset):
            found = compacted.records(offset)
            assert [record.offset for record in found] == [left for left in offsets if left >= offset]


def common_step(compacted: CompactedLog, step: tuple) -> None:  # type: ignore[type-arg]
    if step[0] == "roll":
        compacted.roll()
    elif step[0] == "clean":
        compacted.clean()
    elif step[0] == "wait":
        compacted.clock.advance(step[1])
    elif step[0] == "reopen":
        compacted.reopen()


@settings(max_examples=30, deadline=None)
@given(steps=st.lists(STEPS, max_size=25), map_entries=st.sampled_from([1, 3, 1_000]))
def test_last_value_of_each_key(steps: list, map_entries: int) -> None:  # type: ignore[type-arg]
    with tempfile.TemporaryDirectory() as folder:
        cleaner = CleanerSettings(dedupe_buffer_size=BYTES_PER_ENTRY * map_entries, io_buffer_load_factor=1.0)
        compacted = CompactedLog(folder, cleaner, segment_bytes=600)
        model, end_offset = Model(), 0
        for step in steps:
            if step[0] == "append":
                offset = compacted.append(step[1], step[2])
                assert offset == end_offset
                model.append(offset, step[1])
                model.commit(step[1])
                end_offset += len(step[1])
            common_step(compacted, step)
        model.check(compacted, end_offset)
        compacted.clean_all()
        model.check(compacted, end_offset)
        compacted.open(clean=False)
        model.check(compacted, end_offset)


@settings(max_examples=30, deadline=None)
@given(steps=st.lists(TRANSACTION_STEPS, max_size=30))
def test_read_committed_sees_the_last_committed_value_of_each_key(steps: list) -> None:  # type: ignore[type-arg]
    with tempfile.TemporaryDirectory() as folder:
        compacted = CompactedLog(folder, segment_bytes=600)
        model = Model()
        pending: dict[int, list] = {}  # type: ignore[type-arg]
        committed: dict[bytes | None, tuple[int, bytes | None]] = {}

        def commit(contents: list) -> None:  # type: ignore[type-arg]
            for offset, (key, value) in contents:
                if offset >= committed.get(key, (-1, None))[0]:
                    committed[key] = (offset, value)

        def end(producer_id: int, is_commit: bool) -> None:
            contents = pending.pop(producer_id, None)
            if contents is not None:
                compacted.end_transaction(producer_id, commit=is_commit)
                if is_commit:
                    commit(contents)

        for step in steps:
            if step[0] in ("append", "transactional"):
                transactional = step[0] == "transactional"
                producer_id = step[2] if transactional else -1
                offset = compacted.append(step[1], producer_id=producer_id, transactional=transactional)
                model.append(offset, step[1])
                numbered = list(enumerate(step[1], offset))
                if transactional:
                    pending.setdefault(producer_id, []).extend(numbered)
                else:
                    commit(numbered)
            elif step[0] == "end":
                end(step[1], step[2])
            common_step(compacted, step)
        for producer_id in list(pending):
            end(producer_id, False)
        end_offset = compacted.log.log_end_offset
        for _ in range(3):
            compacted.clean_all()
            model.last = {key: value for key, (_, value) in committed.items()}
            model.check(compacted, end_offset)
            compacted.clock.advance(DELETE_RETENTION_MS)
            model.append(compacted.append([(b"filler", b"f")]), [(b"filler", b"f")])
            committed[b"filler"] = (end_offset, b"f")
            end_offset += 1
        compacted.open(clean=False)
        model.last = {key: value for key, (_, value) in committed.items()}
        model.check(compacted, end_offset)
