"""Plays the transcripts of a consumer's group membership (`tests/transcripts/membership`), one member, by hand.

    options protocol=consumer strategy=range,sticky instance=i1 rack=r   a new machine; must come first
    topics t:4 u:2                         what metadata says from now on; tells the machine
    subscribe t u | pattern t.* | remote t.* | unsubscribe
    time 3000                              on to that time, timers fire on the way
    polled                                 the user's thread called poll
    refreshed                              the latest refresh is done; `forbidden` names topics that may not be read
    forbidden t
    joined generation=1 me=a leader=a protocol=range members=a:t;b:t,u [skip]    or error=CODE [me=a]
    synced t-0 t-1                         or error=CODE; responses go to the latest request of their kind
    beat                                   the heartbeat went well; or error=CODE
    response epoch=1 [assigned=t:0,1;u:0] [interval=5000]                          or error=CODE
    lost                                   the oldest request without a response fails with the connection
    take / done                            the user takes the event; its callback is over
    refused                                a commit was refused: the coordinator does not know the member
    close / close stay

The trace has what the machine wants done, then the time of its next timer.
"""

import logging
import re
from typing import Any

from barnabas.client.consumer.group.actions import (
    Action,
    Deliver,
    Fail,
    Forget,
    Leave,
    Refresh,
    Say,
    Send,
    TopicView,
    Withdraw,
)
from barnabas.client.consumer.group.classic import ClassicMachine
from barnabas.client.consumer.group.consumer import ConsumerMachine
from barnabas.client.consumer.group.events import RebalanceEvent, names_of
from barnabas.client.consumer.group.machine import MemberMachine
from barnabas.client.consumer.group.options import CONSUMER, GroupOptions
from barnabas.client.consumer.group.protocol import (
    MemberAssignment,
    MemberSubscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from barnabas.client.consumer.group.subscription import Subscription
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from barnabas.types import TopicPartition

Options = dict[str, str]


def topic_id_of(name: str) -> bytes:
    return name.encode().ljust(16, b".")


def name_of(topic_id: bytes) -> str:
    return topic_id.rstrip(b".").decode()


class Player:
    def __init__(self) -> None:
        self._now_ms = 0
        self._machine: MemberMachine = ClassicMachine(GroupOptions(group_id="g"))
        self._counts: dict[str, int] = {}
        self._errors: dict[str, ErrorCode] = {}
        self._open: list[Any] = []
        self._refreshes: list[Refresh] = []
        self._queue: list[RebalanceEvent] = []
        self._taken: RebalanceEvent | None = None
        self._trace: list[str] = []

    def play(self, line: str) -> list[str]:
        command, *words = line.split()
        plain = [word for word in words if "=" not in word]
        options = dict(word.split("=", 1) for word in words if "=" in word)
        self._trace = []
        getattr(self, f"_{command}")(plain, options)
        self._carry_out()
        deadline = self._machine.next_deadline_ms()
        self._trace.append("  next timer: none" if deadline is None else f"  next timer: {max(deadline, self._now_ms)}")
        return self._trace

    # Input

    def _options(self, plain: list[str], options: Options) -> None:
        given: dict[str, Any] = {"group_id": "g", "group_instance_id": options.get("instance")}
        given |= {"client_rack": options.get("rack"), "group_remote_assignor": options.get("assignor")}
        if "strategy" in options:
            given["partition_assignment_strategy"] = tuple(options["strategy"].split(","))
        settings = GroupOptions(group_protocol=options.get("protocol", "classic"), **given)
        is_new = settings.group_protocol == CONSUMER
        self._machine = ConsumerMachine(settings, "me") if is_new else ClassicMachine(settings)

    def _topics(self, plain: list[str], options: Options) -> None:
        self._counts = {name: int(count) for name, _, count in (word.partition(":") for word in plain)}
        self._machine.on_topics(self._view(), self._now_ms)

    def _subscribe(self, plain: list[str], options: Options) -> None:
        self._machine.subscribe(Subscription(frozenset(plain)), self._now_ms)

    def _pattern(self, plain: list[str], options: Options) -> None:
        self._machine.subscribe(Subscription(pattern=re.compile(plain[0]), is_resolved=False), self._now_ms)

    def _remote(self, plain: list[str], options: Options) -> None:
        self._machine.subscribe(Subscription(remote_pattern=plain[0]), self._now_ms)

    def _unsubscribe(self, plain: list[str], options: Options) -> None:
        self._machine.subscribe(None, self._now_ms)

    def _time(self, plain: list[str], options: Options) -> None:
        end_ms = int(plain[0])
        while (deadline := self._machine.next_deadline_ms()) is not None and deadline <= end_ms:
            self._now_ms = max(self._now_ms, deadline)
            self._machine.on_time(self._now_ms)
            self._carry_out()
        self._now_ms = end_ms

    def _polled(self, plain: list[str], options: Options) -> None:
        self._machine.polled(self._now_ms)

    def _refreshed(self, plain: list[str], options: Options) -> None:
        self._machine.on_refreshed(self._refreshes.pop(), self._view(), self._now_ms)

    def _joined(self, plain: list[str], options: Options) -> None:
        members = []
        for word in filter(None, options.get("members", "").split(";")):
            member_id, _, topics = word.partition(":")
            metadata = encode_subscription(MemberSubscription(tuple(topics.split(","))))
            members.append(JoinGroupResponseMember(member_id=member_id, metadata=metadata))
        response = JoinGroupResponse(
            error_code=_code(options),
            generation_id=int(options.get("generation", "-1")),
            protocol_name=options.get("protocol", "range"),
            leader=options.get("leader", "other"),
            member_id=options.get("me", ""),
            members=members,
            skip_assignment="skip" in plain,
        )
        self._respond(JoinGroupRequest, response)

    def _synced(self, plain: list[str], options: Options) -> None:
        assignment = encode_assignment(MemberAssignment(tuple(_partition(word) for word in plain)))
        self._respond(SyncGroupRequest, SyncGroupResponse(error_code=_code(options), assignment=assignment))

    def _beat(self, plain: list[str], options: Options) -> None:
        self._respond(HeartbeatRequest, HeartbeatResponse(error_code=_code(options)))

    def _answer(self, plain: list[str], options: Options) -> None:
        response = ConsumerGroupHeartbeatResponse(
            error_code=_code(options),
            member_id="me",
            member_epoch=int(options.get("epoch", "0")),
            heartbeat_interval_ms=int(options.get("interval", "5000")),
        )
        if "assigned" in options:
            topics = []
            for word in filter(None, options["assigned"].split(";")):
                name, _, numbers = word.partition(":")
                partitions = [int(number) for number in numbers.split(",")]
                topics.append(TopicPartitions(topic_id=topic_id_of(name), partitions=partitions))
            response.assignment = Assignment(topic_partitions=topics)
        self._respond(ConsumerGroupHeartbeatRequest, response)

    def _lost(self, plain: list[str], options: Options) -> None:
        self._machine.on_failure(self._open.pop(0), KafkaError(ErrorCode.NETWORK_EXCEPTION), self._now_ms)

    def _take(self, plain: list[str], options: Options) -> None:
        self._taken = self._queue.pop(0)

    def _done(self, plain: list[str], options: Options) -> None:
        event = self._taken or self._queue.pop(0)
        self._taken = None
        self._machine.on_done(event, ValueError("mine") if "raised" in plain else None, self._now_ms)

    def _refused(self, plain: list[str], options: Options) -> None:
        self._machine.on_commit_refused(self._machine.identity, self._now_ms)

    def _close(self, plain: list[str], options: Options) -> None:
        self._machine.close(self._now_ms, leave="stay" not in plain)

    def _respond(self, kind: type, response: Any) -> None:
        request = next(each for each in reversed(self._open) if isinstance(each, kind))
        self._open.remove(request)
        self._machine.on_response(request, response, self._now_ms)

    def _forbidden(self, plain: list[str], options: Options) -> None:
        self._errors = dict.fromkeys(plain, ErrorCode.TOPIC_AUTHORIZATION_FAILED)

    def _view(self) -> TopicView:
        internal = frozenset(name for name in self._counts if name.startswith("__"))
        names = {topic_id_of(name): name for name in self._counts}
        return TopicView(dict(self._counts), names, internal, self._errors)

    # Trace

    def _carry_out(self) -> None:
        while actions := self._machine.take_actions():
            for action in actions:
                self._do(action)

    def _do(self, action: Action) -> None:
        at = f"  {self._now_ms}: "
        match action:
            case Send(request, _, delay_ms, _):
                self._open.append(request)
                self._trace.append(f"{at}send {_shown(request)}" + (f" in {delay_ms} ms" if delay_ms else ""))
            case Leave(request):
                self._trace.append(f"{at}leave {_shown(request)}")
            case Refresh(topics):
                self._refreshes.append(action)
                self._trace.append(f"{at}refresh {'all topics' if topics is None else ' '.join(sorted(topics))}")
            case Deliver(event):
                self._queue.append(event)
                self._trace.append(f"{at}deliver {event}")
            case Withdraw(event):
                self._withdraw(event, at)
            case Forget():
                self._trace.append(f"{at}forget the coordinator")
            case Fail(error):
                self._trace.append(f"{at}fail {type(error).__name__} {error.code.name}")
            case Say(level, text):
                self._trace.append(f"{at}say {logging.getLevelName(level)} {text}")

    def _withdraw(self, event: RebalanceEvent, at: str) -> None:
        if event in self._queue:
            self._queue.remove(event)
            self._trace.append(f"{at}withdraw {event}")
            self._machine.on_withdrawn(event, self._now_ms)
        else:
            self._trace.append(f"{at}withdraw {event}: too late")


def _code(options: Options) -> int:
    return int(ErrorCode[options.get("error", "NONE")])


def _partition(text: str) -> TopicPartition:
    topic, _, number = text.rpartition("-")
    return TopicPartition(topic, int(number))


def _shown(request: Any) -> str:
    name = type(request).__name__.removesuffix("Request")
    if isinstance(request, JoinGroupRequest):
        told = decode_subscription(request.protocols[0].metadata)
        offered = ",".join(each.name for each in request.protocols)
        text = f"{name} as {request.member_id or 'nobody'} topics={','.join(told.topics)} assignors={offered}"
        if request.group_instance_id:
            text += f" instance={request.group_instance_id}"
        if told.owned_partitions:
            text += f" owned=({names_of(told.owned_partitions)}) of generation {told.generation}"
        return text + (f" because {request.reason}" if request.reason else "")
    if isinstance(request, SyncGroupRequest):
        shares = [
            f"{each.member_id}=({names_of(decode_assignment(each.assignment).partitions)})"
            for each in request.assignments
        ]
        return " ".join([name, f"generation={request.generation_id}", *shares])
    if isinstance(request, HeartbeatRequest):
        return f"{name} as {request.member_id} generation={request.generation_id}"
    if isinstance(request, ConsumerGroupHeartbeatRequest):
        return _shown_heartbeat(request)
    return f"{name} {request.members[0].member_id}: {request.members[0].reason}"


def _shown_heartbeat(request: ConsumerGroupHeartbeatRequest) -> str:
    text = f"heartbeat as {request.member_id} epoch={request.member_epoch}"
    if request.instance_id:
        text += f" instance={request.instance_id}"
    if request.subscribed_topic_names is not None:
        text += f" topics=({' '.join(request.subscribed_topic_names)})"
    if request.subscribed_topic_regex is not None:
        text += f" regex={request.subscribed_topic_regex!r}"
    if request.topic_partitions is not None:
        owned = [f"{name_of(each.topic_id)}:{each.partitions}" for each in request.topic_partitions]
        text += f" owned=({' '.join(owned)})"
    return text
