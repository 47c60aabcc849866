"""Logs of topics that were deleted, or deleted and created again, or reassigned away, while this broker was away.

`Broker.start` asks `StrayCheck` about every log that it has opened, before it joins the cluster. As in Kafka, a stray
log is set aside in a folder whose name ends in -stray. The broker does not open it again and never deletes it: if the
metadata were restored from an old backup, every newer topic would look deleted.
"""

from barnabas.metadata.image import ClusterImage
from barnabas.storage.log import Log
from barnabas.storage.log_directory import LogDirectory
from barnabas.types import NO_TOPIC_ID, NodeId


class StrayCheck:
    """Only for directories that this broker had when it was last in the cluster, with a store that has adopted them.

    Others may hold folders that no store has adopted (`adoption.py`). A folder without a topic id may belong to any
    topic of its name: it is never stray.
    """

    def __init__(self, image: ClusterImage, node_id: NodeId) -> None:
        broker = image.brokers.get(node_id) or image.fenced_brokers.get(node_id)
        self._image = image
        self._node_id = node_id
        self._known_directories = () if broker is None or not image.folders_adopted else broker.directory_ids

    def is_stray(self, directory: LogDirectory, log: Log) -> bool:
        properties = directory.properties
        if properties is None or properties.directory_id not in self._known_directories:
            return False
        if log.topic_id == NO_TOPIC_ID:
            return False
        topic = self._image.topic_by_id(log.topic_id)
        if topic is None:
            return True
        partition = topic.partition(log.topic_partition.partition)
        return partition is not None and self._node_id not in partition.replicas
