"""Who reads which partition of a group: pure functions for consumers (classic protocol) and the broker (KIP-848).

Every assignor is `assign(partition_counts, members, racks)` (round robin looks at no racks). The ones for consumers go
by topic name and answer with lists of TopicPartition; `broker.py` has those of the consumer group protocol, by topic
id. Topics without a partition count do not exist and are left out. None of them ever gives a partition to two members
or to one that has not subscribed.

With racks of members and replicas (KIP-881) range and the sticky ones prefer near replicas, as far as the balance goes:
range in the same way as Kafka, the sticky ones with as many near partitions as the balance allows (locality.py).
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
