"""Receive buffers: reuse, bounds, and the promise never to reuse one that somebody still looks at."""

from barnabas.transport.budget import MemoryBudget
from barnabas.transport.shared_buffers import SMALLEST_POOLED_BYTES, BufferPool, FrameAssembly, SharedBuffers, is_held


def test_is_held_sees_any_view_and_changes_nothing() -> None:
    buffer = bytearray(b"abc" * 1000)
    assert not is_held(buffer)
    view = memoryview(buffer)[10:20]
    assert is_held(buffer)
    view.release()
    assert not is_held(buffer)
    assert len(buffer) == 3000


def test_the_shared_buffer_is_replaced_while_a_view_of_it_exists() -> None:
    shared = SharedBuffers()
    first = shared.take()
    first[:4] = b"kept"
    second = shared.take()
    second[:4] = b"next"
    assert bytes(first[:4]) == b"kept"
    assert second.obj is not first.obj
    kept_buffer = second.obj
    second.release()
    assert shared.take().obj is kept_buffer


def test_the_pool_hands_a_buffer_out_again_unless_it_is_held_or_there_are_enough() -> None:
    pool = BufferPool(limit_bytes=SMALLEST_POOLED_BYTES * 3)
    buffer = pool.take(1000)
    assert len(buffer) == SMALLEST_POOLED_BYTES
    pool.give_back(buffer)
    assert pool.take(SMALLEST_POOLED_BYTES) is buffer
    view = memoryview(buffer)
    pool.give_back(buffer)
    assert pool.free_bytes == 0
    del view
    large = pool.take(SMALLEST_POOLED_BYTES + 1)
    assert len(large) == SMALLEST_POOLED_BYTES * 2
    pool.give_back(large)
    pool.give_back(pool.take(SMALLEST_POOLED_BYTES * 2 + 1))
    assert pool.free_bytes == SMALLEST_POOLED_BYTES * 2


def test_a_frame_is_put_together_whatever_the_pieces() -> None:
    pool = BufferPool()
    content = bytes(range(256)) * 2000
    assembly = FrameAssembly(pool, memoryview(content)[:5], len(content))
    while assembly.filled < assembly.total_bytes:
        room = assembly.room()
        assert len(room) <= max(SMALLEST_POOLED_BYTES, 2 * assembly.filled)
        piece = content[assembly.filled : assembly.filled + min(len(room), 70_001)]
        room[: len(piece)] = piece
        assembly.filled += len(piece)
        del room
    assert bytes(assembly.frame()) == content[4:]
    assembly.release()
    assert pool.free_bytes > 0


def test_budget_without_a_limit_is_never_exhausted() -> None:
    budget = MemoryBudget(-1)
    budget.reserve(10**12)
    assert not budget.exhausted


def test_budget_wakes_in_order_while_there_is_room() -> None:
    budget = MemoryBudget(100)
    budget.reserve(99)
    assert not budget.exhausted
    budget.reserve(500)
    assert budget.exhausted
    woken: list[str] = []

    def first() -> None:
        woken.append("first")
        budget.reserve(200)

    budget.wait(first)
    budget.wait(lambda: woken.append("second"))
    budget.release(99)
    assert woken == []
    budget.release(500)
    assert woken == ["first"]
    budget.release(200)
    assert woken == ["first", "second"]
    assert budget.waiting_count == 0
