"""What becomes of a client that is garbage collected and was never closed: its I/O thread ends, and a warning says so.

Called once by each facade. It works as long as nothing that lives on the I/O thread refers to the facade, not even
through a user's object, such as a serializer that is a method of the producer's owner. At the end of the interpreter
nothing of this happens; the producer's `at_exit` does what has to be done then.
"""

import warnings
import weakref
from collections.abc import Callable, Coroutine
from typing import Any

from barnabas.client.io_thread import IoThread


def end_when_collected(client: Any, io: IoThread, close: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """`close` is run on the I/O thread, and must not refer to the client.

    It is kept here until then, and with it all that lives on the thread. That also keeps a core whose tasks only wait
    for each other from being collected with them, to which asyncio would say "Task was destroyed but it is pending".
    """
    name = type(client).__name__
    if hasattr(type(client), "__aenter__"):
        text = f"unclosed asyncio {name}: await its close(), or make it in an 'async with' statement"
    else:
        text = f"unclosed {name}: call its close(), or make it in a 'with' statement"
    weakref.finalize(client, _end, io, close, text).atexit = False


def _end(io: IoThread, close: Callable[[], Coroutine[Any, Any, None]], text: str) -> None:
    """Runs in whatever thread drops or collects the client, whatever locks that one holds: it must not wait."""
    if not io.stopped and not io.is_forked:
        io.stop_after(close)
        warnings.warn(text, ResourceWarning, stacklevel=3)
