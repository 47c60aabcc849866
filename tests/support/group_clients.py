"""Consumers of a classic group for the simulation: each does what a client library does, and keeps its own view.

A client has at most one request under way. It joins, syncs, fetches the offsets of what it was given, then commits and
heartbeats, and joins again when it is told to. `next_request` and `on_answer` are all there is to it; loss and delay of
messages and crashes are the affair of the simulation.
"""

from dataclasses import dataclass, field
from random import Random
from typing import Any

from barnabas.errors import ErrorCode
from barnabas.machines.group import commands
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

GROUP, TOPIC = "g", "t"
PARTITIONS = 5
SUBSCRIPTION = b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff"


@dataclass(eq=False)
class Client:
    name: str
    random: Random
    instance_id: str | None = None
    version: int = 9
    session_timeout_ms: int = 10_000
    rebalance_timeout_ms: int = 20_000
    member_id: str = ""
    generation: int = -1
    step: str = "join"
    is_dead: bool = False
    subscription_number: int = 0
    members: list[str] = field(default_factory=list, init=False)
    positions: dict[int, int] = field(default_factory=dict, init=False)
    """Partition that it owns -> offset it has read up to."""

    @property
    def identity(self) -> str:
        return self.instance_id or self.member_id

    def restart(self) -> None:
        self.member_id, self.generation, self.step = "", -1, "join"
        self.positions = {}

    def next_request(self) -> Any:
        return getattr(self, f"_{self.step}_request")()

    def on_answer(self, step: str, response: Any) -> None:
        """`step` is the one that the request belonged to."""
        error = ErrorCode(_error_of(response))
        if error is ErrorCode.FENCED_INSTANCE_ID:
            self.is_dead = True
        elif error is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = response.member_id
        elif error is ErrorCode.UNKNOWN_MEMBER_ID:
            self.restart()
        elif error:
            self.step = "join"
        else:
            getattr(self, f"_on_{step}")(response)

    def _join_request(self) -> commands.JoinGroup:
        metadata = SUBSCRIPTION + bytes([self.subscription_number])
        request = JoinGroupRequest(
            group_id=GROUP,
            session_timeout_ms=self.session_timeout_ms,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type="consumer",
            protocols=[
                JoinGroupRequestProtocol(name="range", metadata=metadata),
                JoinGroupRequestProtocol(name="sticky", metadata=metadata),
            ],
        )
        return commands.JoinGroup(request, self.version, self.name, "/127.0.0.1")

    def _on_join(self, response: Any) -> None:
        self.member_id, self.generation = response.member_id, response.generation_id
        self.members = [member.member_id for member in response.members]
        if response.leader != self.member_id or response.skip_assignment:
            self.members = []
        self.step = "sync"
        self.positions = {}

    def _sync_request(self) -> commands.SyncGroup:
        shares: dict[str, list[int]] = {member_id: [] for member_id in self.members}
        offset = self.random.randrange(len(shares)) if shares else 0
        for partition in range(PARTITIONS if shares else 0):
            shares[self.members[(partition + offset) % len(shares)]].append(partition)
        request = SyncGroupRequest(
            group_id=GROUP,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type="consumer",
            assignments=[
                SyncGroupRequestAssignment(member_id=member_id, assignment=bytes(partitions))
                for member_id, partitions in shares.items()
            ],
        )
        return commands.SyncGroup(request, 5)

    def _on_sync(self, response: Any) -> None:
        self.positions = dict.fromkeys(response.assignment, -1)
        self.step = "fetch" if self.positions else "work"

    def _fetch_request(self) -> commands.OffsetFetch:
        topics = [OffsetFetchRequestTopics(name=TOPIC, partition_indexes=list(self.positions))]
        return commands.OffsetFetch(OffsetFetchRequestGroup(group_id=GROUP, topics=topics), require_stable=True)

    def _on_fetch(self, response: Any) -> None:
        for partition in response.topics[0].partitions:
            self.positions[partition.partition_index] = max(partition.committed_offset, 0)
        self.step = "work"

    def _work_request(self) -> Any:
        chance = self.random.random()
        if chance < 0.05:
            self.subscription_number = (self.subscription_number + 1) % 8
            self.step = "join"
            return self._join_request()
        if chance < 0.08 and self.instance_id is None:
            members = [MemberIdentity(member_id=self.member_id)]
            self.step = "leave"
            return commands.LeaveGroup(LeaveGroupRequest(group_id=GROUP, members=members), 5)
        if chance < 0.5 and self.positions:
            return self._commit_request()
        return self.heartbeat_request()

    def heartbeat_request(self) -> commands.Heartbeat:
        request = HeartbeatRequest(
            group_id=GROUP,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
        )
        return commands.Heartbeat(request, 4)

    def _leave_request(self) -> Any:
        self.restart()
        return self._join_request()

    def _on_leave(self, response: Any) -> None:
        self.restart()

    def _commit_request(self) -> commands.OffsetCommit:
        for partition in self.positions:
            self.positions[partition] += self.random.randrange(3)
        request = OffsetCommitRequest(
            group_id=GROUP,
            generation_id_or_member_epoch=self.generation,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            topics=[
                OffsetCommitRequestTopic(
                    name=TOPIC,
                    partitions=[
                        OffsetCommitRequestPartition(
                            partition_index=partition, committed_offset=offset, committed_metadata=""
                        )
                        for partition, offset in self.positions.items()
                    ],
                )
            ],
        )
        return commands.OffsetCommit(request, 9)

    def _on_work(self, response: Any) -> None:
        """A heartbeat or a commit went well."""


def _error_of(response: Any) -> int:
    topics = getattr(response, "topics", None)
    if topics and hasattr(topics[0].partitions[0], "error_code"):
        return int(topics[0].partitions[0].error_code)
    members = getattr(response, "members", None)
    if members and hasattr(members[0], "error_code"):
        return int(members[0].error_code)
    return int(response.error_code)
