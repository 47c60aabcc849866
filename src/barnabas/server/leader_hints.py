"""Who leads a partition, for a client that has asked the wrong broker (KIP-951): saves it a request for metadata."""

from barnabas.metadata.image import ClusterImage
from barnabas.protocol.produce_response import LeaderHint
from barnabas.types import TopicId


def leader_hint(image: ClusterImage, topic: str | bytes, partition: int, listener: str) -> LeaderHint | None:
    """With the leader's address on the client's listener; None if nobody leads, or the leader has no such listener."""
    found = image.topic_by_id(TopicId(topic)) if isinstance(topic, bytes) else image.topic(topic)
    state = None if found is None else found.partition(partition)
    leader = None if state is None else image.brokers.get(state.leader)
    endpoint = None if leader is None else leader.endpoint(listener)
    if state is None or leader is None or endpoint is None:
        return None
    return LeaderHint(leader.node_id, state.leader_epoch, endpoint.host, endpoint.port, leader.rack)
