"""Commands of a group shard. Handlers wrap the protocol's requests in these, adding what only they know.

A command goes to the shard of its group. If one request names several groups, the handler splits it by shard and joins
the replies:

    command                                        reply
    JoinGroup SyncGroup Heartbeat LeaveGroup       the response message
    OffsetCommit TxnOffsetCommit OffsetDelete      the response message
    OffsetFetch (one group)                        OffsetFetchResponseGroup
    OffsetPartitions                               dict of topic -> list of partitions
    GroupIds                                       list of ids
    ListGroups                                     list[ListedGroup]
    DescribeGroups                                 list[DescribedGroup], in the order requested
    DeleteGroups                                   list[DeletableGroupResult], in the order requested
    ConsumerGroupHeartbeat                         the response message
    ConsumerGroupDescribe                          list of its DescribedGroup, in the order requested

Left to the handler: authorization, throttle times, topics that do not exist, topic ids, and JoinGroup up to v6, which
has an empty instead of a null `protocol_name`.
"""

from dataclasses import dataclass

from barnabas.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest
from barnabas.protocol.messages.leave_group import LeaveGroupRequest
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest
from barnabas.protocol.messages.offset_delete import OffsetDeleteRequest
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequestGroup
from barnabas.protocol.messages.sync_group import SyncGroupRequest
from barnabas.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from barnabas.types import GroupId


@dataclass(frozen=True, slots=True)
class JoinGroup:
    request: JoinGroupRequest
    version: int
    client_id: str
    client_host: str


@dataclass(frozen=True, slots=True)
class SyncGroup:
    request: SyncGroupRequest
    version: int


@dataclass(frozen=True, slots=True)
class Heartbeat:
    request: HeartbeatRequest
    version: int


@dataclass(frozen=True, slots=True)
class LeaveGroup:
    request: LeaveGroupRequest
    version: int


@dataclass(frozen=True, slots=True)
class OffsetCommit:
    request: OffsetCommitRequest
    version: int


@dataclass(frozen=True, slots=True)
class TxnOffsetCommit:
    request: TxnOffsetCommitRequest
    version: int


@dataclass(frozen=True, slots=True)
class OffsetFetch:
    """`group.topics` of None asks for all offsets of the group. `only_stored` leaves out partitions without one."""

    group: OffsetFetchRequestGroup
    require_stable: bool = False
    only_stored: bool = False


@dataclass(frozen=True, slots=True)
class OffsetPartitions:
    """For which partitions a group has offsets: far cheaper than the offsets, which are then fetched some at a time."""

    group_id: GroupId


@dataclass(frozen=True, slots=True)
class OffsetDelete:
    request: OffsetDeleteRequest


@dataclass(frozen=True, slots=True)
class GroupIds:
    """All groups of a shard: far cheaper than their list, which is then made for some at a time."""


@dataclass(frozen=True, slots=True)
class ListGroups:
    """`group_ids` of None lists all groups of the shard."""

    states_filter: tuple[str, ...] = ()
    types_filter: tuple[str, ...] = ()
    group_ids: tuple[GroupId, ...] | None = None


@dataclass(frozen=True, slots=True)
class DescribeGroups:
    group_ids: tuple[GroupId, ...]
    version: int


@dataclass(frozen=True, slots=True)
class DeleteGroups:
    group_ids: tuple[GroupId, ...]


@dataclass(frozen=True, slots=True)
class ConsumerGroupHeartbeat:
    request: ConsumerGroupHeartbeatRequest
    version: int
    client_id: str
    client_host: str


@dataclass(frozen=True, slots=True)
class ConsumerGroupDescribe:
    group_ids: tuple[GroupId, ...]
