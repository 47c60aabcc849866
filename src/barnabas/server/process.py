"""The process that a broker runs in: its event loop, file limit, memory and garbage collection.

The loop belongs to the broker alone, so every broker runs on one of these, the one of `barnabas.testing` too. The rest
changes the whole process, so only the server command does it: its process is the broker's. In a test it would
change the user's own program. Frozen cycles are never collected, so finalizers and weak references of the user's
objects would behave differently under test; and child processes would inherit the file limit.
"""

import asyncio
import gc
import resource
import sys

GC_THRESHOLDS = 20_000, 20, 50
KEPT_FREE_BYTES = 16 * 1024 * 1024
LARGEST_KEPT_BYTES = 4 * 1024 * 1024
# Of glibc's mallopt.
_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3


def new_event_loop() -> asyncio.AbstractEventLoop:
    if sys.platform != "linux":
        return asyncio.new_event_loop()
    from barnabas.net.polling import EagerSelector  # needs epoll

    return asyncio.SelectorEventLoop(EagerSelector())


def raise_file_limit() -> None:
    """A partition in use holds a few files open, a connection one: use all that the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def keep_freed_memory() -> bool:
    """Have the C library reuse freed memory instead of returning it to the system at once; False where it cannot.

    Decompressing a batch takes a few hundred KiB for a moment. By default glibc returns them each time, and the page
    faults of the next batch cost more than decompressing it: with lz4 the broker took twice the CPU time per batch.
    """
    import ctypes

    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False  # another C library
    return bool(mallopt(_M_MMAP_THRESHOLD, LARGEST_KEPT_BYTES) and mallopt(_M_TRIM_THRESHOLD, KEPT_FREE_BYTES))


def tune_garbage_collection() -> None:
    """Once the broker has started: freeze what lives as long as it, so that a collection costs by what comes and goes.

    Requests leave no cycles behind: with the usual threshold of 700 objects a collection would run every few dozen of
    them, over everything young, and find nothing.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
