"""Partition assignors: pure functions for consumers (classic protocol) and for the broker (KIP-848).

Every assignor is `assign(partition_counts, members, racks)` (round robin ignores racks). Consumers use topic names
and get lists of TopicPartition; `broker.py` has the assignors of the consumer group protocol, which use topic ids.
Topics without a partition count do not exist and are skipped. No assignor ever gives a partition to two members or
to a member that has not subscribed.

With racks of members and replicas (KIP-881) range and the sticky ones prefer replicas in the
member's rack as far as balance allows: range exactly as Kafka does, the sticky ones as described in locality.py.
"""

from barnabas.machines.assignors.member import AssignorMember
from barnabas.machines.assignors.racks import NO_RACKS, Racks
from barnabas.machines.assignors.range import assign_range
from barnabas.machines.assignors.round_robin import assign_round_robin
from barnabas.machines.assignors.sticky import assign_cooperative_sticky, assign_sticky

__all__ = [
    "NO_RACKS",
    "AssignorMember",
    "Racks",
    "assign_cooperative_sticky",
    "assign_range",
    "assign_round_robin",
    "assign_sticky",
]
