"""Members of one group, as the client's machines run them, around the real coordinator machine, in simulated time.

Each member has a machine, a driver's duties done by hand (requests, metadata, timers, the queue of events) and a user
who polls now and then, takes an event, and is done with it some time later. Requests and responds travel as bytes, may
be late, lost, or refused by a coordinator that moves or loads; it may also fail over to one rebuilt from the log.
"""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from dataclasses import dataclass, field
from random import Random
from typing import Any

from machine_driver import MachineDriver

from barnabas.client.consumer.group.actions import (
    Action,
    Deliver,
    Fail,
    Leave,
    Refresh,
    Say,
    Send,
    TopicView,
    Withdraw,
)
from barnabas.client.consumer.group.classic import ClassicMachine
from barnabas.client.consumer.group.consumer import ConsumerMachine
from barnabas.client.consumer.group.events import Assigned, RebalanceEvent
from barnabas.client.consumer.group.machine import MemberMachine
from barnabas.client.consumer.group.options import CONSUMER, GroupOptions
from barnabas.client.consumer.group.subscription import Subscription
from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.controller.image import ClusterImage, PartitionImage, TopicImage
from barnabas.machines.group import commands
from barnabas.machines.group.consumer.settings import ConsumerGroupSettings
from barnabas.machines.group.settings import GroupSettings
from barnabas.machines.group.shard import GroupShard
from barnabas.protocol.compiler import decode, encode
from barnabas.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from barnabas.protocol.messages.leave_group import LeaveGroupRequest
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from barnabas.types import TopicPartition

SETTINGS = GroupSettings(
    group_initial_rebalance_delay_ms=500,
    offsets_retention_check_interval_ms=10**12,
    consumer=ConsumerGroupSettings(
        session_timeout_ms=10_000,
        min_session_timeout_ms=6000,
        heartbeat_interval_ms=2000,
        min_heartbeat_interval_ms=1000,
    ),
)
VERSIONS = {JoinGroupRequest: 9, SyncGroupRequest: 5, HeartbeatRequest: 4, ConsumerGroupHeartbeatRequest: 1}
LOST = KafkaError(ErrorCode.NETWORK_EXCEPTION)
TIMED_OUT = KafkaError(ErrorCode.REQUEST_TIMED_OUT)


@dataclass(eq=False)
class Member:
    name: str
    machine: MemberMachine
    poll_ms: int = 200
    callback_ms: int = 50
    owned: set[TopicPartition] = field(default_factory=set)
    """What the user reads."""
    events: deque[RebalanceEvent] = field(default_factory=deque)
    busy_with: RebalanceEvent | None = None
    frozen_until_ms: int = 0
    stalled_until_ms: int = 0
    is_dead: bool = False
    said: list[str] = field(default_factory=list)
    assigned_count: int = 0
    lost_count: int = 0
    timer: int = 0


@dataclass(eq=False, slots=True)
class Request:
    member: Member
    message: Any
    is_open: bool = True


class World:
    def __init__(self, random: Random, topics: dict[str, int]) -> None:
        self.random = random
        self.driver = MachineDriver(lambda: GroupShard(SETTINGS, random))
        self.topics = topics
        self.members: list[Member] = []
        self.numbers = itertools.count()
        self.queue: list[tuple[int, int, str, Any]] = []
        self.loss = 0.0
        self.moved = 0.0
        self.failovers = 0
        self.show_topics()

    @property
    def now_ms(self) -> int:
        return self.driver.now_ms

    def show_topics(self) -> None:
        images = {
            name: TopicImage(name, topic_id_of(name), tuple(PartitionImage(n, (1,), (1,), 1) for n in range(count)))
            for name, count in self.topics.items()
        }
        names = {image.topic_id: name for name, image in images.items()}
        self.driver.show_image(ClusterImage(topics=images, topic_names=names))
        self.collect_answers()

    def view(self) -> TopicView:
        return TopicView(dict(self.topics), {topic_id_of(name): name for name in self.topics})

    def add(self, name: str, subscription: Subscription, **options: Any) -> Member:
        given: dict[str, Any] = {
            "group_id": "g",
            "session_timeout_ms": 6000,
            "heartbeat_interval_ms": 1500,
            "max_poll_interval_ms": 8000,
            "metadata_max_age_ms": 5000,
            "request_timeout_ms": 4000,
        }
        settings = GroupOptions(**given | options)
        machine: MemberMachine
        if settings.group_protocol == CONSUMER:
            machine = ConsumerMachine(settings, f"{name}.{next(self.numbers)}")
        else:
            machine = ClassicMachine(settings)
        member = Member(name, machine)
        self.members.append(member)
        machine.subscribe(subscription, self.now_ms)
        self.carry_out(member)
        self.at(self.random.randrange(100), "poll", member)
        return member

    # Time

    def at(self, delay_ms: int, what: str, subject: Any) -> None:
        heapq.heappush(self.queue, (self.now_ms + delay_ms, next(self.numbers), what, subject))

    def step(self) -> None:
        due_ms, _, what, subject = heapq.heappop(self.queue)
        self.driver.advance_to(due_ms)
        self.collect_answers()
        getattr(self, f"on_{what}")(subject)
        self.collect_answers()
        self.check()

    def run(self, duration_ms: int) -> None:
        end_ms = self.now_ms + duration_ms
        while self.queue[0][0] <= end_ms:
            self.step()

    # Members

    def feed(self, member: Member, method: Any, *arguments: Any) -> None:
        if member.is_dead:
            return
        if member.frozen_until_ms > self.now_ms:
            self.at(member.frozen_until_ms - self.now_ms, "thaw", (member, method, arguments))
            return
        method(*arguments, self.now_ms)
        self.carry_out(member)

    def on_thaw(self, subject: tuple[Member, Any, tuple[Any, ...]]) -> None:
        member, method, arguments = subject
        self.feed(member, method, *arguments)

    def carry_out(self, member: Member) -> None:
        while actions := member.machine.take_actions():
            for action in actions:
                self.do(member, action)
        deadline_ms = member.machine.next_deadline_ms()
        member.timer = next(self.numbers)
        if deadline_ms is not None:
            self.at(max(0, deadline_ms - self.now_ms), "timer", (member, member.timer))

    def do(self, member: Member, action: Action) -> None:
        match action:
            case Send(request, timeout_ms, delay_ms, _):
                sent = Request(member, request)
                self.at(delay_ms + self.random.randrange(1, 30), "arrival", sent)
                self.at(delay_ms + timeout_ms, "timeout", sent)
            case Leave(request):
                if self.random.random() >= self.loss:
                    self.at(self.random.randrange(1, 30), "leaving", (member, request))
            case Refresh():
                self.at(self.random.randrange(1, 60), "refreshed", (member, action))
            case Deliver(event):
                assert not member.events and member.busy_with is None, "one event at a time"
                event.bind(lambda each, error: self.feed(member, member.machine.on_done, each, error))
                member.events.append(event)
            case Withdraw(event):
                if event in member.events:
                    member.events.remove(event)
                    member.machine.on_withdrawn(event, self.now_ms)
            case Fail(error):
                member.said.append(f"failed: {error}")
            case Say(_, text):
                member.said.append(text)

    def on_timer(self, subject: tuple[Member, int]) -> None:
        member, number = subject
        if number == member.timer:
            self.feed(member, member.machine.on_time)

    def on_refreshed(self, subject: tuple[Member, Refresh]) -> None:
        member, refresh = subject
        self.feed(member, member.machine.on_refreshed, refresh, self.view())

    # Users

    def on_poll(self, member: Member) -> None:
        if member.is_dead:
            return
        self.at(self.random.randrange(member.poll_ms // 2, member.poll_ms * 2), "poll", member)
        if max(member.frozen_until_ms, member.stalled_until_ms) > self.now_ms or member.busy_with is not None:
            return
        self.feed(member, member.machine.polled)
        if member.events:
            self.begin(member, member.events.popleft())

    def begin(self, member: Member, event: RebalanceEvent) -> None:
        member.busy_with = event
        if isinstance(event, Assigned):
            assert member.owned.isdisjoint(event.partitions), "assigned what it has"
            member.owned.update(event.partitions)
            member.assigned_count += 1
        else:
            assert member.owned.issuperset(event.partitions), "takes away what it has not"
        self.at(self.random.randrange(member.callback_ms), "callback_end", member)

    def on_callback_end(self, member: Member) -> None:
        event = member.busy_with
        if member.is_dead or event is None:
            return
        if member.frozen_until_ms > self.now_ms:
            self.at(member.frozen_until_ms - self.now_ms, "callback_end", member)
            return
        member.busy_with = None
        if not isinstance(event, Assigned):
            member.owned.difference_update(event.partitions)
        event.done()

    def kill(self, member: Member) -> None:
        member.is_dead = True
        member.owned.clear()
        member.events.clear()
        member.busy_with = None

    # Network and coordinator

    def on_arrival(self, sent: Request) -> None:
        if not sent.is_open or sent.member.is_dead:
            return
        if self.random.random() < self.loss:
            if self.random.random() < 0.5:
                self.at(self.random.randrange(200), "answer", (sent, LOST))
            return  # else only the time-out will tell
        if self.random.random() < self.moved:
            code = self.random.choice(
                (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            )
            self.at(self.random.randrange(30), "answer", (sent, refused(sent.message, code)))
            return
        self.driver.submit(self.command(sent.member, sent.message), sent)

    def on_leaving(self, subject: tuple[Member, Any]) -> None:
        member, request = subject
        self.driver.submit(self.command(member, request), Request(member, request, is_open=False))

    def on_timeout(self, sent: Request) -> None:
        self.answer(sent, TIMED_OUT)

    def on_answer(self, subject: tuple[Request, Any]) -> None:
        self.answer(*subject)

    def answer(self, sent: Request, response: Any) -> None:
        if not sent.is_open:
            return
        sent.is_open = False
        machine = sent.member.machine
        if isinstance(response, KafkaError):
            self.feed(sent.member, machine.on_failure, sent.message, response)
        else:
            self.feed(sent.member, machine.on_response, sent.message, response)

    def collect_answers(self) -> None:
        answers, self.driver.answers = self.driver.answers, []
        for token, response in answers:
            assert isinstance(token, Request)
            if not token.is_open:
                continue
            version = VERSIONS[type(token.message)]
            seen = decode(type(response), version, encode(response, version))[0]
            if self.random.random() < self.loss:
                self.at(self.random.randrange(200), "answer", (token, LOST))
            else:
                self.at(self.random.randrange(1, 30), "answer", (token, seen))

    def fail_over(self) -> None:
        self.failovers += 1
        for token in self.driver.load():
            if isinstance(token, Request):
                self.at(self.random.randrange(100), "answer", (token, LOST))
        self.collect_answers()

    def command(self, member: Member, request: Any) -> Any:
        if isinstance(request, LeaveGroupRequest):
            return commands.LeaveGroup(request, 5)
        version = VERSIONS[type(request)]
        received = decode(type(request), version, encode(request, version))[0]
        if isinstance(request, JoinGroupRequest):
            return commands.JoinGroup(received, version, member.name, "/127.0.0.1")
        if isinstance(request, SyncGroupRequest):
            return commands.SyncGroup(received, version)
        if isinstance(request, HeartbeatRequest):
            return commands.Heartbeat(received, version)
        return commands.ConsumerGroupHeartbeat(received, version, member.name, "/127.0.0.1")

    # What must hold

    def check(self) -> None:
        """No partition is read by two who count as members, both for the coordinator and for themselves.

        A static member that is too slow to rejoin stays in a classic group, in the generation that it knows: it does
        not count, and its commits are refused.
        """
        shard = self.driver.machine
        assert isinstance(shard, GroupShard)
        group: Any = shard.registry.get("g")
        known = set(group.members) if group is not None else set()
        readers: dict[TopicPartition, str] = {}
        for member in self.members:
            machine = member.machine
            if member.is_dead or machine.is_lost or machine.identity.member_id not in known:
                continue
            if isinstance(machine, ClassicMachine) and machine.generation != group.generation:
                continue
            for partition in member.owned:
                other = readers.setdefault(partition, member.name)
                assert other == member.name, f"{partition} is read by {other} and {member.name}"

    def wanted(self) -> set[TopicPartition]:
        """All partitions of the topics that somebody subscribes to."""
        alive = [member.machine for member in self.members if not member.is_dead and member.machine.error is None]
        subscriptions = [machine.subscription for machine in alive]
        return {
            TopicPartition(topic, number)
            for topic, count in self.topics.items()
            for number in range(count)
            if any(each is not None and each.includes(topic) for each in subscriptions)
        }

    def is_settled(self) -> bool:
        alive = [member for member in self.members if not member.is_dead and member.machine.error is None]
        owned = [partition for member in alive for partition in member.owned]
        return (
            len(owned) == len(set(owned))
            and set(owned) == self.wanted()
            and not any(member.events or member.busy_with or member.machine.is_lost for member in alive)
            and not any(member.machine.is_rebalancing for member in alive)
        )


def topic_id_of(name: str) -> bytes:
    return name.encode().ljust(16, b".")


def refused(request: Any, code: ErrorCode) -> Any:
    if isinstance(request, JoinGroupRequest):
        return JoinGroupResponse(
            error_code=code, protocol_name=None, leader="", member_id=request.member_id, members=[]
        )
    if isinstance(request, SyncGroupRequest):
        return SyncGroupResponse(error_code=code, assignment=b"")
    if isinstance(request, HeartbeatRequest):
        return HeartbeatResponse(error_code=code)
    return ConsumerGroupHeartbeatResponse(error_code=code)
