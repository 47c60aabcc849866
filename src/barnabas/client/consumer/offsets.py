"""Offsets as users give and get them: what a group committed, what a look-up by time found, a pattern of topics.

Values only, used by the consumer, its group membership and the admin client; nothing here knows a connection.
"""

from typing import NamedTuple

from barnabas.types import NO_LEADER_EPOCH


class OffsetAndMetadata(NamedTuple):
    """The next offset to read, with a free text and the leader epoch of the record before it (-1: not known)."""

    offset: int
    metadata: str = ""
    leader_epoch: int = NO_LEADER_EPOCH


class OffsetAndTimestamp(NamedTuple):
    """The first record at or after the time asked for."""

    offset: int
    timestamp: int
    leader_epoch: int = NO_LEADER_EPOCH


class SubscriptionPattern(NamedTuple):
    """A regular expression in RE2's syntax, evaluated by the group coordinator: for group_protocol="consumer"."""

    pattern: str
