"""Who reads which partition of a group: pure functions for consumers (classic protocol) and the broker (KIP-848).

Every assignor is `assign(partition_counts, members)`. The ones for consumers go by topic name and answer with lists of
TopicPartition; `broker.py` has those of the consumer group protocol, by topic id. Topics without a partition count do
not exist and are left out. None of them ever gives a partition to two members or to one that has not subscribed.

Not taken over from Kafka's client: range and sticky ignore racks.
"""

from barnabas.machines.assignors.member import AssignorMember
from barnabas.machines.assignors.range import assign_range
from barnabas.machines.assignors.round_robin import assign_round_robin
from barnabas.machines.assignors.sticky import assign_cooperative_sticky, assign_sticky

__all__ = [
    "AssignorMember",
    "assign_cooperative_sticky",
    "assign_range",
    "assign_round_robin",
    "assign_sticky",
]
