"""Buffers for large responses: used again and grown while nobody looks at them, left alone while somebody does."""

import mmap
import sys

import pytest

from barnabas.transport.kept_buffers import KEPT_BUFFER_BYTES, KEPT_BUFFERS, ReceiveBuffers

SIZE = 3 * KEPT_BUFFER_BYTES


def test_small_responses_have_memory_of_just_their_size() -> None:
    buffers = ReceiveBuffers()
    view = buffers.take(KEPT_BUFFER_BYTES - 1)
    assert (len(view), view.nbytes, len(buffers)) == (KEPT_BUFFER_BYTES - 1, KEPT_BUFFER_BYTES - 1, 0)


def test_one_that_nobody_looks_at_is_taken_again() -> None:
    buffers = ReceiveBuffers()
    view = buffers.take(SIZE)
    first = id(view.obj)
    part = view[5:9]
    del view
    other = buffers.take(SIZE)
    assert id(other.obj) != first  # a part of it is still looked at
    del part
    assert id(buffers.take(SIZE).obj) == first
    assert len(buffers) == 2


@pytest.mark.skipif(sys.platform != "linux", reason="other systems cannot make a mapping larger")
def test_a_small_one_grows_into_a_large_one_instead_of_staying_beside_it() -> None:
    buffers = ReceiveBuffers()
    view = buffers.take(SIZE)
    view[:3] = b"abc"
    first = id(view.obj)
    del view
    grown = buffers.take(4 * SIZE)
    grown[-3:] = b"xyz"
    assert (id(grown.obj), len(grown), len(buffers)) == (first, 4 * SIZE, 1)
    assert (bytes(grown[:3]), bytes(grown[-3:])) == (b"abc", b"xyz")


def test_where_mappings_cannot_grow_there_is_a_new_one(monkeypatch: pytest.MonkeyPatch) -> None:
    class Fixed(mmap.mmap):
        def resize(self, newsize: int) -> None:
            raise SystemError("mmap: resizing not available--no mremap()")

    monkeypatch.setattr(mmap, "mmap", Fixed)
    buffers = ReceiveBuffers()
    buffers.take(SIZE)
    assert len(buffers.take(4 * SIZE)) == 4 * SIZE
    assert len(buffers) == 2


def test_one_that_is_far_too_large_is_not_held_by_a_small_response() -> None:
    buffers = ReceiveBuffers()
    buffers.take(8 * SIZE)
    small = buffers.take(SIZE)
    assert len(small.obj) == SIZE  # type: ignore[arg-type]


def test_no_more_than_a_few_are_kept() -> None:
    buffers = ReceiveBuffers()
    views = [buffers.take(SIZE) for _ in range(3 * KEPT_BUFFERS)]
    assert len({id(view.obj) for view in views}) == len(views)
    assert len(buffers) == KEPT_BUFFERS
