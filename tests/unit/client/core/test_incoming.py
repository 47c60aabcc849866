"""Frames cut out of a stream: small ones, large ones in a buffer of their own, and buffers that are used again."""

import socket
import struct
from collections.abc import Iterator

import pytest

from barnabas.client.incoming import FRAME_MAX_BYTES, Incoming
from barnabas.client.receive_buffers import KEPT_BUFFERS
from barnabas.errors import ProtocolError

LARGE = 700_000


class Wire:
    """A socket with an `Incoming` at its end."""

    def __init__(self) -> None:
        self._ours, self._theirs = socket.socketpair()
        self._ours.setblocking(False)
        self._theirs.setblocking(False)
        self.frames: list[memoryview] = []
        self.incoming = Incoming(self._ours, self.frames.append)
        self.incoming.max_bytes = FRAME_MAX_BYTES

    def send(self, content: bytes) -> memoryview:
        """One frame, through the buffers of the socket piece by piece; the frame that came out."""
        rest = memoryview(struct.pack(">i", len(content)) + content)
        count = len(self.frames)
        while rest:
            rest = rest[self._theirs.send(rest) :]
            assert self.incoming.receive()
        while len(self.frames) == count:
            assert self.incoming.receive()
        return self.frames.pop()

    def close(self) -> None:
        self._ours.close()
        self._theirs.close()


@pytest.fixture
def wire() -> Iterator[Wire]:
    made = Wire()
    yield made
    made.close()


@pytest.mark.parametrize("size", [4, 100, 8 * 1024 - 4, 8 * 1024 - 3, 100_000, LARGE, 5_000_001])
def test_a_frame_comes_out_as_it_was_sent(wire: Wire, size: int) -> None:
    content = bytes(number % 251 for number in range(size))
    assert wire.send(content) == content
    assert wire.send(content[::-1]) == content[::-1]


def test_what_somebody_still_looks_at_is_never_written_over(wire: Wire) -> None:
    kept = [wire.send(bytes([number]) * LARGE)[number:] for number in range(1, 2 * KEPT_BUFFERS)]
    for number, view in enumerate(kept, 1):
        assert view == bytes([number]) * (LARGE - number)


def test_a_large_buffer_is_used_again_once_nobody_looks_at_it(wire: Wire) -> None:
    first = id(wire.send(b"a" * LARGE).obj)
    assert id(wire.send(b"b" * (LARGE + 1)).obj) == first


def test_a_frame_much_smaller_than_a_buffer_does_not_hold_on_to_it(wire: Wire) -> None:
    wire.send(b"a" * 8 * LARGE)
    assert len(wire.send(b"b" * LARGE).obj) < 2 * LARGE  # type: ignore[arg-type]


def test_few_buffers_are_kept(wire: Wire) -> None:
    views = [wire.send(bytes(LARGE)) for _ in range(3 * KEPT_BUFFERS)]
    assert len({id(view.obj) for view in views}) == len(views)
    assert len(wire.incoming._buffers) == KEPT_BUFFERS


def test_an_impossible_size_is_refused(wire: Wire) -> None:
    wire._theirs.send(struct.pack(">i", -1))
    with pytest.raises(ProtocolError, match="frame of -1 bytes"):
        wire.incoming.receive()
