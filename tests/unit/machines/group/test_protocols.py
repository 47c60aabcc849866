"""Which protocol a classic group settles on, and what the broker can read of the subscriptions."""

import pytest

from barnabas.machines.group.classic.protocols import ProtocolCounts, Protocols, subscribed_topics
from barnabas.protocol.messages.consumer_protocol import ConsumerProtocolSubscription
from barnabas.protocol.versioned import encode_versioned


def protocols(*names: str) -> Protocols:
    return tuple((name, b"") for name in names)


def counts_of(*members: Protocols) -> ProtocolCounts:
    counts = ProtocolCounts()
    for member in members:
        counts.add(member)
    return counts


def test_the_most_votes_win_among_what_all_have() -> None:
    members = [protocols("new", "range", "sticky"), protocols("sticky", "range"), protocols("sticky", "range")]
    assert counts_of(*members).select(members) == "sticky"


def test_what_only_some_have_is_never_chosen() -> None:
    members = [protocols("new", "range"), protocols("new", "range"), protocols("range")]
    assert counts_of(*members).select(members) == "range"


def test_a_repeated_name_counts_once() -> None:
    counts = counts_of(protocols("range", "range"), protocols("sticky", "range"))
    assert counts.includes_any(protocols("range"), 2)
    assert not counts.includes_any(protocols("sticky"), 2)
    counts.discard(protocols("range", "range"))
    counts.check([protocols("sticky", "range")])


def test_subscriptions_of_all_versions_are_read() -> None:
    first = encode_versioned(ConsumerProtocolSubscription(topics=["t", "u"]), 0)
    later = encode_versioned(ConsumerProtocolSubscription(topics=["v"], rack_id="r"), 3)
    assert subscribed_topics([first, later]) == {"t", "u", "v"}
    assert subscribed_topics([]) == frozenset()


@pytest.mark.parametrize("metadata", [b"", b"\0", b"\0\0", b"\0\0\x7f\xff\xff\xff", b"\0\0\0\0\0\1\0\5t"])
def test_a_subscription_that_cannot_be_read_makes_all_unknown(metadata: bytes) -> None:
    good = encode_versioned(ConsumerProtocolSubscription(topics=["t"]), 0)
    assert subscribed_topics([good, metadata]) is None
