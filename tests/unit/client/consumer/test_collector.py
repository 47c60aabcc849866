from typing import Any

import pytest
from fetched import marker, values

from barnabas.client.consumer.collector import Chunk, Collector
from barnabas.client.consumer.cursor import RecordCursor
from barnabas.client.consumer.fetch_buffer import CompletedFetch, FetchBuffer
from barnabas.client.consumer.offsets import EARLIEST
from barnabas.client.consumer.partition_state import FetchState, PartitionState
from barnabas.client.consumer.subscription import SubscriptionState
from barnabas.client.errors import DeserializationError, OffsetOutOfRangeError
from barnabas.errors import ErrorCode, KafkaError
from barnabas.records import ControlType
from barnabas.records.codec import batch_span
from barnabas.types import TopicPartition

A, B = TopicPartition("a", 0), TopicPartition("b", 1)


class World:
    """A consumer's buffer with what a fetcher would have put into it."""

    def __init__(self, **options: object) -> None:
        self.changes = 0
        self.subscription = SubscriptionState(EARLIEST)
        self.subscription.assign([A, B])
        for entry in (A, B):
            self.subscription.seek(entry, 0)
            self[entry].leader = 1
        self.buffer = FetchBuffer(self.subscription)
        self.collector = Collector(self.subscription, self.buffer, on_change=self._changed, **options)

    def _changed(self) -> None:
        self.changes += 1

    def __getitem__(self, entry: TopicPartition) -> PartitionState:
        return self.subscription.state(entry)

    def arrive(self, entry: TopicPartition, *batches: bytes, aborted: list[tuple[int, int]] | None = None) -> None:
        records = memoryview(b"".join(batches))
        span = batch_span(records)
        assert span is not None
        next_offset, epoch = span
        with self.subscription.lock:
            self.buffer.add(CompletedFetch(self[entry], records, next_offset, aborted))
            self[entry].on_fetched(next_offset, epoch, len(records))

    def fail(self, entry: TopicPartition, error: KafkaError | None) -> None:
        self[entry].blocked = True
        self.buffer.add(CompletedFetch(self[entry], memoryview(b""), 0, error=lambda _: error))

    def take(self, count: int = 500) -> list[bytes]:
        return [record.value for chunk in self.collector.take(count) for record in chunk.records]


def test_records_come_in_order_and_up_to_the_number_asked_for() -> None:
    world = World()
    world.arrive(A, values(0, b"0", b"1", b"2"), values(3, b"3", b"4"))
    world.arrive(B, values(0, b"x", b"y"))
    assert world.take(2) == [b"0", b"1"]
    assert (world[A].offset, world[B].offset) == (2, 0)
    assert world.take(4) == [b"2", b"3", b"4", b"x"]
    assert (world[A].offset, world[A].buffered_bytes) == (5, 0)
    assert world.take() == [b"y"]
    assert world.take() == []
    assert (len(world.buffer), world.buffer.size) == (0, 0)


def test_positions_move_over_markers_and_aborted_records() -> None:
    world = World()
    world.arrive(
        A,
        values(0, b"no", producer_id=7, transactional=True),
        values(1, b"yes"),
        marker(2, 7, ControlType.ABORT),
        aborted=[(7, 0)],
    )
    assert world.take() == [b"yes"]
    assert world[A].offset == 3
    world.arrive(A, marker(3, 8, ControlType.COMMIT))
    assert world.take() == []
    assert world[A].offset == 4
    assert world[A].offset_epoch == 3


def test_what_a_seek_made_void_is_dropped() -> None:
    world = World()
    world.arrive(A, values(0, b"0", b"1"))
    world.arrive(B, values(0, b"x"))
    world.subscription.seek(A, 1)
    world.buffer.drop_void()
    assert len(world.buffer) == 1
    assert world.take() == [b"x"]
    assert world[A].offset == 1


def test_what_a_rebalance_took_is_dropped() -> None:
    world = World()
    world.arrive(A, values(0, b"0"))
    world.subscription.remove([A])
    assert world.take() == []
    assert world.buffer.size == 0


def test_a_paused_partition_keeps_its_data_and_its_place() -> None:
    world = World()
    world.arrive(A, values(0, b"0", b"1"))
    world.arrive(B, values(0, b"x"))
    assert world.take(1) == [b"0"]
    world.subscription.set_paused([A], True)
    assert world.take() == [b"x"]
    world.subscription.set_paused([A], False)
    assert world.take() == [b"1"]


def test_what_was_kept_of_paused_partitions_stays_in_order() -> None:
    world = World()
    world.arrive(A, values(0, b"0"))
    world.arrive(A, values(1, b"1"))
    world.arrive(A, values(2, b"2"))
    world.subscription.set_paused([A], True)
    assert world.take() == []
    world.subscription.set_paused([A], False)
    assert world.take() == [b"0", b"1", b"2"]


def test_room_is_reported_once_after_something_was_taken_out() -> None:
    world = World()
    world.arrive(A, values(0, b"0"))
    assert not world.buffer.made_room()
    world.buffer.starve()
    assert not world.buffer.made_room()
    world.take()
    assert world.buffer.made_room()
    assert not world.buffer.made_room()


def test_an_error_waits_for_what_came_before_it() -> None:
    world = World()
    world.arrive(A, values(0, b"0"))
    world.fail(A, OffsetOutOfRangeError("gone", {A: 1}))
    world.arrive(B, values(0, b"x"))
    assert world.take() == [b"0"]
    with pytest.raises(OffsetOutOfRangeError):
        world.take()
    assert not world[A].blocked
    assert world.changes == 1
    assert world.take() == [b"x"]


def test_an_error_that_mends_itself_is_not_seen() -> None:
    world = World()
    world.fail(A, None)
    world.arrive(B, values(0, b"x"))
    assert world.take() == [b"x"]
    assert world.changes == 1


def test_a_bad_crc_is_raised_after_the_good_records_and_stays_until_a_seek() -> None:
    world = World()
    broken = bytearray(values(2, b"bad"))
    broken[-2] ^= 1
    world.arrive(A, values(0, b"0", b"1"), bytes(broken))
    assert world.take() == [b"0", b"1"]
    for _ in range(2):
        with pytest.raises(KafkaError, match="a-0 at offset 2") as raised:
            world.take()
        assert raised.value.code == ErrorCode.CORRUPT_MESSAGE
    world.subscription.seek(A, 3)
    assert world.take() == []
    assert World(check_crcs=False).collector is not None


def test_check_crcs_can_be_switched_off() -> None:
    world = World(check_crcs=False)
    broken = bytearray(values(0, b"bad"))
    broken[17] ^= 1
    world.arrive(A, bytes(broken))
    assert world.take() == [b"bad"]


def test_deserializers_see_bytes_but_never_null() -> None:
    world = World(key_deserializer=lambda data: 1 / 0, value_deserializer=bytes.decode)
    world.arrive(A, values(0, b"zero", b"one"))
    assert world.take() == ["zero", "one"]


def test_a_deserializer_that_raises_names_the_record_and_how_to_skip_it() -> None:
    world = World(value_deserializer=int)
    world.arrive(A, values(0, b"0", b"1", b"two", b"3"))
    assert world.take() == [0, 1]
    assert world[A].offset == 2
    for _ in range(2):
        with pytest.raises(DeserializationError, match=r"value.*a-0 offset 2.*seek\(\('a', 0\), 3\)") as raised:
            world.take()
        assert (raised.value.partition, raised.value.offset) == (A, 2)
        assert isinstance(raised.value.__cause__, ValueError)
    world.subscription.seek(A, 3)
    world[A].leader = 1
    world.arrive(A, values(0, b"0", b"1", b"two", b"3"))
    assert world.take() == [3]


def test_columns_take_everything_that_is_there() -> None:
    pytest.importorskip("pyarrow")
    world = World()
    world.arrive(A, values(0, b"0", b"1"))
    world.arrive(B, values(0, b"x"))
    rows = world.collector.take_arrow(None, 1 << 20)
    assert rows.column("value").to_pylist() == [b"0", b"1", b"x"]
    assert rows.column("topic").to_pylist() == ["a", "a", "b"]
    assert (world[A].offset, world[B].offset, world.buffer.size) == (2, 1, 0)
    empty = world.collector.take_arrow(None, 1 << 20)
    assert (empty.num_rows, empty.schema) == (0, rows.schema)


def test_a_response_without_rows_leaves_nothing_in_the_reader() -> None:
    """Markers of transactions alone: the next record batch begins with a reader that knows nothing of them."""
    pytest.importorskip("pyarrow")
    world = World()
    empty = world.collector.take_arrow(None, 1 << 20)
    assert world.collector.take_arrow(None, 1 << 20) is empty
    world.arrive(A, marker(0, 7, ControlType.COMMIT))
    rows = world.collector.take_arrow(None, 1 << 20)
    assert (rows.num_rows, rows.schema, world[A].offset, world.buffer.size) == (0, empty.schema, 1, 0)
    reader = world.collector._arrow
    assert reader is not None and reader.leader_epoch is None


def test_columns_are_cut_where_the_number_asked_for_ends() -> None:
    pytest.importorskip("pyarrow")
    world = World()
    world.arrive(A, values(0, b"0", b"1"))
    world.arrive(B, values(0, b"x", b"y", b"z"))
    assert world.collector.take_arrow(3, 1 << 20).column("value").to_pylist() == [b"0", b"1", b"x"]
    assert (world[A].offset, world[B].offset) == (2, 1)
    assert world.take(1) == [b"y"]
    assert world.collector.take_arrow(3, 1 << 20).column("value").to_pylist() == [b"z"]
    assert world.collector.take_arrow(3, 1 << 20).num_rows == 0


def test_records_and_columns_by_turns() -> None:
    pytest.importorskip("pyarrow")
    world = World()
    world.arrive(A, values(0, b"0", b"1", b"2", b"3", b"4"))
    assert world.take(1) == [b"0"]
    assert world.collector.take_arrow(2, 1 << 20).column("value").to_pylist() == [b"1", b"2"]
    assert world.take(1) == [b"3"]
    assert world.collector.take_arrow(2, 1 << 20).column("value").to_pylist() == [b"4"]


def test_a_position_that_jumped_while_records_were_decoded_stays() -> None:
    """The I/O thread may reset it just then, after a truncation."""
    world = World(value_deserializer=lambda data: world.subscription.seek(A, 50))
    world.arrive(A, values(98, b"98", b"99"))
    world.take()
    assert world[A].offset == 50


def test_columns_are_bounded_by_bytes() -> None:
    pytest.importorskip("pyarrow")
    world = World()
    world.arrive(A, values(0, b"0"))
    world.arrive(A, values(1, b"1"))
    assert world.collector.take_arrow(None, 1).column("value").to_pylist() == [b"0"]
    assert world.collector.take_arrow(None, 1).column("value").to_pylist() == [b"1"]


def test_an_error_after_columns_comes_next_time() -> None:
    pytest.importorskip("pyarrow")
    world = World()
    world.arrive(A, values(0, b"0"))
    world.fail(A, OffsetOutOfRangeError("gone"))
    assert world.collector.take_arrow(None, 1 << 20).num_rows == 1
    with pytest.raises(OffsetOutOfRangeError):
        world.collector.take_arrow(None, 1 << 20)
    assert world.collector.take_arrow(None, 1 << 20).num_rows == 0


class TestCursor:
    def filled(self) -> tuple[World, RecordCursor]:
        world = World()
        world.arrive(A, values(0, b"0", b"1", b"2"), marker(3, 5, ControlType.COMMIT))
        world.arrive(B, values(0, b"x"))
        cursor = RecordCursor(world.subscription)
        cursor.fill(world.collector.take(500))
        return world, cursor

    def test_positions_move_with_each_record(self) -> None:
        world, cursor = self.filled()
        seen = []
        for record in cursor:
            seen.append((record.value, world[A].offset, world[B].offset))
        assert seen == [(b"0", 1, 0), (b"1", 2, 0), (b"2", 3, 0), (b"x", 4, 1)]
        assert cursor.is_empty

    def test_a_loop_that_is_left_goes_on_later(self) -> None:
        world, cursor = self.filled()
        for record in cursor:
            if record.value == b"1":
                break
        assert world[A].offset == 2
        assert [record.value for record in cursor] == [b"2", b"x"]

    def test_a_poll_takes_what_a_loop_left(self) -> None:
        world, cursor = self.filled()
        next(iter(cursor))
        assert [record.value for record in cursor.take(2)] == [b"1", b"2"]
        assert world[A].offset == 4
        assert [record.value for record in cursor.take(2)] == [b"x"]
        assert cursor.is_empty

    def test_a_seek_inside_the_loop_ends_the_rest_of_that_partition(self) -> None:
        world, cursor = self.filled()
        seen = []
        for record in cursor:
            seen.append(record.value)
            if record.value == b"0":
                world.subscription.seek(A, 77)
        assert seen == [b"0", b"x"]
        assert world[A].offset == 77

    def test_a_pause_inside_the_loop_keeps_the_rest_for_later(self) -> None:
        world, cursor = self.filled()
        version = world[A].version
        seen = []
        for record in cursor:
            seen.append(record.value)
            if record.value == b"0":
                world.subscription.set_paused([A], True)
        assert seen == [b"0", b"x"]
        assert world[A].offset == 1
        assert world[A].version > version

    def test_a_validation_meanwhile_does_not_hold_up_the_loop(self) -> None:
        world, cursor = self.filled()
        seen = []
        for record in cursor:
            seen.append(record.value)
            world[A].check_leader(7, 9, b"t" * 16)
        assert seen == [b"0", b"1", b"2", b"x"]
        assert world[A].state is FetchState.AWAIT_VALIDATION
        assert world[A].offset == 4

    def test_what_is_given_back_is_fetched_again(self) -> None:
        world, cursor = self.filled()
        next(iter(cursor))
        cursor.give_back()
        assert cursor.is_empty
        assert (world[A].fetch_offset, world[B].fetch_offset) == (1, 0)

    def test_an_interceptor_may_leave_nothing(self) -> None:
        world = World()
        cursor = RecordCursor(world.subscription)
        cursor.fill([Chunk(world[A], world[A].version, [], 5, 3)])
        assert list(cursor) == []
        assert world[A].offset == 5


class Interrupt(BaseException):
    """Like Ctrl-C, which may come anywhere."""


@pytest.mark.parametrize("columns", [False, True])
def test_what_an_interrupt_kept_from_the_user_comes_again(columns: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    world.arrive(A, values(0, b"0"))
    world.arrive(B, values(0, b"1"))
    advance = world.collector._advance

    def interrupted(*given: Any) -> bool:
        advance(*given)
        if given[0].state is world[B]:
            raise Interrupt
        return True

    with monkeypatch.context() as patch:
        patch.setattr(world.collector, "_advance", interrupted)
        with pytest.raises(Interrupt):
            world.collector.take_arrow(None, 1000) if columns else world.collector.take(500)
    assert [(world[entry].offset, world[entry].fetch_offset) for entry in (A, B)] == [(0, 0), (0, 0)]
    assert world.changes and not len(world.buffer)
    world.arrive(A, values(0, b"again"))
    rows = world.collector.take_arrow(None, 1000)
    assert rows.column("value").to_pylist() == [b"again"]


def test_records_of_a_log_that_is_truncated_meanwhile_are_not_given_out() -> None:
    world = World(value_deserializer=lambda value: world[A].seek(0) or value)
    world.arrive(A, values(0, b"gone"))
    assert world.take() == [] and world[A].offset == 0
