"""The process that a broker runs in: its event loop, file limit and garbage collection.

The loop belongs to the broker alone, so every broker runs on one of these, the one of `barnabas.testing` too. The other
two change the whole process, so only the server command calls them: its process is the broker's. In a test they would
change the user's own program. Frozen cycles are never collected, so finalizers and weak references of the user's
objects would behave differently under test; and child processes would inherit the file limit.
"""

import asyncio
import gc
import resource
import sys

GC_THRESHOLDS = 20_000, 20, 50


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


def tune_garbage_collection() -> None:
    """Once the broker has started: freeze what lives as long as it, so that a collection costs by what comes and goes.

    Requests leave no cycles behind: with the usual threshold of 700 objects a collection would run every few dozen of
    them, over everything young, and find nothing.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
