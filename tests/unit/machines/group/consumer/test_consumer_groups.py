"""Consumer groups in the shard, where a transcript would not show it: odd logs, settings, bad classic members."""

from random import Random
from typing import Any
from unittest.mock import Mock

import pytest
from machine_driver import Entry, MachineDriver

from barnabas.config.broker import BrokerConfig
from barnabas.errors import ErrorCode
from barnabas.machines.assignors.broker import assign_uniform
from barnabas.machines.controller.image import ClusterImage, PartitionImage, TopicImage
from barnabas.machines.coordinator import ApplyContext
from barnabas.machines.group import commands
from barnabas.machines.group.classic.group import ClassicGroup
from barnabas.machines.group.consumer import rebalance
from barnabas.machines.group.consumer.group import ConsumerGroup
from barnabas.machines.group.consumer.member import ConsumerMember
from barnabas.machines.group.consumer.settings import ConsumerGroupSettings
from barnabas.machines.group.consumer.topics import metadata_hash
from barnabas.machines.group.settings import GroupSettings
from barnabas.machines.group.shard import GroupShard
from barnabas.protocol.messages import consumer_group_records as messages
from barnabas.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.protocol.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from barnabas.protocol.messages.consumer_protocol import TopicPartition as Assigned
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from barnabas.protocol.versioned import encode_versioned

T = b"t" * 16


def image_of(count: int = 2, topic_id: bytes = T) -> ClusterImage:
    topic = TopicImage("t", topic_id, tuple(PartitionImage(number, (1,), (1,), 1) for number in range(count)))
    return ClusterImage(topics={"t": topic}, topic_names={topic_id: "t"})


@pytest.fixture
def driver() -> MachineDriver:
    random = Random(1)
    return MachineDriver(lambda: GroupShard(GroupSettings(), random), image_of())


def group_of(driver: MachineDriver) -> Any:
    return driver.machine.registry.get("g")  # type: ignore[attr-defined]


def beat(driver: MachineDriver, member_id: str, epoch: int, **fields: Any) -> Any:
    if epoch == 0:
        fields = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": ["t"], "topic_partitions": [], **fields}
    request = ConsumerGroupHeartbeatRequest(group_id="g", member_id=member_id, member_epoch=epoch, **fields)
    return driver.ask(commands.ConsumerGroupHeartbeat(request, 1, "client", "/host"))


def join(driver: MachineDriver, member_id: str, metadata: bytes, version: int = 3) -> commands.JoinGroup:
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=metadata)],
    )
    return commands.JoinGroup(request, version, "client", "/host")


def put(driver: MachineDriver, key: Any, value: Any) -> None:
    driver.log.append(Entry(key, value, ApplyContext(len(driver.log), 0)))


def test_a_large_group_does_not_get_a_target_per_join(driver: MachineDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    assigned: list[int] = []

    def assign(counts: Any, members: Any) -> Any:
        assigned.append(len(members))
        return assign_uniform(counts, members)

    monkeypatch.setitem(rebalance.BROKER_ASSIGNORS, "uniform", assign)
    count = rebalance.ASSIGN_AT_ONCE_MEMBERS
    for number in range(count + 50):
        response = beat(driver, f"m{number}", 0)
        assert response.error_code == ErrorCode.NONE and response.member_epoch <= count + 1
    assert assigned == list(range(1, count + 2)), "one per join while it is small"
    group = group_of(driver)
    assert group.state_name == "Assigning" and group.epoch == count + 50
    assert response.member_epoch == group.assignment_epoch == count + 1
    assert not response.assignment.topic_partitions and "m149" not in group.targets
    driver.advance_to(driver.now_ms + rebalance.assignment_interval_ms(count + 50))
    assert beat(driver, "m149", response.member_epoch).member_epoch == group.epoch
    assert assigned[count + 1 :] == [count + 50] and len(group.targets) == count + 50


def test_a_join_does_not_look_at_the_other_members(driver: MachineDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two targets: neither for the topics nor for the expressions of all."""
    for number in range(rebalance.ASSIGN_AT_ONCE_MEMBERS + 10):
        beat(driver, f"m{number}", 0)
    read = Mock(side_effect=lambda member: (member.subscribed_topic_names, member.subscribed_topic_regex))
    monkeypatch.setattr(ConsumerMember, "subscription", property(read))
    beat(driver, "one more", 0)
    assert read.call_count < 10
    beat(driver, "one more", -1)
    assert read.call_count < 10


def test_of_a_compacted_log_the_last_record_counts(driver: MachineDriver) -> None:
    """a's record that gave partition 0 up is gone; b's that took it stands before a's next one."""
    beat(driver, "a", 0)
    for member_id, epoch, numbers in (("a", 1, [0, 1]), ("b", 2, [0]), ("a", 2, [1])):
        put(
            driver,
            messages.ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id=member_id),
            messages.ConsumerGroupCurrentMemberAssignmentValue(
                member_epoch=epoch,
                previous_member_epoch=epoch,
                state=0,
                assigned_partitions=[messages.TopicPartitions(topic_id=T, partitions=numbers)],
                partitions_pending_revocation=[],
            ),
        )
    put(
        driver,
        messages.ConsumerGroupMetadataKey(group_id="g"),
        messages.ConsumerGroupMetadataValue(epoch=2, metadata_hash=0),
    )
    put(
        driver,
        messages.ConsumerGroupTargetAssignmentMetadataKey(group_id="g"),
        messages.ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=2),
    )
    driver.load()
    group = group_of(driver)
    group.check()
    assert group.is_held_by_another("a", T, 0) and not group.is_held_by_another("b", T, 0)


def test_the_old_partition_metadata_goes_when_the_group_changes(driver: MachineDriver) -> None:
    beat(driver, "a", 0)
    key = messages.ConsumerGroupPartitionMetadataKey(group_id="g")
    put(driver, key, messages.ConsumerGroupPartitionMetadataValue(topics=[]))
    driver.load()
    beat(driver, "b", 0)
    assert any(isinstance(entry, Entry) and entry.key == key and entry.value is None for entry in driver.log)
    assert not group_of(driver).has_partition_metadata


def test_tombstones_of_an_unknown_group_do_nothing(driver: MachineDriver) -> None:
    for key in (
        messages.ConsumerGroupMetadataKey(group_id="x"),
        messages.ConsumerGroupPartitionMetadataKey(group_id="x"),
        messages.ConsumerGroupMemberMetadataKey(group_id="x", member_id="m"),
        messages.ConsumerGroupTargetAssignmentMetadataKey(group_id="x"),
        messages.ConsumerGroupTargetAssignmentMemberKey(group_id="x", member_id="m"),
        messages.ConsumerGroupCurrentMemberAssignmentKey(group_id="x", member_id="m"),
        messages.ConsumerGroupRegularExpressionKey(group_id="x", regular_expression="r"),
    ):
        put(driver, key, None)
    driver.load()
    assert driver.machine.registry.get("x") is None  # type: ignore[attr-defined]


def test_the_end_of_an_assignment_releases_its_partitions(driver: MachineDriver) -> None:
    beat(driver, "a", 0)
    put(driver, messages.ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id="a"), None)
    driver.load()
    assert not group_of(driver).is_held_by_another("b", T, 0)


def test_a_topic_made_again_is_another_one(driver: MachineDriver) -> None:
    beat(driver, "a", 0)
    driver.show_image(image_of(2, b"u" * 16))
    response = beat(driver, "a", 1, topic_partitions=[])
    assert [each.topic_id for each in response.assignment.topic_partitions] == [b"u" * 16]


def test_a_replaced_timer_does_nothing(driver: MachineDriver) -> None:
    beat(driver, "a", 0)
    driver.now_ms = 10_000
    beat(driver, "a", 1)
    driver.now_ms = 45_000
    assert not driver.machine.expire("consumer-session:g:a", driver.now).records
    assert driver.machine.expire("consumer-session:g:a", driver.now._replace(monotonic_ms=55_000)).records


def test_an_unreadable_subscription_is_refused(driver: MachineDriver) -> None:
    beat(driver, "a", 0)
    assert driver.ask(join(driver, "", b"\0")).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_classic_group_with_unreadable_members_is_not_upgraded(driver: MachineDriver) -> None:
    driver.submit(join(driver, "", b"\0"), "join")
    driver.advance_to(3000)
    assert beat(driver, "a", 0).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert isinstance(group_of(driver), ClassicGroup)


def test_an_upgrade_responses_what_is_held_and_lets_nobody_share(driver: MachineDriver) -> None:
    """The leader gave partition 0 to both: the first keeps it. The second was waiting in JoinGroup meanwhile."""
    metadata = encode_versioned(ConsumerProtocolSubscription(topics=["t"]), 1)
    for token in ("one", "two"):
        driver.submit(join(driver, "", metadata), token)
    driver.advance_to(10_000)
    joined = {token: response.member_id for token, response in driver.answers}
    both = encode_versioned(
        ConsumerProtocolAssignment(assigned_partitions=[Assigned(topic="t", partitions=[0])], user_data=None), 1
    )
    given = [SyncGroupRequestAssignment(member_id=each, assignment=both) for each in joined.values()]
    for token, member_id in joined.items():
        assignments = given if token == "one" else []
        request = SyncGroupRequest(group_id="g", generation_id=1, member_id=member_id, assignments=assignments)
        driver.submit(commands.SyncGroup(request, 5), f"sync {token}")
    driver.submit(join(driver, joined["one"], metadata + b"\0"), "again")
    assert beat(driver, "new", 0).error_code == ErrorCode.NONE
    answers = dict(driver.answers)
    assert answers["again"].error_code == ErrorCode.REBALANCE_IN_PROGRESS
    group = group_of(driver)
    assert isinstance(group, ConsumerGroup)
    owners = [member_id for member_id, member in group.members.items() if 0 in member.assigned_partitions.get(T, ())]
    assert owners == [joined["one"]]


def test_an_empty_rack_is_no_rack(driver: MachineDriver) -> None:
    metadata = encode_versioned(ConsumerProtocolSubscription(topics=["t"], rack_id=""), 3)
    beat(driver, "a", 0)
    member_id = driver.ask(join(driver, "", metadata)).member_id
    assert group_of(driver).members[member_id].rack_id is None


def test_an_empty_classic_group_gives_way(driver: MachineDriver) -> None:
    metadata = encode_versioned(ConsumerProtocolSubscription(topics=["t"]), 1)
    assert driver.ask(join(driver, "", metadata, version=9)).error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert isinstance(group_of(driver), ClassicGroup)
    assert beat(driver, "a", 0).member_epoch == 1
    driver.load()
    assert isinstance(group_of(driver), ConsumerGroup)


def test_an_empty_consumer_group_gives_way(driver: MachineDriver) -> None:
    beat(driver, "a", 0)
    beat(driver, "a", -1)
    metadata = encode_versioned(ConsumerProtocolSubscription(topics=["t"]), 1)
    assert driver.ask(join(driver, "", metadata, version=9)).error_code == ErrorCode.MEMBER_ID_REQUIRED
    driver.load()
    assert isinstance(group_of(driver), ClassicGroup)


def test_the_hash_tells_topics_apart() -> None:
    hashes = [metadata_hash(image_of(count, topic_id).topics) for count in (2, 3) for topic_id in (T, b"u" * 16)]
    assert len({0, *hashes}) == 5
    assert metadata_hash({}) == 0
    assert metadata_hash(image_of(2).topics) == hashes[0]


@pytest.mark.parametrize(
    ("policy", "upgrade", "downgrade"),
    [("disabled", False, False), ("UPGRADE", True, False), ("downgrade", False, True), ("Bidirectional", True, True)],
)
def test_settings_of_the_broker(policy: str, upgrade: bool, downgrade: bool) -> None:
    range_class = "org.apache.kafka.coordinator.group.assignor.RangeAssignor"
    config = BrokerConfig(group_consumer_migration_policy=policy, group_consumer_assignors=(range_class, "mine"))
    settings = ConsumerGroupSettings.of(config)
    assert (settings.upgrade_enabled, settings.downgrade_enabled) == (upgrade, downgrade)
    assert settings.assignors == ("range",)
