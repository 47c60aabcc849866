"""The driver: what the machine wants reaches the cluster, what happens reaches the machine, threads do not mix."""

from __future__ import annotations

import asyncio
import logging
import re
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from fake_cluster import FakeCluster, lost

from barnabas.client.consumer.group import Assigned, GroupOptions, Lost, RebalanceEvent, Revoked, make_membership
from barnabas.client.consumer.group.actions import Refresh
from barnabas.client.consumer.group.driver import MembershipDriver
from barnabas.client.consumer.group.protocol import MemberAssignment, encode_assignment
from barnabas.client.errors import AuthenticationError, FencedError, UnexpectedError
from barnabas.client.node_connections import coordinator_id
from barnabas.clock import Clock, ManualClock, SystemClock
from barnabas.errors import ErrorCode
from barnabas.protocol import ApiKey
from barnabas.protocol.messages.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from barnabas.protocol.messages.heartbeat import HeartbeatResponse
from barnabas.protocol.messages.join_group import JoinGroupResponse
from barnabas.protocol.messages.leave_group import LeaveGroupResponse
from barnabas.protocol.messages.sync_group import SyncGroupResponse
from barnabas.types import TopicPartition

T0 = TopicPartition("t", 0)
OPTIONS: dict[str, Any] = {
    "group_id": "g",
    "heartbeat_interval_ms": 5,
    "retry_backoff_ms": 1,
    "retry_backoff_max_ms": 1,
    "partition_assignment_strategy": ("range",),
}


class Stage:
    """A membership on a fake cluster that lets it in, with a user who takes events."""

    def __init__(self, clock: Clock | None = None, **options: Any) -> None:
        self.cluster = cluster = FakeCluster(topics={"t": 1})
        self.woken = asyncio.Event()
        self.membership: MembershipDriver = make_membership(
            cluster, GroupOptions(**OPTIONS | options), on_event=self.woken.set, clock=clock
        )
        joined = JoinGroupResponse(generation_id=1, protocol_name="range", leader="other", member_id="me", members=[])
        cluster.always(ApiKey.JOIN_GROUP, joined)
        cluster.always(ApiKey.SYNC_GROUP, SyncGroupResponse(assignment=encode_assignment(MemberAssignment((T0,)))))
        cluster.always(ApiKey.HEARTBEAT, HeartbeatResponse())
        cluster.always(ApiKey.LEAVE_GROUP, LeaveGroupResponse(members=[]))

    async def next_event(self) -> RebalanceEvent:
        while (event := self.membership.next_event()) is None:
            self.woken.clear()
            await self.woken.wait()
        return event

    async def join(self) -> None:
        await self.membership.start()
        self.membership.subscribe(frozenset({"t"}), None)
        event = await self.next_event()
        assert isinstance(event, Assigned) and event.partitions == (T0,)
        event.done()


def play(scene: Callable[[Stage], Awaitable[None]], **options: Any) -> None:
    async def run() -> None:
        stage = Stage(**options)
        await scene(stage)
        await stage.membership.close(leave=True)

    asyncio.run(run())


def test_heartbeats_go_on_while_the_callback_runs() -> None:
    async def scene(stage: Stage) -> None:
        await stage.join()
        stage.cluster.answer(ApiKey.HEARTBEAT, HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
        event = await stage.next_event()
        assert isinstance(event, Revoked)
        before = len(stage.cluster.requests_of(ApiKey.HEARTBEAT))
        await stage.cluster.request_of(ApiKey.HEARTBEAT, before + 3)
        assert len(stage.cluster.requests_of(ApiKey.JOIN_GROUP)) == 1
        event.done()
        await stage.cluster.request_of(ApiKey.JOIN_GROUP, 1)

    play(scene)


def test_done_and_subscribe_from_another_thread() -> None:
    async def scene(stage: Stage) -> None:
        await stage.membership.start()
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, stage.membership.subscribe, frozenset({"t"}), None)
        event = await stage.next_event()
        done = threading.Thread(target=event.done)
        done.start()
        done.join()
        await stage.cluster.request_of(ApiKey.HEARTBEAT, 1)
        event.done()  # a second time does nothing
        assert stage.membership.owns([T0])

    play(scene)


def test_a_subscription_before_the_start_is_kept() -> None:
    async def scene(stage: Stage) -> None:
        stage.membership.subscribe(frozenset({"t"}), None)
        await stage.membership.start()
        assert (await stage.next_event()).partitions == (T0,)

    play(scene)


def test_a_lost_connection_forgets_the_coordinator_and_changes_nothing_else() -> None:
    async def scene(stage: Stage) -> None:
        await stage.join()
        stage.cluster.answer(ApiKey.HEARTBEAT, lost(), HeartbeatResponse(error_code=ErrorCode.NOT_COORDINATOR), lost())
        await stage.cluster.request_of(ApiKey.HEARTBEAT, len(stage.cluster.requests_of(ApiKey.HEARTBEAT)) + 5)
        assert len(stage.cluster.requests_of(ApiKey.JOIN_GROUP)) == 1
        assert stage.membership.next_event() is None and not stage.membership.is_lost

    play(scene)


def test_an_event_that_nobody_took_is_replaced_when_the_membership_is_lost() -> None:
    async def scene(stage: Stage) -> None:
        await stage.join()
        codes = (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.UNKNOWN_MEMBER_ID)
        stage.cluster.answer(ApiKey.HEARTBEAT, *(HeartbeatResponse(error_code=code) for code in codes))
        while not stage.membership.is_lost:
            stage.woken.clear()
            await stage.woken.wait()
        event = await stage.next_event()
        assert isinstance(event, Lost) and event.partitions == (T0,)
        event.done()
        await stage.cluster.request_of(ApiKey.JOIN_GROUP, 1)

    play(scene)


def test_nobody_polls_then_somebody_does(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "barnabas.client.consumer.group")

    async def scene(stage: Stage) -> None:
        await stage.join()
        event = await stage.next_event()
        assert isinstance(event, Lost)
        event.done()
        assert len(stage.cluster.requests_of(ApiKey.JOIN_GROUP)) == 1
        assert stage.cluster.requests_of(ApiKey.LEAVE_GROUP)[0].members[0].member_id == "me"
        stage.membership.polled(SystemClock().monotonic_ms())
        await stage.cluster.request_of(ApiKey.JOIN_GROUP, 1)

    play(scene, max_poll_interval_ms=60)
    assert "longer than max.poll.interval.ms (60)" in caplog.text
    assert "): joins for t" in caplog.text


def test_nobody_comes_back_because_a_timer_is_due() -> None:
    async def scene(stage: Stage) -> None:
        stage.cluster.always(ApiKey.CONSUMER_GROUP_HEARTBEAT, ConsumerGroupHeartbeatResponse(heartbeat_interval_ms=5))
        await stage.membership.start()
        stage.membership.subscribe(None, re.compile("t"))
        machine = stage.membership._machine
        while not machine.is_away:  # noqa: ASYNC110 - there is no event for it
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.03)  # several times the age at which metadata is asked for again
        assert machine.is_away
        stage.membership.polled(SystemClock().monotonic_ms())
        await asyncio.sleep(0)
        assert not machine.is_away

    play(scene, group_protocol="consumer", max_poll_interval_ms=20, metadata_max_age_ms=5)


def test_polls_put_off_the_end() -> None:
    clock = ManualClock()

    async def scene(stage: Stage) -> None:
        await stage.join()
        while not stage.membership.is_lost and len(stage.cluster.requests_of(ApiKey.HEARTBEAT)) < 30:
            clock.advance(10)
            stage.membership.polled(clock.monotonic_ms())
            await asyncio.sleep(0.001)
        assert clock.monotonic_ms() > 150
        assert not stage.membership.is_lost
        clock.advance(200)
        assert isinstance(await stage.next_event(), Lost)

    play(scene, clock=clock, max_poll_interval_ms=150)


def test_leaving_does_not_queue_behind_a_join_that_is_held() -> None:
    async def scene(stage: Stage) -> None:
        held = asyncio.Event()

        async def hold() -> JoinGroupResponse:
            await held.wait()
            raise AssertionError("never")

        stage.cluster.answer(
            ApiKey.JOIN_GROUP,
            JoinGroupResponse(error_code=79, protocol_name="", leader="", member_id="me", members=[]),
            lambda _node_id, _request: hold(),
        )
        await stage.membership.start()
        stage.membership.subscribe(frozenset({"t"}), None)
        await stage.cluster.request_of(ApiKey.JOIN_GROUP, 1)
        await stage.membership.close(leave=True)
        nodes = {type(request).__name__: node_id for node_id, request in stage.cluster.requests}
        assert nodes == {"JoinGroupRequest": coordinator_id(0), "LeaveGroupRequest": 0}

    play(scene)


def test_leaving_does_not_queue_behind_a_long_poll() -> None:
    async def scene(stage: Stage) -> None:
        await stage.join()
        await stage.membership.close(leave=True)
        nodes = {type(request).__name__: node_id for node_id, request in stage.cluster.requests}
        assert nodes["LeaveGroupRequest"] == coordinator_id(0), "over the connection on which nothing is fetched"

    play(scene, heartbeat_interval_ms=60_000)


@pytest.mark.parametrize(("version", "member_id"), [(2, "me"), (3, "")])
def test_older_brokers_hear_of_one_member(version: int, member_id: str) -> None:
    async def scene(stage: Stage) -> None:
        stage.cluster.versions[ApiKey.LEAVE_GROUP] = version
        await stage.join()
        await stage.membership.close(leave=True)
        assert stage.cluster.requests_of(ApiKey.LEAVE_GROUP)[0].member_id == member_id

    play(scene)


def test_what_is_fatal_is_there_to_be_raised() -> None:
    async def scene(stage: Stage) -> None:
        await stage.join()
        stage.cluster.answer(ApiKey.HEARTBEAT, HeartbeatResponse(error_code=ErrorCode.FENCED_INSTANCE_ID))
        assert isinstance(await stage.next_event(), Lost)
        assert isinstance(stage.membership.error, FencedError)

    play(scene, group_instance_id="i")


@pytest.mark.parametrize("failure", [AuthenticationError("no"), RuntimeError("a bug")])
def test_failures_to_send_end_the_membership(failure: Exception, caplog: pytest.LogCaptureFixture) -> None:
    async def scene(stage: Stage) -> None:
        stage.cluster.answer(ApiKey.JOIN_GROUP, failure)
        await stage.membership.start()
        stage.membership.subscribe(frozenset({"t"}), None)
        await stage.woken.wait()
        assert stage.membership.error is not None and not stage.membership.error.retriable

    play(scene)


def test_metadata_that_may_not_be_read_ends_the_membership() -> None:
    async def scene(stage: Stage) -> None:
        async def refuse(*_arguments: Any, **_named: Any) -> None:
            raise AuthenticationError("who are you?")

        stage.cluster.refresh_metadata = refuse  # type: ignore[method-assign]
        leads = JoinGroupResponse(generation_id=1, protocol_name="range", leader="me", member_id="me", members=[])
        stage.cluster.answer(ApiKey.JOIN_GROUP, leads)
        await stage.membership.start()
        stage.membership.subscribe(frozenset({"t"}), None)
        await stage.woken.wait()
        assert isinstance(stage.membership.error, AuthenticationError)

    play(scene)


def test_who_hears_of_an_assignment_knows_its_epoch() -> None:
    async def scene(stage: Stage) -> None:
        topics = [TopicPartitions(topic_id=b"t".ljust(16, b"-"), partitions=[0])]
        assigned = ConsumerGroupHeartbeatResponse(
            member_epoch=7, heartbeat_interval_ms=5, assignment=Assignment(topic_partitions=topics)
        )
        stage.cluster.always(ApiKey.CONSUMER_GROUP_HEARTBEAT, assigned)
        epochs: list[int] = []
        stage.membership._on_event = lambda: epochs.append(stage.membership.group_metadata().generation_id)
        await stage.membership.start()
        stage.membership.subscribe(frozenset({"t"}), None)
        while not epochs:  # noqa: ASYNC110 - the event is what is looked at
            await asyncio.sleep(0)
        assert epochs == [7]

    play(scene, group_protocol="consumer")


def test_the_new_protocol_resolves_topic_ids_through_metadata() -> None:
    async def scene(stage: Stage) -> None:
        stage.cluster.add_topic("late", 1, topic_id=b"late............")  # not published: a refresh finds it
        topics = [TopicPartitions(topic_id=b"late............", partitions=[0])]
        assigned = ConsumerGroupHeartbeatResponse(
            member_epoch=1, heartbeat_interval_ms=5, assignment=Assignment(topic_partitions=topics)
        )
        stage.cluster.answer(ApiKey.CONSUMER_GROUP_HEARTBEAT, assigned)
        stage.cluster.always(
            ApiKey.CONSUMER_GROUP_HEARTBEAT, ConsumerGroupHeartbeatResponse(member_epoch=1, heartbeat_interval_ms=5)
        )
        await stage.membership.start()
        stage.membership.subscribe(frozenset({"late"}), None)
        event = await stage.next_event()
        assert event.partitions == (TopicPartition("late", 0),)
        event.done()
        acknowledged = await stage.cluster.request_of(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1)
        while acknowledged.topic_partitions is None:
            acknowledged = await stage.cluster.request_of(
                ApiKey.CONSUMER_GROUP_HEARTBEAT, len(stage.cluster.requests_of(ApiKey.CONSUMER_GROUP_HEARTBEAT))
            )
        assert acknowledged.topic_partitions == topics
        await stage.membership.close(leave=True)
        assert stage.cluster.requests_of(ApiKey.CONSUMER_GROUP_HEARTBEAT)[-1].member_epoch == -1

    play(scene, group_protocol="consumer")


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_topic_that_does_not_exist_is_reported_once(protocol: str, caplog: pytest.LogCaptureFixture) -> None:
    async def scene(stage: Stage) -> None:
        stage.cluster.always(ApiKey.CONSUMER_GROUP_HEARTBEAT, ConsumerGroupHeartbeatResponse(member_id="me"))
        await stage.membership.start()
        subscribed = frozenset({"t", "typo"})
        stage.membership.subscribe(subscribed, None)
        await stage.membership.settle()
        for _ in range(3):
            await stage.membership._refresh(Refresh(subscribed))

    with caplog.at_level(logging.WARNING, "barnabas.client.consumer.group"):
        play(scene, group_protocol=protocol, allow_auto_create_topics=False)
    told = [record.message for record in caplog.records if "no such topic" in record.message]
    assert len(told) == 1 and "typo" in told[0]


@pytest.mark.parametrize("method", ["on_response", "on_time", "on_refreshed", "on_topics"])
def test_an_unexpected_failure_of_the_machine_is_for_the_user(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(stage: Stage) -> None:
        machine = stage.membership._machine

        def fail(*_: Any, **__: Any) -> None:
            raise KeyError("no such thing")

        if method == "on_refreshed":
            monkeypatch.setattr(machine, method, fail)
            await stage.membership.start()
            stage.membership.subscribe(frozenset({"t"}), None)
        else:
            await stage.join()
            monkeypatch.setattr(machine, method, fail)
            if method == "on_topics":
                stage.cluster.publish()
        while stage.membership.error is None:
            stage.woken.clear()
            await stage.woken.wait()
        assert isinstance(stage.membership.error, UnexpectedError)

    play(scene)
