"""A log against a model: a list of batches. Any order of operations, crashes and restarts among them."""

import shutil
import tempfile
from itertools import pairwise
from typing import NamedTuple

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from storage_logs import NOW, make_batch, offset_for_timestamp, open_test_log, small_config

from barnabas.errors import ErrorCode, KafkaError
from barnabas.records.header import BatchHeader, iter_headers
from barnabas.records.reader import read_records
from barnabas.storage.log import Log
from barnabas.storage.recovery import LogCheckpoints

CONFIG = small_config(segment_bytes=600, index_interval_bytes=120, retention_ms=-1, retention_bytes=1500)


class Batch(NamedTuple):
    base_offset: int
    count: int
    timestamp: int
    leader_epoch: int

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.count


class LogMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp(prefix="log-model-")
        self.log: Log = open_test_log(self.folder, CONFIG)
        self.batches: list[Batch] = []
        self.start = 0
        self.epoch = 0
        self.sequence = 0
        self.clock = NOW

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    @property
    def end(self) -> int:
        return self.batches[-1].next_offset if self.batches else self.start

    @rule(count=st.integers(1, 4), size=st.integers(0, 60), step_ms=st.integers(-5, 20))
    def append(self, count: int, size: int, step_ms: int) -> None:
        self.clock += step_ms
        batch = make_batch(
            count, size=size, timestamp=self.clock, producer_id=1, epoch=self.epoch, sequence=self.sequence
        )
        info = self.log.append_as_leader(batch, self.epoch, self.clock)
        assert not info.duplicate and info.first_offset == self.end
        self.batches.append(Batch(info.first_offset, count, self.clock, self.epoch))
        self.sequence += count

    @precondition(lambda self: self.batches and self.batches[-1].leader_epoch == self.epoch)
    @rule()
    def repeat_the_last_batch(self) -> None:
        last = self.batches[-1]
        batch = make_batch(last.count, producer_id=1, epoch=self.epoch, sequence=self.sequence - last.count)
        info = self.log.append_as_leader(batch, self.epoch, self.clock)
        assert info.duplicate and info.first_offset == last.base_offset

    @rule()
    def new_leader_epoch(self) -> None:
        self.epoch += 1
        self.sequence = 0

    @rule(where=st.floats(0, 1), max_bytes=st.integers(1, 2000))
    def read(self, where: float, max_bytes: int) -> None:
        offset = self.start + int(where * (self.end - self.start))
        data = self.log.read(offset, max_bytes, self.end, True)
        if data.slice is None:
            assert offset == self.end
            return
        headers = [header for _, header in iter_headers(data.slice.read())]
        expected = [batch for batch in self.batches if offset < batch.next_offset <= data.next_offset]
        assert [(header.base_offset, header.record_count) for header in headers] == [
            (batch.base_offset, batch.count) for batch in expected
        ]
        assert headers and (data.slice.length <= max_bytes or len(headers) == 1)

    @rule(back_ms=st.integers(-30, 300))
    def look_up_a_time(self, back_ms: int) -> None:
        wanted = self.clock - back_ms
        found = offset_for_timestamp(self.log, wanted)
        records = [
            (batch.timestamp + number, batch.base_offset + number)
            for batch in self.batches
            for number in range(batch.count)
        ]
        expected = next(((time, offset) for time, offset in records if time >= wanted and offset >= self.start), None)
        assert (None if found is None else found[:2]) == expected

    @precondition(lambda self: len(self.batches) > 1)
    @rule(where=st.floats(0, 1))
    def truncate(self, where: float) -> None:
        keep = int(where * len(self.batches))
        offset = self.batches[keep].base_offset if keep < len(self.batches) else self.end
        if offset <= self.start:
            return
        self.log.truncate_to(offset, self.clock)
        self.batches = self.batches[:keep]
        self.new_leader_epoch()

    @rule(where=st.floats(0, 1))
    def delete_records(self, where: float) -> None:
        self.log.update_high_watermark(self.end)
        offset = self.start + int(where * (self.end - self.start) / 2)
        self.log.delete_records_before(offset)
        self.start = max(self.start, offset)

    @rule()
    def retention(self) -> None:
        self.log.update_high_watermark(self.end)
        self.log.delete_old_segments(self.clock)
        assert self.start <= self.log.log_start_offset <= self.end
        self.start = self.log.log_start_offset
        self.batches = [batch for batch in self.batches if batch.next_offset > self.log.segments[0].base_offset]

    @precondition(lambda self: self.log.active.size)
    @rule()
    def roll(self) -> None:
        self.log.appender.roll(self.clock)

    @rule()
    def flush(self) -> None:
        self.log.flush()
        assert self.log.recovery_point == self.end

    @rule(clean=st.booleans())
    def restart(self, clean: bool) -> None:
        recovery_point = self.log.recovery_point
        if clean:
            self.log.close()
            recovery_point = self.log.recovery_point
        checkpoints = LogCheckpoints(recovery_point, self.start, self.log.high_watermark)
        self.log = open_test_log(self.folder, CONFIG, clean=clean, checkpoints=checkpoints, now_ms=self.clock)

    @invariant()
    def offsets_agree(self) -> None:
        log = self.log
        assert (log.log_start_offset, log.log_end_offset) == (self.start, self.end)
        assert log.log_start_offset <= log.last_stable_offset <= log.high_watermark <= log.log_end_offset
        assert all(one.base_offset < other.base_offset for one, other in pairwise(log.segments))
        for offset in (self.start - 1, self.end + 1):
            with pytest.raises(KafkaError) as caught:
                log.read(offset, 10, self.end, True)
            assert caught.value.code == ErrorCode.OFFSET_OUT_OF_RANGE

    @invariant()
    def epochs_agree(self) -> None:
        starts: dict[int, int] = {}
        for batch in self.batches:
            if batch.next_offset > self.start:
                starts.setdefault(batch.leader_epoch, max(batch.base_offset, self.start))
        if starts:
            assert dict(self.log.leader_epochs.entries()) == starts


LogMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
TestLogAgainstModel = LogMachine.TestCase


def test_headers_of_the_model_are_decodable(tmp_path: str) -> None:
    """The batches that the model appends are real ones: their records come back."""
    log = open_test_log(tmp_path, CONFIG)
    log.append_as_leader(make_batch(3, size=5), 0, NOW)
    data = log.read(0, 1000, 3, True).slice
    assert data is not None and [record.offset for record in read_records(data.read())] == [0, 1, 2]
    assert isinstance(next(iter_headers(data.read()))[1], BatchHeader)
