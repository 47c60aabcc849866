"""Which replica a consumer had better read from (KIP-392): one in its own rack, if `replica.selector.class` says so.

The leader of a partition chooses among itself and the in-sync followers that have the offset that is asked for. The
consumer then fetches from that replica, which serves what it knows to be committed.
"""

from collections.abc import Callable

from barnabas.metadata.image import ClusterImage
from barnabas.server.hosted_partition import HostedPartition

NO_PREFERENCE = -1

SelectReplica = Callable[[HostedPartition, int], int]
"""(partition that this broker leads, offset) -> the broker to read from, NO_PREFERENCE: this one."""


def select_by_rack(image: ClusterImage, rack: str, listener: str, hosted: HostedPartition, fetch_offset: int) -> int:
    state = hosted.state
    own = image.brokers.get(state.broker_id)
    if not state.is_leader or (own is not None and own.rack == rack):
        return NO_PREFERENCE
    best: tuple[int, int, int] | None = None
    for node_id, follower in state.followers.items():
        broker = image.brokers.get(node_id)
        if broker is None or broker.rack != rack or broker.endpoint(listener) is None:
            continue
        if node_id not in state.in_sync_replicas:
            continue
        if not follower.log_start_offset <= fetch_offset <= follower.log_end_offset:
            continue
        candidate = (follower.log_end_offset, follower.caught_up_ms, -node_id)
        best = candidate if best is None else max(best, candidate)
    return NO_PREFERENCE if best is None else -best[2]
