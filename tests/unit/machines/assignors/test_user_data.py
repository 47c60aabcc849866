"""Bytes of the sticky assignors' user data."""

from hypothesis import given
from hypothesis import strategies as st

from barnabas.machines.assignors.member import NO_GENERATION
from barnabas.machines.assignors.user_data import (
    decode_cooperative_sticky,
    decode_sticky,
    encode_cooperative_sticky,
    encode_sticky,
)
from barnabas.types import TopicPartition

OWNED = [TopicPartition("t", 0), TopicPartition("t", 3)]
V0 = bytes.fromhex("00000001 0001 74 00000002 00000000 00000003")


def test_sticky_bytes() -> None:
    assert encode_sticky(OWNED, 7) == V0 + bytes.fromhex("00000007")
    assert decode_sticky(V0 + bytes.fromhex("00000007")) == (OWNED, 7)


def test_sticky_without_generation_is_the_older_form() -> None:
    assert decode_sticky(V0) == (OWNED, NO_GENERATION)


def test_nothing_owned() -> None:
    assert decode_sticky(None) == ([], NO_GENERATION)
    assert decode_sticky(b"") == ([], NO_GENERATION)
    assert decode_sticky(encode_sticky([], 2)) == ([], 2)


@given(st.binary(max_size=40))
def test_any_bytes_are_read_or_ignored(user_data: bytes) -> None:
    owned, _ = decode_sticky(user_data)
    assert len(owned) * 4 <= len(user_data)


def test_a_false_count_is_nothing_owned() -> None:
    assert decode_sticky(bytes.fromhex("7fffffff") + V0[4:]) == ([], NO_GENERATION)
    assert decode_sticky(V0[:-1]) == ([], NO_GENERATION)


def test_cooperative_sticky_bytes() -> None:
    assert encode_cooperative_sticky(7) == bytes.fromhex("00000007")
    assert decode_cooperative_sticky(bytes.fromhex("00000007")) == 7
    assert decode_cooperative_sticky(None) == NO_GENERATION
    assert decode_cooperative_sticky(b"\0\0") == NO_GENERATION
