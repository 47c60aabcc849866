"""A partition that should be on this broker, but whose log cannot be opened: damaged, or its directory has failed.

`Replicas` keeps one for each. It serves nothing; if the broker leads the partition, it leaves it to the other replicas
that are in sync, in the same way as a partition whose log directory fails later.
"""

from barnabas.machines.partition import PartitionState
from barnabas.metadata.image import PartitionImage, TopicImage
from barnabas.types import NodeId


class UnopenedPartition:
    def __init__(self, node_id: NodeId, topic: TopicImage, partition: int, reason: str) -> None:
        self.topic = topic.name
        self.topic_id = topic.topic_id
        self.partition = partition
        self.reason = reason
        self.state = PartitionState(node_id)

    def on_image(self, partition: PartitionImage, now_ms: int) -> None:
        self.state.apply(partition, 0, 0, now_ms)

    def on_isr_change_rejected(self) -> None:
        self.state.on_isr_change_rejected()
