"""The group shard where a transcript would not show it: early timers, long sessions, large removals, odd names."""

from random import Random
from typing import Any

import pytest
from group_clients import Client
from machine_driver import MachineDriver

from barnabas.config.broker import BrokerConfig
from barnabas.errors import ErrorCode
from barnabas.machines.group import commands
from barnabas.machines.group.offset_removal import OFFSETS_A_STEP, TOMBSTONES_A_STEP
from barnabas.machines.group.settings import GroupSettings
from barnabas.machines.group.shard import GroupShard
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequestGroup
from barnabas.protocol.messages.sync_group import SyncGroupRequest

DAY_MS = 86_400_000


@pytest.fixture
def driver() -> MachineDriver:
    return MachineDriver(lambda: GroupShard(GroupSettings(), Random(1)))


def join_command(group_id: str = "g", name: str = "a", version: int = 3, **changes: Any) -> commands.JoinGroup:
    request = JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        member_id="",
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff")],
    )
    for field, value in changes.items():
        setattr(request, field, value)
    return commands.JoinGroup(request, version, name, "/127.0.0.1")


def commit_command(group_id: str, offsets: dict[tuple[str, int], int]) -> commands.OffsetCommit:
    topics = [
        OffsetCommitRequestTopic(
            name=topic,
            partitions=[
                OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset, committed_metadata="")
            ],
        )
        for (topic, partition), offset in offsets.items()
    ]
    return commands.OffsetCommit(OffsetCommitRequest(group_id=group_id, topics=topics), 9)


def stable_group(driver: MachineDriver, group_id: str = "g") -> str:
    """One member, in generation 1."""
    driver.submit(join_command(group_id), "join")
    driver.advance_to(driver.now_ms + 3000)
    member_id: str = driver.answers.pop()[1].member_id
    sync = SyncGroupRequest(group_id=group_id, generation_id=1, member_id=member_id)
    assert not driver.ask(commands.SyncGroup(sync, 5)).error_code
    return member_id


def state_of(driver: MachineDriver, group_id: str = "g") -> str:
    described = driver.ask(commands.DescribeGroups((group_id,), 6))
    state: str = described[0].group_state
    return state


def test_settings_come_from_the_broker() -> None:
    settings = GroupSettings.of(BrokerConfig(group_max_size=7, offsets_retention_minutes=2))
    assert (settings.group_max_size, settings.offsets_retention_ms) == (7, 120_000)
    assert GroupSettings.of(BrokerConfig()) == GroupSettings()


def test_a_session_timer_that_fires_early_does_nothing(driver: MachineDriver) -> None:
    member_id = stable_group(driver)
    assert driver.machine.expire(f"session:g:{member_id}", driver.now).records == ()
    assert state_of(driver) == "Stable"


def test_a_heartbeat_at_rest_only_moves_the_deadline(driver: MachineDriver) -> None:
    """The timer fires early and is armed for the rest: the member goes once it has really fallen silent."""
    member_id = stable_group(driver)
    request = HeartbeatRequest(group_id="g", generation_id=1, member_id=member_id)
    started_ms = driver.now_ms
    while driver.now_ms < started_ms + 60_000:
        driver.advance_to(driver.now_ms + 7000)
        assert driver.machine.heartbeat_at_rest(request, driver.now_ms) == HeartbeatResponse()
    heard_ms = driver.now_ms
    driver.advance_to(heard_ms + 9999)
    assert state_of(driver) == "Stable"
    driver.advance_to(heard_ms + 10_000)
    assert state_of(driver) == "Empty"


def test_what_a_heartbeat_at_rest_leaves_to_the_usual_way(driver: MachineDriver) -> None:
    member_id = stable_group(driver)
    others = [
        HeartbeatRequest(group_id="none", generation_id=1, member_id=member_id),
        HeartbeatRequest(group_id="g", generation_id=0, member_id=member_id),
        HeartbeatRequest(group_id="g", generation_id=1, member_id="somebody"),
        HeartbeatRequest(group_id="g", generation_id=1, member_id=member_id, group_instance_id="nobody"),
    ]
    assert [driver.machine.heartbeat_at_rest(request, driver.now_ms) for request in others] == [None] * 4
    driver.submit(join_command(name="b"), "b")
    request = HeartbeatRequest(group_id="g", generation_id=1, member_id=member_id)
    assert driver.machine.heartbeat_at_rest(request, driver.now_ms) is None
    assert driver.ask(commands.Heartbeat(request, 3)).error_code == ErrorCode.REBALANCE_IN_PROGRESS


def test_timers_of_what_is_gone_do_nothing(driver: MachineDriver) -> None:
    for key in ("join:g", "sync:g", "session:g:a", "session:none:a"):
        driver.machine.expire(key, driver.now)
    stable_group(driver)
    for key in ("join:g", "sync:g", "session:g:a"):
        driver.machine.expire(key, driver.now)
    assert state_of(driver) == "Stable"


def test_a_held_request_keeps_a_member_alive(driver: MachineDriver) -> None:
    """b waits in SyncGroup for longer than its session; only the absence of the leader's SyncGroup ends that."""
    driver.submit(join_command(name="a", session_timeout_ms=100_000), "a")
    driver.submit(join_command(name="b"), "b")
    driver.advance_to(6000)
    member_id = dict(driver.answers)["b"].member_id
    sync = SyncGroupRequest(group_id="g", generation_id=1, member_id=member_id)
    driver.submit(commands.SyncGroup(sync, 5), "sync b")
    driver.advance_to(65_999)
    assert "sync b" in driver.asked
    driver.advance_to(66_000)
    assert dict(driver.answers)["sync b"].error_code == ErrorCode.REBALANCE_IN_PROGRESS


def test_a_new_member_is_held_for_five_minutes_at_most(driver: MachineDriver) -> None:
    """Its client may have gone without a trace, as nothing is read from a connection with a held request."""
    member_id = stable_group(driver)
    driver.submit(join_command(name="b", rebalance_timeout_ms=2**31 - 1), "b")
    heartbeat = Client("a", Random(1), member_id=member_id, generation=1)
    while driver.now_ms < 303_000:
        driver.ask(heartbeat.heartbeat_request())
        driver.advance_to(min(driver.now_ms + 5000, 303_000))
    assert dict(driver.answers)["b"].error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_group_ids_with_colons_do_not_mix(driver: MachineDriver) -> None:
    stable_group(driver, "a:b")
    stable_group(driver, "a")
    driver.advance_to(driver.now_ms + 30_000)
    assert [state_of(driver, group_id) for group_id in ("a:b", "a")] == ["Empty", "Empty"]


def test_protocol_named_twice(driver: MachineDriver) -> None:
    twice = [JoinGroupRequestProtocol(name="range", metadata=metadata) for metadata in (b"1", b"2")]
    driver.submit(join_command(protocols=twice), "a")
    driver.submit(join_command(name="b"), "b")
    driver.advance_to(6000)
    assert dict(driver.answers)["a"].protocol_name == "range"


def test_expiry_goes_in_steps(driver: MachineDriver) -> None:
    count = TOMBSTONES_A_STEP * 2 + 10
    driver.ask(commit_command("g", {("t", partition): 1 for partition in range(count)}))
    driver.now_ms = 8 * DAY_MS
    fired = driver.advance_to(8 * DAY_MS)
    sizes = [len(decision.records) for key, decision in fired if key == "offset-expiry:" and decision.records]
    assert sizes == [TOMBSTONES_A_STEP, TOMBSTONES_A_STEP, 11]
    assert driver.ask(commands.ListGroups()) == []


def test_looking_for_expired_offsets_goes_in_steps(driver: MachineDriver) -> None:
    """Nothing has expired but the last group's offset; the members of the shard are served between the steps."""
    half = {("t", partition): 1 for partition in range(OFFSETS_A_STEP // 2)}
    driver.wall_ahead_ms += 7 * DAY_MS
    for group_id in ("a", "b", "c", "d"):
        driver.ask(commit_command(group_id, half))
    driver.wall_ahead_ms -= 7 * DAY_MS
    driver.ask(commit_command("last", {("t", 0): 1}))
    driver.wall_ahead_ms += 7 * DAY_MS
    steps = [len(decision.records) for key, decision in driver.advance_to(600_000) if key == "offset-expiry:"]
    assert steps == [0, 0, 2]
    assert driver.timers["offset-expiry:"] == 1_200_000
    assert sorted(group.group_id for group in driver.ask(commands.ListGroups())) == ["a", "b", "c", "d"]


def test_offsets_of_subscribed_topics_do_not_expire(driver: MachineDriver) -> None:
    """The others do, even while the group is stable."""
    member_id = stable_group(driver)
    command = commit_command("g", {("t", 0): 1, ("u", 0): 1})
    command.request.member_id, command.request.generation_id_or_member_epoch = member_id, 1
    driver.ask(command)
    client = Client("a", Random(1), member_id=member_id, generation=1)
    driver.wall_ahead_ms += 8 * DAY_MS
    while driver.now_ms < 700_000:
        driver.ask(client.heartbeat_request())
        driver.advance_to(driver.now_ms + 5000)
    kept = driver.ask(commands.OffsetFetch(OffsetFetchRequestGroup(group_id="g", topics=None)))
    assert [topic.name for topic in kept.topics] == ["t"]


def test_a_jump_of_the_wall_clock_ends_no_session(driver: MachineDriver) -> None:
    stable_group(driver)
    driver.wall_ahead_ms += 365 * DAY_MS
    driver.advance_to(driver.now_ms + 9000)
    driver.wall_ahead_ms = 0
    assert state_of(driver) == "Stable"


def test_deleting_a_group_spares_its_pending_members(driver: MachineDriver) -> None:
    """The member id was handed out, then the group was deleted: the second JoinGroup must start over."""
    required = driver.ask(join_command(version=9))
    assert required.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert not driver.ask(commands.DeleteGroups(("g",)))[0].error_code
    again = driver.ask(join_command(version=9, member_id=required.member_id))
    assert again.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_offset_metadata_is_measured_in_utf_16() -> None:
    driver = MachineDriver(lambda: GroupShard(GroupSettings(offset_metadata_max_bytes=4), Random(1)))
    command = commit_command("g", {("t", 0): 1})
    partition = command.request.topics[0].partitions[0]
    codes = []
    for text in ("abcd", "abcde", "\U0001f600\U0001f600", "\U0001f600\U0001f600a", "éééé"):
        partition.committed_metadata = text
        codes.append(driver.ask(command).topics[0].partitions[0].error_code)
    large = ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert codes == [0, large, 0, large, 0]
