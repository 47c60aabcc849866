"""A consumer's place in its group: membership in both protocols, rebalances, and the group's offsets.

    events       what a rebalance reports to the user's thread
    machine      what `classic` and `consumer` (KIP-848), the pure machines, share
    driver       runs a machine on the I/O loop
    commits      offsets of the group

The consumer owns positions and callbacks; it takes events from here and finishes them with `done`.
"""

from barnabas.client.consumer.group.assignors import Assignor
from barnabas.client.consumer.group.commits import OffsetCommitter
from barnabas.client.consumer.group.events import Assigned, Lost, RebalanceEvent, Revoked
from barnabas.client.consumer.group.machine import GroupMetadata
from barnabas.client.consumer.group.membership import (
    ClassicMembership,
    ConsumerProtocolMembership,
    Membership,
    make_membership,
)
from barnabas.client.consumer.group.options import GroupOptions
from barnabas.client.consumer.group.protocol import MemberAssignment, MemberSubscription

__all__ = [
    "Assigned",
    "Assignor",
    "ClassicMembership",
    "ConsumerProtocolMembership",
    "GroupMetadata",
    "GroupOptions",
    "Lost",
    "MemberAssignment",
    "MemberSubscription",
    "Membership",
    "OffsetCommitter",
    "RebalanceEvent",
    "Revoked",
    "make_membership",
]
