"""The APIs of groups over a whole broker: what the handlers add to the machine, in every version they serve."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from handler_calls import HandlerCalls

from barnabas.errors import ErrorCode
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages import offset_commit as commit
from barnabas.protocol.messages import offset_delete as delete
from barnabas.protocol.messages import offset_fetch as fetch
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from barnabas.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.protocol.messages.delete_groups import DeleteGroupsRequest
from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from barnabas.protocol.messages.list_groups import ListGroupsRequest
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from barnabas.server.coordinator_shard import ShardState
from barnabas.server.handlers.api_versions import handle_api_versions

GROUP_OPERATIONS = 0b1101_0100_1000
Scenario = Callable[[HandlerCalls], Awaitable[None]]


def run(directory: Path, scenario: Scenario, **settings: str) -> None:
    async def main() -> None:
        async with HandlerCalls(directory, **settings) as calls:
            await calls.make_topic("orders")
            await find(calls)
            await scenario(calls)

    asyncio.run(main())


async def find(calls: HandlerCalls, version: int = 6, key_type: int = 0, *keys: str) -> Any:
    request = FindCoordinatorRequest(key=(keys or ("g",))[0], key_type=key_type, coordinator_keys=list(keys or ("g",)))
    if version < 4:
        request.coordinator_keys = []
    else:
        request.key = ""
    if version == 0:
        request.key_type = 0
    return await calls.call(request, version)


def commit_request(*topics: tuple[str, list[int]], group: str = "g", metadata: str = "") -> Any:
    return commit.OffsetCommitRequest(
        group_id=group,
        member_id="",
        topics=[
            commit.OffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    commit.OffsetCommitRequestPartition(
                        partition_index=index, committed_offset=index + 10, committed_metadata=metadata
                    )
                    for index in partitions
                ],
            )
            for topic, partitions in topics
        ],
    )


def committed(response: commit.OffsetCommitResponse) -> dict[tuple[str, int], ErrorCode]:
    return {
        (topic.name, each.partition_index): ErrorCode(each.error_code)
        for topic in response.topics
        for each in topic.partitions
    }


def fetch_request(version: int, topics: list[tuple[str, list[int]]] | None, *groups: str) -> Any:
    groups = groups or ("g",)
    if version < 8:
        old = [fetch.OffsetFetchRequestTopic(name=name, partition_indexes=list(of)) for name, of in topics or ()]
        return fetch.OffsetFetchRequest(group_id=groups[0], topics=None if topics is None else old)
    asked = None
    if topics is not None:
        asked = [fetch.OffsetFetchRequestTopics(name=name, partition_indexes=of) for name, of in topics]
    return fetch.OffsetFetchRequest(
        groups=[fetch.OffsetFetchRequestGroup(group_id=group, topics=asked) for group in groups]
    )


def offsets_in(topics: Any) -> dict[tuple[str, int], tuple[int, int]]:
    return {
        (topic.name, each.partition_index): (each.committed_offset, each.error_code)
        for topic in topics
        for each in topic.partitions
    }


def test_find_coordinator_makes_the_topic_and_answers(tmp_path: Path) -> None:
    async def scenario(calls: HandlerCalls) -> None:
        assert len(calls.broker.cluster.image.topics["__consumer_offsets"].partitions) == 3
        port = int(calls.broker.address.rpartition(":")[2])
        for version in calls.versions(FindCoordinatorRequest):
            for key_type in (0, 1) if version else (0,):
                answer = await find(calls, version, key_type, "a", "b")
                found = answer.coordinators if version >= 4 else [answer]
                assert [(each.error_code, each.node_id, each.port) for each in found] == [(0, 1, port)] * len(found)
                assert len(found) == (2 if version >= 4 else 1)
        assert (await find(calls, 6, 2)).coordinators[0].error_code == ErrorCode.INVALID_REQUEST
        assert (await find(calls, 3, 2)).error_code == ErrorCode.INVALID_REQUEST
        assert calls.broker.cluster.image.topic_config("__transaction_state")["min.insync.replicas"] == "2"

    run(tmp_path, scenario)


def test_a_topic_that_cannot_be_made_is_no_coordinator(tmp_path: Path) -> None:
    async def main() -> None:
        async with HandlerCalls(tmp_path) as calls:
            calls.broker.auto_topic_creation._create_topics = refuse
            assert (await find(calls)).coordinators[0].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
            assert (await find(calls, 0)).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE

    async def refuse(topics: Any) -> Any:
        return ()

    asyncio.run(main())


def test_offsets_are_stored_and_read_in_every_version(tmp_path: Path) -> None:
    async def scenario(calls: HandlerCalls) -> None:
        name = "orders"
        for version in calls.versions(commit.OffsetCommitRequest):
            answer = committed(await calls.call(commit_request((name, [0, 1]), group=f"g{version}"), version))
            assert answer == {(name, 0): ErrorCode.NONE, (name, 1): ErrorCode.NONE}
        for version in calls.versions(fetch.OffsetFetchRequest):
            expected = {(name, 0): (10, 0), (name, 1): (11, 0)}
            for topics in ([(name, [0, 1])], None) if version > 1 else ([(name, [0, 1])],):
                answer = await calls.call(fetch_request(version, topics, "g5", "g9"), version)
                if version < 8:
                    assert offsets_in(answer.topics) == expected
                else:
                    assert [group.group_id for group in answer.groups] == ["g5", "g9"]
                    assert [offsets_in(group.topics) for group in answer.groups] == [expected, expected]
            missing = await calls.call(fetch_request(version, [(name, [0])], "nobody"), version)
            topics = missing.topics if version < 8 else missing.groups[0].topics
            assert offsets_in(topics) == {(name, 0): (-1, 0)}

    run(tmp_path, scenario)


def test_what_does_not_exist_is_refused_and_the_rest_is_stored(tmp_path: Path) -> None:
    async def scenario(calls: HandlerCalls) -> None:
        unknown, fine = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NONE
        answer = await calls.call(commit_request(("orders", [0, 7, -1]), ("none", [0])), 9)
        assert committed(answer) == {
            ("orders", 0): fine,
            ("orders", 7): unknown,
            ("orders", -1): unknown,
            ("none", 0): unknown,
        }
        assert committed(await calls.call(commit_request(("none", [3])), 9)) == {("none", 3): unknown}
        answer = await calls.call(fetch_request(9, [("orders", [0, 1])]), 9)
        assert offsets_in(answer.groups[0].topics) == {("orders", 0): (10, 0), ("orders", 1): (-1, 0)}

    run(tmp_path, scenario)


def test_offset_delete(tmp_path: Path) -> None:
    async def scenario(calls: HandlerCalls) -> None:
        await calls.call(commit_request(("orders", [0, 1])), 9)
        partitions = [delete.OffsetDeleteRequestPartition(partition_index=index) for index in (0, 9)]
        topics = [
            delete.OffsetDeleteRequestTopic(name="orders", partitions=partitions),
            delete.OffsetDeleteRequestTopic(name="none", partitions=partitions[:1]),
        ]
        answer = await calls.call(delete.OffsetDeleteRequest(group_id="g", topics=topics))
        assert answer.error_code == 0
        assert {
            (topic.name, each.partition_index, each.error_code) for topic in answer.topics for each in topic.partitions
        } == {
            ("orders", 0, 0),
            ("orders", 9, 3),
            ("none", 0, 3),
        }
        answer = await calls.call(fetch_request(8, None), 8)
        assert offsets_in(answer.groups[0].topics) == {("orders", 1): (11, 0)}
        answer = await calls.call(delete.OffsetDeleteRequest(group_id="nobody", topics=topics))
        assert (answer.error_code, answer.topics) == (ErrorCode.GROUP_ID_NOT_FOUND, [])

    run(tmp_path, scenario)


def join_request(group: str, member_id: str = "", **fields: Any) -> JoinGroupRequest:
    protocols = [JoinGroupRequestProtocol(name="range", metadata=b"me")]
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=10_000,
        member_id=member_id,
        protocol_type="consumer",
        protocols=protocols,
        **fields,
    )


async def join(calls: HandlerCalls, group: str, version: int) -> Any:
    """Also through MEMBER_ID_REQUIRED, which newer clients meet first."""
    answer = await calls.call(join_request(group), version)
    if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
        assert version >= 4
        answer = await calls.call(join_request(group, answer.member_id), version)
    return answer


async def sync(calls: HandlerCalls, group: str, joined: Any, assignment: bytes) -> ErrorCode:
    assignments = [SyncGroupRequestAssignment(member_id=joined.member_id, assignment=assignment)]
    request = SyncGroupRequest(
        group_id=group, generation_id=joined.generation_id, member_id=joined.member_id, assignments=assignments
    )
    return ErrorCode((await calls.call(request, 3)).error_code)


def test_an_assignment_too_large_for_the_log_is_its_groups_own_trouble(tmp_path: Path) -> None:
    """It joins again, as Kafka has it; with a smaller one all is well. Nobody else notices."""

    async def heartbeat(calls: HandlerCalls, group: str, joined: Any) -> int:
        request = HeartbeatRequest(group_id=group, generation_id=joined.generation_id, member_id=joined.member_id)
        error: int = (await calls.call(request, 3)).error_code
        return error

    async def scenario(calls: HandlerCalls) -> None:
        calm, wide = [
            await calls.call(join_request(group, rebalance_timeout_ms=60_000), 3) for group in ("calm", "wide")
        ]
        assert await sync(calls, "calm", calm, b"small") is ErrorCode.NONE
        (shard,) = calls.broker.groups.shards()
        before = shard.machine
        assert await sync(calls, "wide", wide, bytes(5000)) is ErrorCode.UNKNOWN_SERVER_ERROR
        assert await heartbeat(calls, "wide", wide) == ErrorCode.REBALANCE_IN_PROGRESS
        again = await calls.call(join_request("wide", wide.member_id, rebalance_timeout_ms=60_000), 3)
        assert again.generation_id == wide.generation_id + 1
        assert await sync(calls, "wide", again, b"small") is ErrorCode.NONE
        assert await heartbeat(calls, "wide", again) == ErrorCode.NONE
        assert await heartbeat(calls, "calm", calm) == ErrorCode.NONE
        assert shard.machine is before and shard.state is ShardState.ACTIVE
        before.check()

    run(
        tmp_path,
        scenario,
        message_max_bytes="1000",
        offsets_topic_num_partitions="1",
        group_initial_rebalance_delay_ms="0",
    )


def test_a_subscription_too_large_for_the_log_is_refused_by_itself(tmp_path: Path) -> None:
    many = [f"topic-{number}" for number in range(200)]

    async def beat(calls: HandlerCalls, group: str, epoch: int, topics: list[str] | None) -> Any:
        request = ConsumerGroupHeartbeatRequest(
            group_id=group,
            member_id=f"member-of-{group}",
            member_epoch=epoch,
            rebalance_timeout_ms=60_000 if epoch == 0 else -1,
            subscribed_topic_names=topics,
            topic_partitions=[] if epoch == 0 else None,
        )
        return await calls.call(request, 1)

    async def scenario(calls: HandlerCalls) -> None:
        calm = await beat(calls, "calm", 0, ["orders"])
        assert calm.error_code == 0 and calm.member_epoch == 1
        (shard,) = calls.broker.groups.shards()
        before = shard.machine
        assert (await beat(calls, "wide", 0, many)).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        assert [group.group_id for group in (await calls.call(ListGroupsRequest(), 5)).groups] == ["calm"]
        assert (await beat(calls, "wide", 0, ["orders"])).member_epoch == 1
        assert (await beat(calls, "wide", 1, many)).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        for group in ("wide", "calm"):
            answer = await beat(calls, group, 1, None)
            assert (answer.error_code, answer.member_epoch) == (0, 1)
        assert shard.machine is before and shard.state is ShardState.ACTIVE
        before.check()

    run(tmp_path, scenario, message_max_bytes="1000", offsets_topic_num_partitions="1")


def test_life_of_a_classic_group_in_every_version(tmp_path: Path) -> None:
    async def scenario(calls: HandlerCalls) -> None:
        for version in calls.versions(JoinGroupRequest):
            group = f"group-{version}"
            joined = await join(calls, group, version)
            assert (joined.error_code, joined.generation_id, joined.protocol_name) == (0, 1, "range")
            assert joined.leader == joined.member_id and joined.member_id.startswith("tester-")
            member_id = joined.member_id
            assignment = SyncGroupRequestAssignment(member_id=member_id, assignment=b"all")
            sync = SyncGroupRequest(group_id=group, generation_id=1, member_id=member_id, assignments=[assignment])
            sync_version = min(version, 4)
            assert (await calls.call(sync, sync_version)).assignment == b"all"
            beat = HeartbeatRequest(group_id=group, generation_id=1, member_id=member_id)
            assert (await calls.call(beat, min(version, 4))).error_code == 0
            beat.generation_id = 0
            assert (await calls.call(beat, min(version, 4))).error_code == ErrorCode.ILLEGAL_GENERATION
            described = (await calls.call(DescribeGroupsRequest(groups=[group]), min(version, 6))).groups[0]
            assert (described.group_state, described.members[0].client_host) == ("Stable", "/10.0.0.9")
            leave_version = min(version, 5)
            leave = LeaveGroupRequest(group_id=group)
            if leave_version < 3:
                leave.member_id = member_id
            else:
                leave.members = [MemberIdentity(member_id=member_id)]
            assert (await calls.call(leave, leave_version)).error_code == 0

    run(tmp_path, scenario)


def test_errors_of_joining_can_be_read_in_every_version(tmp_path: Path) -> None:
    async def scenario(calls: HandlerCalls) -> None:
        for version in calls.versions(JoinGroupRequest):
            answer = await calls.call(join_request(""), version)
            assert answer.error_code == ErrorCode.INVALID_GROUP_ID
            assert answer.protocol_name == (None if version >= 7 else "")

    run(tmp_path, scenario)


def test_lists_descriptions_and_deletion_go_over_all_shards(tmp_path: Path) -> None:
    async def scenario(calls: HandlerCalls) -> None:
        names = [f"g{number}" for number in range(10)]
        assert len({calls.broker.groups.partition_for(name) for name in names}) == 3
        for name in names:
            await calls.call(commit_request(("orders", [0]), group=name), 9)
        for version in calls.versions(ListGroupsRequest):
            listed = await calls.call(ListGroupsRequest(), version)
            assert sorted(group.group_id for group in listed.groups) == names
        assert (await calls.call(ListGroupsRequest(states_filter=["Stable"]), 4)).groups == []
        asked = DescribeGroupsRequest(groups=["g3", "g1", "nobody", "g3"], include_authorized_operations=True)
        described = (await calls.call(asked)).groups
        assert [group.group_id for group in described] == ["g3", "g1", "nobody", "g3"]
        assert [group.error_code for group in described] == [0, 0, ErrorCode.GROUP_ID_NOT_FOUND, 0]
        assert described[0].authorized_operations == GROUP_OPERATIONS
        for version in calls.versions(DeleteGroupsRequest):
            wanted = DeleteGroupsRequest(groups_names=[names[version], "nobody"])
            results = (await calls.call(wanted, version)).results
            assert [each.error_code for each in results] == [0, ErrorCode.GROUP_ID_NOT_FOUND]
        assert len((await calls.call(ListGroupsRequest())).groups) == 7

    run(tmp_path, scenario)


def test_a_coordinator_that_loads(tmp_path: Path) -> None:
    async def scenario(calls: HandlerCalls) -> None:
        for shard in calls.broker.groups.shards():
            shard.state = ShardState.LOADING
        loading = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        beat = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
        assert (await calls.call(beat)).error_code == ErrorCode.NONE
        assert (await calls.call(join_request("g"))).error_code == loading
        assert (await calls.call(ListGroupsRequest())).error_code == loading
        assert committed(await calls.call(commit_request(("orders", [0])), 9)) == {("orders", 0): loading}
        for version in calls.versions(fetch.OffsetFetchRequest):
            answer = await calls.call(fetch_request(version, [("orders", [0])]), version)
            if version == 1:
                assert offsets_in(answer.topics) == {("orders", 0): (-1, loading)}
            else:
                assert (answer.error_code if version < 8 else answer.groups[0].error_code) == loading
        assert (await calls.call(DescribeGroupsRequest(groups=["g"]))).groups[0].error_code == loading
        assert (await calls.call(ConsumerGroupDescribeRequest(group_ids=["g"]))).groups[0].error_code == loading
        assert (await calls.call(DeleteGroupsRequest(groups_names=["g"]))).results[0].error_code == loading

    run(tmp_path, scenario)


def test_a_commit_larger_than_a_batch_may_be_fails_alone(tmp_path: Path) -> None:
    async def scenario(calls: HandlerCalls) -> None:
        """All groups share one shard, and one of them has a member that waits for others to join."""
        await calls.make_topic("wide", 300)
        waiting = calls.start(join_request("other"), 3)
        request = commit_request(("wide", list(range(300))), metadata="x" * 4000)
        refused = set(committed(await calls.call(request, 9)).values())
        assert refused == {ErrorCode.INVALID_COMMIT_OFFSET_SIZE}
        assert committed(await calls.call(commit_request(("orders", [0])), 9)) == {("orders", 0): ErrorCode.NONE}
        assert offsets_in((await calls.call(fetch_request(7, [("wide", [0])]), 7)).topics) == {("wide", 0): (-1, 0)}
        assert (await waiting).error_code == ErrorCode.NONE

    run(tmp_path, scenario, offsets_topic_num_partitions="1", group_initial_rebalance_delay_ms="500")


def test_consumer_groups(tmp_path: Path) -> None:
    async def scenario(calls: HandlerCalls) -> None:
        beat = ConsumerGroupHeartbeatRequest(
            group_id="g",
            member_id="AAAAAAAAAAAAAAAAAAAAAA",
            member_epoch=0,
            rebalance_timeout_ms=1000,
            subscribed_topic_names=["orders"],
            topic_partitions=[],
        )
        answer = await calls.call(beat)
        assert (answer.error_code, answer.member_epoch) == (0, 1)
        assert [each.partitions for each in answer.assignment.topic_partitions] == [[0, 1]]
        described = await calls.call(
            ConsumerGroupDescribeRequest(group_ids=["g", "nobody"], include_authorized_operations=True)
        )
        assert [group.error_code for group in described.groups] == [0, ErrorCode.GROUP_ID_NOT_FOUND]
        assert described.groups[0].members[0].client_host == "/10.0.0.9"
        assert described.groups[0].authorized_operations == GROUP_OPERATIONS

    run(tmp_path, scenario)


def test_the_connection_rests_once_a_member_has_nothing_new_to_say(tmp_path: Path) -> None:
    async def scenario(calls: HandlerCalls) -> None:
        said: dict[str, Any] = {"subscribed_topic_names": ["orders"], "topic_partitions": []}
        for epoch, new, rested in (
            (0, said, 0),
            (1, said, 0),
            (1, {}, 1),
            (1, {"topic_partitions": []}, 1),
            (1, {}, 2),
        ):
            beat = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=epoch, **new)
            beat.rebalance_timeout_ms = 1000 if new is said else -1
            assert (await calls.call(beat)).error_code == 0
            assert calls.rest.call_count == rested, (epoch, new)

    run(tmp_path, scenario)


def test_the_newer_protocol_can_be_switched_off(tmp_path: Path) -> None:
    async def scenario(calls: HandlerCalls) -> None:
        beat = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=0)
        assert (await calls.call(beat)).error_code == ErrorCode.UNSUPPORTED_VERSION
        described = await calls.call(ConsumerGroupDescribeRequest(group_ids=["g"]))
        assert described.groups[0].error_code == ErrorCode.UNSUPPORTED_VERSION

    run(tmp_path, scenario, group_coordinator_rebalance_protocols="classic")


def test_stopping_answers_whoever_waits(tmp_path: Path) -> None:
    async def main() -> Any:
        async with HandlerCalls(tmp_path, group_initial_rebalance_delay_ms="60000") as calls:
            await find(calls)
            waiting = calls.start(join_request("g"), 3)
        return await waiting

    assert asyncio.run(main()).error_code == ErrorCode.NOT_COORDINATOR


@pytest.mark.parametrize("version", range(5))
def test_features_switch_the_newer_protocols_on(tmp_path: Path, version: int) -> None:
    async def scenario(calls: HandlerCalls) -> None:
        request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
        answer = handle_api_versions(calls.context(ApiKey.API_VERSIONS, version), request)
        finalized = {each.name: (each.min_version_level, each.max_version_level) for each in answer.finalized_features}
        supported = {each.name: (each.min_version, each.max_version) for each in answer.supported_features}
        features = {"group.version": (1, 1), "transaction.version": (2, 2), "metadata.version": (27, 27)}
        assert finalized == (features if version >= 3 else {})
        assert answer.finalized_features_epoch == (0 if version >= 3 else -1)
        fixed = {"metadata.version": (27, 27)}
        optional = {"group.version": (0, 1), "transaction.version": (0, 2)}
        assert supported == {**(optional if version >= 4 else {}), **(fixed if version >= 3 else {})}

    run(tmp_path, scenario)
