"""Frames cut out of a stream, by both buffer policies: any sizes, any pieces, pauses, limits, and who may keep what."""

import struct
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.transport.budget import MemoryBudget
from barnabas.transport.frames import FRAMES_PER_TURN, TURN_SECONDS, FrameBuffers, FrameReader
from barnabas.transport.kept_buffers import KEPT_BUFFERS, START_BYTES, KeptBuffers
from barnabas.transport.shared_buffers import FRAME_BYTES, LEFTOVER_BYTES, RECEIVE_BUFFER_BYTES, SharedBuffers

POLICIES = [SharedBuffers, KeptBuffers]
both_policies = pytest.mark.parametrize("policy", POLICIES)
LARGE = 700_000
MAX_BYTES = 1 << 30


class Sink:
    """Collects frames; pauses when asked to, as a connection does."""

    def __init__(self, budget: MemoryBudget, keeps: bool) -> None:
        self.pauses = 0
        self.frames: list[bytes] = []
        self.views: list[memoryview] = []
        self.bad_sizes: list[int] = []
        self.progress_count = 0
        self.turns = 0
        self.waits_for_memory = 0
        self.pause_after: Callable[[bytes], bool] = lambda frame: False
        self._keeps = keeps
        self._budget = budget

    def on_frame(self, frame: memoryview) -> None:
        self.frames.append(bytes(frame))
        if self._keeps:
            self.views.append(frame)
        if self.pause_after(self.frames[-1]):
            self.pauses = 1

    def on_bad_size(self, size: int) -> None:
        self.bad_sizes.append(size)

    def on_progress(self) -> None:
        self.progress_count += 1

    def give_way(self) -> None:
        self.turns += 1
        self.pauses = 1

    def wait_for_memory(self) -> None:
        self.waits_for_memory += 1
        self.pauses = 1
        self._budget.wait(lambda: None)


class Wire:
    """A reader without a socket: `feed` is what the network does."""

    def __init__(self, policy: type[FrameBuffers], *, limit_bytes: int = -1, keeps: bool = False) -> None:
        self.budget = MemoryBudget(limit_bytes)
        self.sink = Sink(self.budget, keeps)
        self.buffers = policy()
        self.reader = FrameReader(self.sink, self.buffers, self.budget, max_bytes=MAX_BYTES)

    def receive(self, data: memoryview) -> int:
        """One receive of what fits; how much that was."""
        room = self.reader.room()
        assert len(room) > 0
        count = min(len(room), len(data))
        room[:count] = data[:count]
        self.reader.received(room, count)
        return count

    def feed(self, data: bytes | memoryview) -> None:
        """All of it, with a new turn whenever the reader has paused."""
        rest = memoryview(data)
        while rest:
            rest = rest[self.receive(rest) :]
            while self.sink.pauses:
                self.sink.pauses = 0
                self.reader.go_on()

    def send(self, content: bytes) -> memoryview:
        """One frame; the view that came out, which only the caller holds then."""
        self.feed(framed(content))
        self.sink.frames.pop()
        return self.sink.views.pop()


def framed(content: bytes) -> bytes:
    return struct.pack(">i", len(content)) + content


def contents(sizes: list[int]) -> list[bytes]:
    return [bytes([number % 251]) * size for number, size in enumerate(sizes)]


edges = [0, 1, START_BYTES - 5, START_BYTES - 4, START_BYTES - 3, LEFTOVER_BYTES, FRAME_BYTES - 4, FRAME_BYTES - 3]
sizes = st.one_of(st.integers(0, 60), st.sampled_from([*edges, RECEIVE_BUFFER_BYTES]), st.integers(0, 600_000))
pieces = st.one_of(st.integers(1, 20), st.integers(1, 20_000), st.integers(100_000, 1_000_000))


@both_policies
@settings(max_examples=120, deadline=None)
@given(
    frame_sizes=st.lists(sizes, min_size=1, max_size=8),
    piece_sizes=st.lists(pieces, min_size=1, max_size=30),
    pauses=st.sets(st.integers(0, 7)),
    keeps=st.booleans(),
)
def test_whatever_the_sizes_pieces_and_pauses_the_frames_come_out_as_they_were_sent(
    policy: type[FrameBuffers], frame_sizes: list[int], piece_sizes: list[int], pauses: set[int], keeps: bool
) -> None:
    expected = contents(frame_sizes)
    wire = Wire(policy, keeps=keeps)
    wire.sink.pause_after = lambda frame: len(wire.sink.frames) - 1 in pauses
    rest = memoryview(b"".join(map(framed, expected)))
    for size in piece_sizes:
        wire.feed(rest[:size])
        rest = rest[size:]
    wire.feed(rest)
    assert wire.sink.frames == expected
    assert not wire.reader.has_backlog and not wire.reader.missing_bytes
    assert wire.budget.used_bytes == 0
    # A view that is held never changes: for one policy by right, for the other although it must not be held.
    assert [bytes(view) for view in wire.sink.views] == (expected if keeps else [])


@both_policies
@pytest.mark.parametrize("content", [b"", b"first", b"x" * 20_000, b"y" * 200_000])
def test_a_stream_cut_anywhere(policy: type[FrameBuffers], content: bytes) -> None:
    stream = framed(b"before") + framed(content) + framed(b"after")
    cuts = range(1, len(stream)) if len(stream) < 100 else [1, 9, 10, 11, 12, 14, 17, 9_000, len(stream) - 3]
    for cut in cuts:
        wire = Wire(policy)
        wire.feed(stream[:cut])
        wire.feed(stream[cut:])
        assert wire.sink.frames == [b"before", content, b"after"]


@both_policies
@pytest.mark.parametrize("size", [-1, -(2**31), 1001, 2**31 - 1])
def test_a_size_out_of_bounds_takes_no_memory(policy: type[FrameBuffers], size: int) -> None:
    wire = Wire(policy)
    wire.reader.max_bytes = 1000
    wire.receive(memoryview(framed(b"x" * 1000) + struct.pack(">i", size) + b"more"))
    assert wire.sink.frames == [b"x" * 1000]
    assert wire.sink.bad_sizes == [size]
    assert wire.budget.used_bytes == 0 and not wire.reader.has_backlog


@both_policies
def test_a_size_below_the_least_is_refused_before_the_frame_is_there(policy: type[FrameBuffers]) -> None:
    wire = Wire(policy)
    reader = FrameReader(wire.sink, wire.buffers, wire.budget, max_bytes=1000, min_bytes=4)
    room = reader.room()
    room[:4] = struct.pack(">i", 3)
    reader.received(room, 4)
    assert wire.sink.bad_sizes == [3]


@both_policies
def test_a_turn_has_its_share_of_frames(policy: type[FrameBuffers]) -> None:
    wire = Wire(policy)
    wire.receive(memoryview(framed(b"x") * (FRAMES_PER_TURN + 1)))
    assert (len(wire.sink.frames), wire.sink.turns) == (FRAMES_PER_TURN, 1)
    assert wire.reader.has_backlog
    wire.sink.pauses = 0
    wire.reader.go_on()
    assert len(wire.sink.frames) == FRAMES_PER_TURN + 1 and not wire.reader.has_backlog


@both_policies
def test_without_memory_no_frame_is_handed_out_and_no_large_one_begun(policy: type[FrameBuffers]) -> None:
    wire = Wire(policy, limit_bytes=100)
    wire.budget.reserve(100)
    wire.receive(memoryview(framed(b"small")))
    assert (wire.sink.frames, wire.sink.waits_for_memory) == ([], 1)
    wire.budget.release(100)
    wire.sink.pauses = 0
    wire.reader.go_on()
    assert wire.sink.frames == [b"small"]
    wire.budget.reserve(100)
    stream = memoryview(framed(bytes(LARGE)))
    begun = wire.receive(stream[:1000])
    assert (wire.sink.waits_for_memory, wire.reader.missing_bytes) == (2, 0)
    wire.budget.release(100)
    wire.sink.pauses = 0
    wire.reader.go_on()
    assert wire.budget.used_bytes == LARGE + 4
    assert wire.reader.missing_bytes == LARGE + 4 - begun
    wire.feed(stream[begun:])
    assert wire.sink.frames == [b"small", bytes(LARGE)] and wire.budget.used_bytes == 0


@both_policies
@pytest.mark.parametrize("sent", [2, 100, 300_000])
def test_who_is_dropped_holds_nothing(policy: type[FrameBuffers], sent: int) -> None:
    wire = Wire(policy)
    wire.feed(framed(bytes(LARGE))[:sent])
    wire.reader.drop()
    assert wire.budget.used_bytes == 0 and not wire.reader.has_backlog and not wire.reader.missing_bytes


@both_policies
def test_no_frame_follows_after_the_one_that_made_its_owner_close(policy: type[FrameBuffers]) -> None:
    wire = Wire(policy)
    on_frame = wire.sink.on_frame

    def close(frame: memoryview) -> None:
        on_frame(frame)
        wire.reader.drop()

    wire.sink.on_frame = close  # type: ignore[method-assign]
    wire.receive(memoryview(framed(b"last") + framed(b"never seen")))
    assert wire.sink.frames == [b"last"]


@both_policies
def test_the_progress_of_a_large_frame_is_reported(policy: type[FrameBuffers]) -> None:
    wire = Wire(policy)
    stream = memoryview(framed(bytes(LARGE)))
    for start in range(0, len(stream), 10_000):
        wire.feed(stream[start : start + 10_000])
    assert 5 <= wire.sink.progress_count <= 20


# --- what one policy promises ---


def test_a_view_of_the_shared_buffer_and_none_of_a_small_frame_that_is_kept() -> None:
    shared, kept = Wire(SharedBuffers, keeps=True), Wire(KeptBuffers, keeps=True)
    assert len(shared.send(b"small").obj) == RECEIVE_BUFFER_BYTES  # type: ignore[arg-type]
    assert kept.send(b"small").obj == b"small"


def test_the_shared_buffer_is_used_again() -> None:
    wire = Wire(SharedBuffers, keeps=True)
    first = id(wire.send(b"a").obj)
    assert id(wire.send(b"b").obj) == first


def test_a_kept_large_frame_stands_at_the_front_of_memory_that_may_be_written_to() -> None:
    wire = Wire(KeptBuffers, keeps=True)
    view = wire.send(b"a" * 20_000)
    assert len(view.obj) == 20_000 and not view.readonly  # type: ignore[arg-type]


def test_what_somebody_still_looks_at_is_never_written_over() -> None:
    wire = Wire(KeptBuffers, keeps=True)
    kept = [wire.send(bytes([number]) * LARGE)[number:] for number in range(1, 2 * KEPT_BUFFERS)]
    for number, view in enumerate(kept, 1):
        assert view == bytes([number]) * (LARGE - number)


def test_a_large_buffer_is_used_again_once_nobody_looks_at_it() -> None:
    wire = Wire(KeptBuffers, keeps=True)
    first = id(wire.send(b"a" * LARGE).obj)
    assert id(wire.send(b"b" * (LARGE + 1)).obj) == first


def test_a_frame_much_smaller_than_a_buffer_does_not_hold_on_to_it() -> None:
    wire = Wire(KeptBuffers, keeps=True)
    wire.send(b"a" * 8 * LARGE)
    assert len(wire.send(b"b" * LARGE).obj) < 2 * LARGE  # type: ignore[arg-type]


def test_few_buffers_are_kept() -> None:
    wire = Wire(KeptBuffers, keeps=True)
    views = [wire.send(bytes(LARGE)) for _ in range(3 * KEPT_BUFFERS)]
    assert len({id(view.obj) for view in views}) == len(views)
    assert isinstance(wire.buffers, KeptBuffers)
    assert len(wire.buffers._large) == KEPT_BUFFERS


@pytest.mark.parametrize(("frame_s", "turns"), [(0.0, 1), (TURN_SECONDS / 2, 5), (TURN_SECONDS, 10), (1.0, 10)])
def test_a_turn_is_bounded_by_time(frame_s: float, turns: int) -> None:
    """So that slow requests in a row on one connection do not hold up the others."""
    now = 0.0

    class SlowSink(Sink):
        def on_frame(self, frame: memoryview) -> None:
            nonlocal now
            super().on_frame(frame)
            now += frame_s

    budget = MemoryBudget()
    sink = SlowSink(budget, keeps=False)
    reader = FrameReader(sink, SharedBuffers(), budget, max_bytes=MAX_BYTES, now=lambda: now)
    data = b"\0\0\0\1x" * 10
    room = reader.room()
    room[: len(data)] = data
    reader.received(room, len(data))
    while sink.pauses:
        sink.pauses = 0
        reader.go_on()
    assert sink.frames == [b"x"] * 10 and sink.turns == turns - 1
