"""Plays the transcripts of groups (`tests/transcripts/group`).

    time 3000                                  timers up to then fire, in order
    join a [member=.] [instance=i] [version=9] [session=10000] [rebalance=60000] [protocols=range] [topics=t] [group=g]
    sync a generation=1 [b=t-0,t-1 ...]        member=. as below; the rest is the assignment of a leader
    heartbeat a generation=1
    leave a b [version=5]
    commit [a generation=1] t-0=5 [retention=1000] [metadata=text]
    txn-commit [a generation=1] producer=7 t-0=5
    end-txn producer=7 commit|abort
    fetch [t-0 ...] [stable]                   without partitions: all
    delete-offsets t-0 ...
    list [states=Stable] [types=classic]
    describe | delete | topics t u | reload | set group_max_size=2 (reloads)

`a` is a client. Its member id, made with its name as the client id, is written a#1, the next one a#2; a request carries
the latest id that its client was told, or `member=` (`.` for none). A request is answered under its own line number.
"""

import itertools
import re
from random import Random
from typing import Any

from machine_driver import MachineDriver

from barnabas.machines.controller.image import ClusterImage, PartitionImage, TopicImage
from barnabas.machines.coordinator import CoordinatorDecision, CoordinatorRecord
from barnabas.machines.group import commands
from barnabas.machines.group.settings import GroupSettings
from barnabas.machines.group.shard import GroupShard
from barnabas.protocol.messages.consumer_protocol import ConsumerProtocolSubscription
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from barnabas.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from barnabas.protocol.versioned import encode_versioned

UUID = re.compile(r"\b([A-Za-z]\w*)-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")
ERROR = re.compile(r"<ErrorCode\.(\w+): -?\d+>")
PARTITION = re.compile(r"(\w+)-(\d+)(?:=(-?\d+))?$")
Options = dict[str, str]


def split_partition(word: str) -> tuple[str, int, int]:
    match = PARTITION.match(word)
    assert match is not None, word
    return match[1], int(match[2]), int(match[3] or 0)


class Player:
    def __init__(self) -> None:
        self._random = Random(7)
        self._settings: dict[str, int] = {}
        self._driver = MachineDriver(self._make_shard)
        self._names: dict[str, str] = {}
        self._told: dict[str, str] = {}
        self._numbers = itertools.count(1)
        self._subscriptions: dict[str, str] = {}
        """Bytes as Python shows them -> what is shown instead."""

    def _make_shard(self) -> GroupShard:
        return GroupShard(GroupSettings(**self._settings), self._random)

    def play(self, line: str) -> list[str]:
        verb, *words = line.split()
        options = dict(word.split("=", 1) for word in words if "=" in word and not PARTITION.match(word))
        plain = [word for word in words if "=" not in word or PARTITION.match(word)]
        before = len(self._driver.answers)
        trace = getattr(self, f"_{verb.replace('-', '_')}")(plain, options)
        for token, response in self._driver.answers[before:]:
            self._learn(token, response)
        return [self._readable(line) for line in trace]

    # What is asked

    def _join(self, plain: list[str], options: Options) -> list[str]:
        client = plain[0]
        topics = options.get("topics", "t").split(",")
        metadata = encode_versioned(ConsumerProtocolSubscription(topics=topics), 0)
        self._subscriptions[repr(metadata)] = f"<{','.join(topics)}>"
        names = [name for name in options.get("protocols", "range").split(",") if name]
        request = JoinGroupRequest(
            group_id=options.get("group", "g"),
            session_timeout_ms=int(options.get("session", 10_000)),
            rebalance_timeout_ms=int(options.get("rebalance", 60_000)),
            member_id=self._member(client, options),
            group_instance_id=options.get("instance"),
            protocol_type=options.get("type", "consumer"),
            protocols=[JoinGroupRequestProtocol(name=name, metadata=metadata) for name in names],
        )
        command = commands.JoinGroup(request, int(options.get("version", 9)), client, "/127.0.0.1")
        return self._submit(command, client)

    def _sync(self, plain: list[str], options: Options) -> list[str]:
        client = plain[0]
        fixed = ("generation", "instance", "member", "group", "protocol", "type")
        given = {name: assignment for name, assignment in options.items() if name not in fixed}
        request = SyncGroupRequest(
            group_id=options.get("group", "g"),
            generation_id=int(options["generation"]),
            member_id=self._member(client, options),
            group_instance_id=options.get("instance"),
            protocol_type=options.get("type"),
            protocol_name=options.get("protocol"),
            assignments=[
                SyncGroupRequestAssignment(member_id=self._told.get(name, name), assignment=assignment.encode())
                for name, assignment in given.items()
            ],
        )
        return self._submit(commands.SyncGroup(request, 5), client)

    def _heartbeat(self, plain: list[str], options: Options) -> list[str]:
        request = HeartbeatRequest(
            group_id=options.get("group", "g"),
            generation_id=int(options["generation"]),
            member_id=self._member(plain[0], options),
            group_instance_id=options.get("instance"),
        )
        return self._submit(commands.Heartbeat(request, 4), plain[0])

    def _leave(self, plain: list[str], options: Options) -> list[str]:
        version = int(options.get("version", 5))
        members = [
            MemberIdentity(member_id=self._member(client, options), group_instance_id=options.get("instance"))
            for client in plain
        ]
        request = LeaveGroupRequest(group_id=options.get("group", "g"), member_id=members[0].member_id, members=members)
        return self._submit(commands.LeaveGroup(request, version), plain[0])

    def _commit(self, plain: list[str], options: Options) -> list[str]:
        words, member = self._committer(plain, options)
        request = OffsetCommitRequest(
            group_id=options.get("group", "g"),
            generation_id_or_member_epoch=int(options.get("generation", -1)),
            member_id=member,
            group_instance_id=options.get("instance"),
            retention_time_ms=int(options.get("retention", -1)),
            topics=[
                OffsetCommitRequestTopic(
                    name=topic,
                    partitions=[
                        OffsetCommitRequestPartition(
                            partition_index=partition,
                            committed_offset=offset,
                            committed_metadata=options.get("metadata", ""),
                        )
                    ],
                )
                for topic, partition, offset in map(split_partition, words)
            ],
        )
        return self._submit(commands.OffsetCommit(request, int(options.get("version", 9))), "commit")

    def _txn_commit(self, plain: list[str], options: Options) -> list[str]:
        words, member = self._committer(plain, options)
        request = TxnOffsetCommitRequest(
            transactional_id="x",
            group_id=options.get("group", "g"),
            producer_id=int(options["producer"]),
            producer_epoch=0,
            generation_id=int(options.get("generation", -1)),
            member_id=member,
            group_instance_id=options.get("instance"),
            topics=[
                TxnOffsetCommitRequestTopic(
                    name=topic,
                    partitions=[
                        TxnOffsetCommitRequestPartition(
                            partition_index=partition,
                            committed_offset=offset,
                            committed_metadata=options.get("metadata", ""),
                        )
                    ],
                )
                for topic, partition, offset in map(split_partition, words)
            ],
        )
        return self._submit(commands.TxnOffsetCommit(request, 5), "txn-commit")

    def _end_txn(self, plain: list[str], options: Options) -> list[str]:
        self._driver.mark(int(options["producer"]), 0, plain[0] == "commit")
        return []

    def _fetch(self, plain: list[str], options: Options) -> list[str]:
        words = [word for word in plain if word != "stable"]
        topics = [
            OffsetFetchRequestTopics(name=topic, partition_indexes=[partition])
            for topic, partition, _ in map(split_partition, words)
        ]
        group = OffsetFetchRequestGroup(group_id=options.get("group", "g"), topics=topics or None)
        return self._submit(commands.OffsetFetch(group, "stable" in plain), "fetch")

    def _delete_offsets(self, plain: list[str], options: Options) -> list[str]:
        topics = [
            OffsetDeleteRequestTopic(name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=partition)])
            for topic, partition, _ in map(split_partition, plain)
        ]
        request = OffsetDeleteRequest(group_id=options.get("group", "g"), topics=topics)
        return self._submit(commands.OffsetDelete(request), "delete-offsets")

    def _list(self, plain: list[str], options: Options) -> list[str]:
        states, types = (tuple(filter(None, options.get(name, "").split(","))) for name in ("states", "types"))
        return self._submit(commands.ListGroups(states, types), "list")

    def _describe(self, plain: list[str], options: Options) -> list[str]:
        groups = (options.get("group", "g"),)
        return self._submit(commands.DescribeGroups(groups, int(options.get("version", 6))), "describe")

    def _delete(self, plain: list[str], options: Options) -> list[str]:
        return self._submit(commands.DeleteGroups((options.get("group", "g"),)), "delete")

    # What happens

    def _time(self, plain: list[str], options: Options) -> list[str]:
        trace = []
        for key, decision in self._driver.advance_to(int(plain[0])):
            trace += [f"timer {key}", *self._show(decision)]
        return trace

    def _topics(self, plain: list[str], options: Options) -> list[str]:
        """`t` or `t/2`, where the number tells apart topics that had the same name one after the other."""
        topics = {}
        for word in plain:
            name, _, number = word.partition("/")
            topic_id = f"{name}{number}".encode().ljust(16, b".")
            topics[name] = TopicImage(name, topic_id, (PartitionImage(0, (1,), (1,), 1),))
        names = {topic.topic_id: topic.name for topic in topics.values()}
        return self._show(self._driver.show_image(ClusterImage(topics=topics, topic_names=names)))

    def _reload(self, plain: list[str], options: Options) -> list[str]:
        lost = self._driver.load()
        timers = [f"  {key} at {deadline}" for key, deadline in self._driver.timers.items()]
        return [*(f"  lost: {self._token(token)}" for token in lost), *timers]

    def _set(self, plain: list[str], options: Options) -> list[str]:
        self._settings = {name: int(value) for name, value in options.items()}
        return self._reload([], {})

    # What is shown

    def _submit(self, command: Any, client: str) -> list[str]:
        return self._show(self._driver.submit(command, (next(self._numbers), client)))

    def _show(self, decision: CoordinatorDecision) -> list[str]:
        trace = [f"  record {self._show_record(record)}" for record in decision.records]
        trace += [f"  reply {self._token(token)}: {response!r}" for token, response in decision.replies]
        trace += [f"  timer {key} " + ("off" if at is None else f"at {at}") for key, at in decision.timers]
        return trace

    def _show_record(self, record: CoordinatorRecord) -> str:
        if record.value is None:
            return f"{record.key!r} removed"
        return f"{record.key!r} v{record.value_version} {record.value!r}"

    def _token(self, token: Any) -> str:
        return f"{token[1]} (request {token[0]})"

    def _member(self, client: str, options: Options) -> str:
        member = options.get("member")
        if member is None:
            return self._told.get(client, "")
        return "" if member == "." else self._id_of(member)

    def _id_of(self, name: str) -> str:
        return next((member_id for member_id, known in self._names.items() if known == name), name)

    def _committer(self, plain: list[str], options: Options) -> tuple[list[str], str]:
        words = [word for word in plain if PARTITION.match(word)]
        client = next((word for word in plain if word not in words), None)
        return words, "" if client is None else self._member(client, options)

    def _learn(self, token: Any, response: Any) -> None:
        member_id = getattr(response, "member_id", "")
        if member_id:
            self._told[token[1]] = member_id

    def _readable(self, line: str) -> str:
        for shown, topics in self._subscriptions.items():
            line = line.replace(shown, topics)

        def name(match: re.Match[str]) -> str:
            if match[0] not in self._names:
                count = sum(known.startswith(f"{match[1]}#") for known in self._names.values())
                self._names[match[0]] = f"{match[1]}#{count + 1}"
            return self._names[match[0]]

        return UUID.sub(name, ERROR.sub(r"\1", line))
