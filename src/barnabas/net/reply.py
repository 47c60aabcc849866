"""What a request handler gives back to its connection: parts to send now, or a promise of them.

Handlers make these, `net.Connection` sends them. A part is sent as it is: the size prefix of the frame belongs to the
first part, and a part must not change until it is sent.
"""

from collections.abc import Callable
from typing import Protocol

from barnabas.transport.parts import MEMORY, FilePart, Memory, Part, Parts

__all__ = ["MEMORY", "FilePart", "Memory", "Part", "Parts", "PendingReply", "ReplyOwner"]


class ReplyOwner(Protocol):
    """Whoever sends the answer when it is there: the connection."""

    def on_reply_done(self, reply: "PendingReply") -> None: ...


class PendingReply:
    """An answer that comes later, on the same loop; it keeps its place among the replies of its connection.

    `memory_bytes` is what the parked request holds; it counts against the server's memory budget until the answer. If
    the connection goes first, `abandoned` is set and `on_abandoned` is called; completing it then does nothing.
    """

    __slots__ = ("_connection", "abandoned", "failed", "memory_bytes", "on_abandoned", "on_input_ended", "parts")

    def __init__(self, memory_bytes: int = 0, on_abandoned: Callable[[], None] | None = None) -> None:
        self.memory_bytes = memory_bytes
        self.on_abandoned = on_abandoned
        self.on_input_ended: Callable[[], None] | None = None
        """Called when the client sends no more but may still read: whoever only waits for more should answer now."""
        self.parts: Parts | None = None
        self.failed = False
        self.abandoned = False
        self._connection: ReplyOwner | None = None

    @property
    def done(self) -> bool:
        return self.parts is not None or self.failed or self.abandoned

    def complete(self, parts: Parts) -> None:
        """Answer with these parts; an empty list means that no answer is sent after all."""
        if self.done:
            if self.abandoned:
                return
            raise RuntimeError("the reply was completed twice")
        self.parts = parts
        if self._connection is not None:
            self._connection.on_reply_done(self)

    def fail(self) -> None:
        """There will be no answer: the connection is closed, so that the client tries again elsewhere."""
        if self.done:
            return
        self.failed = True
        if self._connection is not None:
            self._connection.on_reply_done(self)

    def attach(self, connection: ReplyOwner) -> None:
        """Called by the connection once the handler has returned this."""
        self._connection = connection

    def abandon(self) -> None:
        """Called by the connection when it closes with this still open."""
        if self.done:
            return
        self.abandoned = True
        self._connection = None
        if self.on_abandoned is not None:
            self.on_abandoned()
