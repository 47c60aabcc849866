"""Waiting for a part of buffer.memory, in a thread or in a loop: only the caller waits, in the order of asking."""

import asyncio
import threading

from barnabas.client.errors import BufferFullError
from barnabas.client.producer.accumulator import Accumulator
from barnabas.client.producer.buffer_pool import MemoryWaiter
from barnabas.client.retry import Deadline


def wait_for_memory(accumulator: Accumulator, needed: int, deadline: Deadline) -> int:
    """The bytes that are the caller's now. Raises BufferFullError at the deadline."""
    if accumulator.on_io_thread():
        raise BufferFullError(
            "buffer.memory is full, and a callback cannot wait for it: callbacks run on the thread that sends"
        )
    granted = threading.Event()
    waiter = MemoryWaiter(needed, granted.set)
    accumulator.queue_for_memory(waiter)
    try:
        granted.wait(deadline.remaining_s)
    except BaseException:
        _withdraw(accumulator, waiter)
        raise
    return _outcome(accumulator, waiter)


async def memory(accumulator: Accumulator, needed: int, deadline: Deadline) -> int:
    """The same for a caller on an asyncio loop."""
    loop = asyncio.get_running_loop()
    granted = asyncio.Event()

    def wake() -> None:
        try:
            loop.call_soon_threadsafe(granted.set)
        except RuntimeError:  # the caller's loop ended meanwhile
            accumulator.batches.pool.withdraw(waiter)

    waiter = MemoryWaiter(needed, wake)
    accumulator.queue_for_memory(waiter)
    try:
        await asyncio.wait_for(granted.wait(), deadline.remaining_s)
    except TimeoutError:
        pass
    except BaseException:
        _withdraw(accumulator, waiter)
        raise
    return _outcome(accumulator, waiter)


def _outcome(accumulator: Accumulator, waiter: MemoryWaiter) -> int:
    granted = accumulator.take_grant(waiter)
    if granted:
        return granted
    total_bytes = accumulator.batches.pool.total_bytes
    raise BufferFullError(
        f"buffer.memory ({total_bytes} bytes) was full for max.block.ms: the brokers take records"
        " more slowly than they are sent; send less, raise buffer_memory or max_block_ms, or look at the brokers"
    )


def _withdraw(accumulator: Accumulator, waiter: MemoryWaiter) -> None:
    accumulator.withdraw(waiter)
