"""The protocols that the members of a classic group support, and which one the group uses.

A protocol is an assignor's name with the member's metadata for it, its subscription where the protocol type is
`consumer`. Only a protocol that all members have can be chosen.
"""

from collections.abc import Iterable

from barnabas.errors import ProtocolError
from barnabas.protocol.compiler import decode
from barnabas.protocol.messages.consumer_protocol import ConsumerProtocolSubscription
from barnabas.protocol.messages.join_group import JoinGroupRequestProtocol

CONSUMER_PROTOCOL_TYPE = "consumer"

Protocols = tuple[tuple[str, bytes], ...]
"""Name and metadata of each protocol, the preferred one first."""


def protocols_of(requested: list[JoinGroupRequestProtocol]) -> Protocols:
    return tuple((protocol.name, protocol.metadata) for protocol in requested)


class ProtocolCounts:
    """How many members have each protocol."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def add(self, protocols: Protocols) -> None:
        for name in dict(protocols):  # a name that is repeated counts once
            self._counts[name] = self._counts.get(name, 0) + 1

    def discard(self, protocols: Protocols) -> None:
        for name in dict(protocols):
            self._counts[name] -= 1
            if not self._counts[name]:
                del self._counts[name]

    def includes_any(self, protocols: Protocols, member_count: int) -> bool:
        """Whether all members have at least one of these."""
        return any(self._counts.get(name, 0) == member_count for name, _ in protocols)

    def select(self, candidates: list[Protocols]) -> str:
        """Each member votes for the first of its protocols that all have; the most votes win."""
        votes: dict[str, int] = {}
        for protocols in candidates:
            name = next(name for name, _ in protocols if self._counts[name] == len(candidates))
            votes[name] = votes.get(name, 0) + 1
        return max(votes, key=votes.__getitem__)

    def check(self, candidates: list[Protocols]) -> None:
        expected = ProtocolCounts()
        for protocols in candidates:
            expected.add(protocols)
        assert self._counts == expected._counts
        assert not candidates or len(candidates) in self._counts.values()


def subscribed_topics(subscriptions: Iterable[bytes]) -> frozenset[str] | None:
    """None if one cannot be read. The first version of a subscription is a prefix of every later one."""
    topics: dict[str, None] = {}
    try:
        for subscription in subscriptions:
            topics.update(dict.fromkeys(decode(ConsumerProtocolSubscription, 0, subscription, 2)[0].topics))
    except ProtocolError:
        return None
    return frozenset(topics)
