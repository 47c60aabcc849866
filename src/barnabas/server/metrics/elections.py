"""Leaders that were elected, as the controller sees them: all, and those that may lack committed records."""

from barnabas.metadata.image import Delta, PartitionImage
from barnabas.types import NO_LEADER


class ElectionCounter:
    """Given every change of the image; counts while this broker is the controller, so that sums are not doubled."""

    def __init__(self) -> None:
        self.elections = 0
        self.unclean = 0

    def on_delta(self, delta: Delta, *, is_controller: bool) -> None:
        if not is_controller:
            return
        for topic, partition in delta.partitions:
            known = delta.previous.topic_by_id(topic.topic_id)
            previous = None if known is None else known.partition(partition.partition)
            if previous is not None and partition.leader not in (NO_LEADER, previous.leader):
                self.elections += 1
                self.unclean += not was_clean(previous, partition.leader)


def was_clean(previous: PartitionImage, leader: int) -> bool:
    """Whether the replica has every committed record for certain (KIP-966)."""
    return leader in previous.in_sync_replicas or leader in previous.eligible_leader_replicas
