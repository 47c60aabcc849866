"""Subscriptions and assignments as members of all versions write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.client.consumer.group.protocol import (
    MemberAssignment,
    MemberSubscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from barnabas.errors import ProtocolError
from barnabas.types import TopicPartition

PARTITIONS = (TopicPartition("t", 0), TopicPartition("t", 2), TopicPartition("u", 1))
FULL = MemberSubscription(("t", "u"), b"mine", PARTITIONS, 7, "rack-1")


@pytest.mark.parametrize(
    ("version", "seen"),
    [
        (0, FULL._replace(owned_partitions=(), generation=-1, rack=None)),
        (1, FULL._replace(generation=-1, rack=None)),
        (2, FULL._replace(rack=None)),
        (3, FULL),
    ],
)
def test_each_version_has_what_it_knows(version: int, seen: MemberSubscription) -> None:
    assert decode_subscription(encode_subscription(FULL, version)) == seen


def test_the_bytes_are_those_of_kafka() -> None:
    written = encode_subscription(MemberSubscription(("b", "a"), None, (TopicPartition("a", 1),), 4, "r"))
    expected = "0003 00000002 000161 000162 ffffffff 00000001 000161 00000001 00000001 00000004 000172"
    assert written.hex() == expected.replace(" ", "")


def test_a_version_from_the_future_is_read_as_the_newest_known() -> None:
    future = b"\x00\x09" + encode_subscription(FULL)[2:] + b"something new"
    assert decode_subscription(future, "instance") == FULL._replace(group_instance_id="instance")
    assignment = encode_assignment(MemberAssignment(PARTITIONS, b"x"))
    assert decode_assignment(b"\x00\x09" + assignment[2:]) == MemberAssignment(PARTITIONS, b"x")


def test_a_member_that_was_left_out_has_nothing() -> None:
    assert decode_assignment(b"") == MemberAssignment()


@given(st.binary(max_size=60))
def test_bytes_of_others_are_read_or_refused(garbage: bytes) -> None:
    for read in (decode_subscription, decode_assignment):
        try:
            read(garbage)
        except ProtocolError:
            pass
