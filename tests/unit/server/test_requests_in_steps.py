"""Requests with very many parts are worked on in steps, and their responses are the same as in one go."""

import asyncio
import gc
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from handler_calls import HandlerCalls
from step_clock import StepClock

from barnabas.clock import ManualClock
from barnabas.errors import ErrorCode, ProtocolError
from barnabas.net.deferred import Deferred, then
from barnabas.protocol.messages import add_partitions_to_txn as adding
from barnabas.protocol.messages import describe_log_dirs as dirs
from barnabas.protocol.messages import fetch as fetching
from barnabas.protocol.messages import offset_commit as committing
from barnabas.protocol.messages import offset_delete as deleting
from barnabas.protocol.messages import offset_fetch as offsets
from barnabas.protocol.messages import txn_offset_commit as txn_committing
from barnabas.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas.protocol.messages.delete_groups import DeleteGroupsRequest
from barnabas.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.list_groups import ListedGroup, ListGroupsRequest
from barnabas.protocol.messages.list_transactions import ListTransactionsRequest
from barnabas.server import group_coordinator, steps
from barnabas.server.coordinator_shard import Uncommitted
from barnabas.server.slices import SLICE_MS, Slices

GROUP_RESOURCE = 32


def offset_commit() -> tuple[Any, int]:
    def topic(name: str, *numbers: int) -> committing.OffsetCommitRequestTopic:
        partitions = [
            committing.OffsetCommitRequestPartition(partition_index=number, committed_offset=number + 7)
            for number in numbers
        ]
        return committing.OffsetCommitRequestTopic(name=name, partitions=partitions)

    topics = [topic("t", 0, 1, 2, 3, 4), topic("none", 0), topic("u", 1, 9, 0)]
    return committing.OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=-1, topics=topics), 8


def offset_fetch() -> tuple[Any, int]:
    topics = [
        offsets.OffsetFetchRequestTopics(name="t", partition_indexes=[0, 1, 2, 3, 4, 5]),
        offsets.OffsetFetchRequestTopics(name="u", partition_indexes=[]),
        offsets.OffsetFetchRequestTopics(name="none", partition_indexes=[1]),
    ]
    groups = [offsets.OffsetFetchRequestGroup(group_id=each, topics=topics) for each in ("g", "h")]
    return offsets.OffsetFetchRequest(groups=[*groups, offsets.OffsetFetchRequestGroup(group_id="g", topics=None)]), 8


def offset_fetch_of_one_group() -> tuple[Any, int]:
    topic = offsets.OffsetFetchRequestTopic(name="t", partition_indexes=[0, 1, 2, 3, 4, 5])
    return offsets.OffsetFetchRequest(group_id="g", topics=[topic]), 7


def offset_fetch_of_all_offsets(version: int = 8) -> tuple[Any, int]:
    if version < 8:
        return offsets.OffsetFetchRequest(group_id="g", topics=None), version
    return offsets.OffsetFetchRequest(groups=[offsets.OffsetFetchRequestGroup(group_id="g", topics=None)]), version


def offset_fetch_of_all_offsets_of_one_group() -> tuple[Any, int]:
    return offset_fetch_of_all_offsets(7)


def fetch() -> tuple[Any, int]:
    partitions = [fetching.FetchPartition(partition=number, partition_max_bytes=100) for number in (0, 1, 2, 3, 9)]
    topic = fetching.FetchTopic(topic="t", partitions=partitions)
    return fetching.FetchRequest(max_wait_ms=0, max_bytes=1000, session_epoch=-1, topics=[topic]), 12


def add_partitions() -> tuple[Any, int]:
    topics = [
        adding.AddPartitionsToTxnTopic(name="t", partitions=[0, 1, 9]),
        adding.AddPartitionsToTxnTopic(name="none", partitions=[0]),
    ]
    return adding.AddPartitionsToTxnRequest(v3_and_below_transactional_id="x", v3_and_below_topics=topics), 3


def txn_offset_commit() -> tuple[Any, int]:
    def topic(name: str, *numbers: int) -> txn_committing.TxnOffsetCommitRequestTopic:
        partitions = [
            txn_committing.TxnOffsetCommitRequestPartition(partition_index=number, committed_offset=number + 7)
            for number in numbers
        ]
        return txn_committing.TxnOffsetCommitRequestTopic(name=name, partitions=partitions)

    topics = [topic("t", 0, 1, 2, 3, 4), topic("none", 0), topic("u", 1, 9, 0)]
    return txn_committing.TxnOffsetCommitRequest(transactional_id="x", group_id="g", topics=topics), 3


def list_groups() -> tuple[Any, int]:
    return ListGroupsRequest(), 4


def list_transactions() -> tuple[Any, int]:
    return ListTransactionsRequest(), 1


def describe_groups() -> tuple[Any, int]:
    return DescribeGroupsRequest(groups=["g", "none", "g", "h", "none"]), 5


def delete_groups() -> tuple[Any, int]:
    return DeleteGroupsRequest(groups_names=["none", "nowhere", "none", "nothing"]), 2


def describe_log_dirs() -> tuple[Any, int]:
    topics = [dirs.DescribableLogDirTopic(topic=name, partitions=[0, 1, 3, 4, 7]) for name in ("t", "none", "u")]
    return dirs.DescribeLogDirsRequest(topics=topics), 3


def create_topics() -> tuple[Any, int]:
    topics = [CreatableTopic(name=f"new-{number}", num_partitions=1, replication_factor=1) for number in range(9)]
    return CreateTopicsRequest(topics=topics, validate_only=True, timeout_ms=1000), 6


def in_any_order(response: Any) -> Any:
    """Partitions that do not exist are at the end of the response, or of their step."""
    if not isinstance(response, committing.OffsetCommitResponse | txn_committing.TxnOffsetCommitResponse):
        return response
    return sorted(
        (topic.name, each.partition_index, each.error_code) for topic in response.topics for each in topic.partitions
    )


@pytest.mark.parametrize(
    "make",
    [
        offset_commit,
        offset_fetch,
        offset_fetch_of_one_group,
        offset_fetch_of_all_offsets,
        offset_fetch_of_all_offsets_of_one_group,
        fetch,
        add_partitions,
        txn_offset_commit,
        list_groups,
        list_transactions,
        describe_groups,
        delete_groups,
        describe_log_dirs,
        create_topics,
    ],
    ids=lambda make: make.__name__,
)
def test_in_steps_the_response_is_the_same(make: Any, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with HandlerCalls(tmp_path) as calls:
            calls.broker.dispatcher.slices = Slices(ManualClock())  # no time passes: all is one slice
            await calls.make_topic("t", 5)
            await calls.make_topic("u", 2)
            for key_type in (0, 1):
                await calls.call(FindCoordinatorRequest(key_type=key_type, coordinator_keys=["g"]), 4)
            await calls.call(*offset_commit())
            request, version = make()
            at_once = await calls.call(request, version)
            assert not calls.pauses
            calls.broker.dispatcher.slices = Slices(StepClock())
            with (
                patch.object(steps, "PARTITIONS_PER_STEP", 2),
                patch("barnabas.server.handlers.add_partitions_to_txn.PARTITIONS_PER_STEP", 2),
                patch("barnabas.server.handlers.offset_fetch.PARTITIONS_PER_STEP", 2),
                patch.object(group_coordinator, "GROUPS_PER_STEP", 1),
            ):
                in_steps = await calls.call(make()[0], version)
            rounds = len(calls.pauses) // 2
            assert rounds and calls.pauses == ["pause", "resume"] * rounds, "nothing is read between the slices"
            assert in_any_order(in_steps) == in_any_order(at_once)

    asyncio.run(scenario())


@pytest.mark.parametrize("make", [offset_fetch_of_all_offsets, offset_fetch_of_all_offsets_of_one_group, list_groups])
@pytest.mark.parametrize("uncommitted", [False, True])
def test_a_shard_never_gives_more_rows_than_a_step_has(make: Any, uncommitted: bool, tmp_path: Path) -> None:
    """Also if what the shard has written waits for its replicas, so that it answers later."""
    rows: list[int] = []

    def count(response: Any) -> Any:
        if isinstance(response, offsets.OffsetFetchResponseGroup):
            rows.append(sum(len(topic.partitions) for topic in response.topics))
        elif isinstance(response, list) and response and isinstance(response[0], ListedGroup):
            rows.append(len(response))
        return response

    async def scenario() -> None:
        async with HandlerCalls(tmp_path, offsets_topic_num_partitions="1") as calls:
            await calls.make_topic("t", 5)
            await calls.make_topic("u", 2)
            await calls.call(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4)
            for group in "ghijk":
                request, version = offset_commit()
                request.group_id = group
                await calls.call(request, version)
            at_once = await calls.call(*make())
            calls.broker.dispatcher.slices = Slices(StepClock())
            (shard,) = calls.broker.groups.shards()
            if uncommitted:
                shard._uncommitted.append(Uncommitted(1 << 40, (), ()))
            submit = shard.submit
            with (
                patch.object(steps, "PARTITIONS_PER_STEP", 3),
                patch("barnabas.server.handlers.list_groups.GROUPS_PER_STEP", 3),
                patch.object(shard, "submit", lambda *arguments: then(submit(*arguments), count)),
            ):
                response = asyncio.ensure_future(calls.call(*make()))
                while not response.done():
                    shard._on_committed(1 << 40, ErrorCode.NONE)
                    await asyncio.sleep(0)
            assert await response == at_once
            assert max(rows) <= 3 and sum(rows) >= 5

    asyncio.run(scenario())


def test_an_offset_deleted_between_two_steps_is_left_out(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with HandlerCalls(tmp_path, offsets_topic_num_partitions="1") as calls:
            calls.broker.dispatcher.slices = Slices(ManualClock())
            await calls.make_topic("t", 5)
            await calls.make_topic("u", 2)
            await calls.call(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4)
            await calls.call(*offset_commit())
            calls.broker.dispatcher.slices = Slices(StepClock())
            with patch.object(steps, "PARTITIONS_PER_STEP", 3):
                response = calls.start(*offset_fetch_of_all_offsets())
                assert isinstance(response, Deferred) and not response.done
                gone = deleting.OffsetDeleteRequestTopic(
                    name="u", partitions=[deleting.OffsetDeleteRequestPartition(partition_index=n) for n in (0, 1)]
                )
                await calls.call(deleting.OffsetDeleteRequest(group_id="g", topics=[gone]), 0)
                (group,) = (await response).groups
            assert [topic.name for topic in group.topics] == ["t"] and len(group.topics[0].partitions) == 5

    asyncio.run(scenario())


def test_offsets_in_steps_keep_all_that_the_request_says(tmp_path: Path) -> None:
    """The retention time of old versions too: whatever the shard makes of it must not depend on the size."""
    seen: list[Any] = []

    async def scenario() -> None:
        async with HandlerCalls(tmp_path, offsets_topic_num_partitions="1") as calls:
            await calls.make_topic("t", 5)
            await calls.make_topic("u", 2)
            await calls.call(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4)
            (shard,) = calls.broker.groups.shards()
            submit = shard.submit

            def note(command: Any, fail: Any) -> Any:
                request = command.request
                seen.append((request.retention_time_ms, request.member_id, request.generation_id_or_member_epoch))
                return submit(command, fail)

            request, _ = offset_commit()
            request.retention_time_ms, request.member_id = 12_345, "m"
            request.generation_id_or_member_epoch = 4
            with patch.object(steps, "PARTITIONS_PER_STEP", 2), patch.object(shard, "submit", note):
                await calls.call(request, 4)
            assert len(seen) > 1 and set(seen) == {(12_345, "m", 4)}

    asyncio.run(scenario())


def test_settings_of_very_many_groups_are_refused_before_they_take_memory(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with HandlerCalls(tmp_path, socket_request_max_bytes="9000") as calls:
            resources = [
                DescribeConfigsResource(resource_type=GROUP_RESOURCE, resource_name=f"g{number}")
                for number in range(1000)
            ]
            limited = patch("barnabas.server.request.RESPONSE_MAX_BYTES", 10_000)
            with limited, pytest.raises(ProtocolError, match="more than 10000 bytes"):
                response = calls.start(DescribeConfigsRequest(resources=resources))
                assert isinstance(response, Deferred)
                await response

    asyncio.run(scenario())


def test_no_full_collection_while_long_work_is_unfinished() -> None:
    async def scenario() -> None:
        before = gc.get_threshold()
        slices = Slices(StepClock())

        def work() -> Any:
            for _ in range(SLICE_MS * 3):
                yield

        first, second = slices.run(work()), slices.run(work())
        assert isinstance(first, Deferred) and isinstance(second, Deferred)
        assert gc.get_threshold()[:2] == before[:2] and gc.get_threshold()[2] > 1_000_000
        second.abandon()
        await first
        for _ in range(5):
            await asyncio.sleep(0)
        assert not len(slices)
        assert gc.get_threshold() == before

    asyncio.run(scenario())
