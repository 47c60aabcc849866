"""Which node is asked, what is tried again, and what is said when the time is over."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest
from fake_cluster import FakeCluster, lost

from barnabas.client.admin import AdminError
from barnabas.client.admin.core import AdminCore
from barnabas.client.admin.types import ConfigResource, NewTopic, OffsetSpec
from barnabas.client.cluster_client import CoordinatorKind
from barnabas.client.errors import ClientTimeoutError, UnknownTopicError, UnreachableError, UnsupportedVersionError
from barnabas.client.node_connections import coordinator_id
from barnabas.client.options import AdminOptions
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol import ApiKey
from barnabas.protocol.messages import describe_topic_partitions as pages
from barnabas.protocol.messages.create_topics import CreatableTopicResult, CreateTopicsRequest, CreateTopicsResponse
from barnabas.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsResponse
from barnabas.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)

T = TypeVar("T")


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(coroutine)


def core_of(cluster: FakeCluster, **options: Any) -> AdminCore:
    quick: dict[str, Any] = {"retry_backoff_ms": 1, "retry_backoff_max_ms": 1, "default_api_timeout_ms": 5000}
    return AdminCore(cluster, AdminOptions.of("fake:9092", **quick | options))  # type: ignore[arg-type]


def created(**codes: int) -> CreateTopicsResponse:
    return CreateTopicsResponse(
        topics=[CreatableTopicResult(name=name, error_code=code) for name, code in codes.items()]
    )


def offsets(code: int = 0) -> Any:
    """Responses that repeat the node's id as the offset of each partition asked for."""

    def answer(node_id: int, request: ListOffsetsRequest) -> ListOffsetsResponse:
        return ListOffsetsResponse(
            topics=[
                ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=[
                        ListOffsetsPartitionResponse(
                            partition_index=each.partition_index, error_code=code, offset=node_id
                        )
                        for each in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    return answer


def test_only_what_is_unfinished_is_asked_for_again() -> None:
    cluster = FakeCluster()
    busy = ErrorCode.THROTTLING_QUOTA_EXCEEDED
    cluster.answer(ApiKey.CREATE_TOPICS, created(a=busy, b=0, c=ErrorCode.POLICY_VIOLATION), created(a=0))
    with pytest.raises(AdminError) as raised:
        run(core_of(cluster).topics.create_topics(NewTopic(name=name) for name in "abc"))
    assert list(raised.value.results) == ["a", "b"]
    assert [[topic.name for topic in each.topics] for each in cluster.requests_of(ApiKey.CREATE_TOPICS)] == [
        ["a", "b", "c"],
        ["a"],
    ]


def test_a_controller_that_moved_is_looked_for() -> None:
    cluster = FakeCluster(brokers=2)
    cluster.answer(ApiKey.CREATE_TOPICS, created(a=ErrorCode.NOT_CONTROLLER), created(a=0))
    run(core_of(cluster).topics.create_topic("a"))
    assert cluster.refreshes == [()]


@pytest.mark.parametrize("failure", [lost(), ClientTimeoutError("no answer")])
def test_a_lost_response_may_mean_that_it_was_done(failure: KafkaError) -> None:
    cluster = FakeCluster()
    cluster.answer(ApiKey.CREATE_TOPICS, failure, created(a=ErrorCode.TOPIC_ALREADY_EXISTS))
    made = run(core_of(cluster).topics.create_topic("a"))
    assert made.name == "a" and not made.existed and made.partitions is None
    cluster.answer(ApiKey.CREATE_TOPICS, created(a=ErrorCode.NOT_CONTROLLER), created(a=ErrorCode.TOPIC_ALREADY_EXISTS))
    with pytest.raises(KafkaError, match="TOPIC_ALREADY_EXISTS"):
        run(core_of(cluster).topics.create_topic("a"))


def test_a_request_that_never_left_was_not_done() -> None:
    cluster = FakeCluster()
    refusals = [lost()]

    async def connect(node_id: int) -> None:
        if refusals:
            raise refusals.pop()

    cluster.connect = connect  # type: ignore[method-assign]
    cluster.answer(ApiKey.CREATE_TOPICS, created(a=ErrorCode.TOPIC_ALREADY_EXISTS))
    with pytest.raises(KafkaError, match="TOPIC_ALREADY_EXISTS"):
        run(core_of(cluster).topics.create_topic("a"))
    assert refusals == []


def test_nothing_outlasts_the_time_out() -> None:
    async def forever(*arguments: Any) -> Any:
        await asyncio.Event().wait()

    for name, doing in (("start", "bootstrap server"), ("controller", "finding the broker"), ("connect", "connecting")):
        cluster = FakeCluster()
        setattr(cluster, name, forever)
        with pytest.raises(ClientTimeoutError, match=doing):
            run(core_of(cluster).topics.create_topic("a", timeout=0.02))


def test_leaders_are_asked_at_the_same_time_each_for_its_own() -> None:
    cluster = FakeCluster(brokers=2, topics={"t": 3})
    cluster.always(ApiKey.LIST_OFFSETS, offsets())
    found = run(core_of(cluster).records.list_offsets({("t", number): OffsetSpec.LATEST for number in range(3)}))
    assert {key.partition: each.offset for key, each in found.items()} == {0: 0, 1: 1, 2: 0}
    assert len(cluster.requests) == 2


def test_a_leader_that_moved_is_looked_for() -> None:
    cluster = FakeCluster(brokers=2, topics={"t": 1})

    def moved(node_id: int, request: ListOffsetsRequest) -> Any:
        cluster.set_leader("t", 0, leader=1, leader_epoch=1)
        return offsets(ErrorCode.NOT_LEADER_OR_FOLLOWER)(node_id, request)

    cluster.answer(ApiKey.LIST_OFFSETS, moved)
    cluster.always(ApiKey.LIST_OFFSETS, offsets())
    found = run(core_of(cluster).records.list_offsets({("t", 0): OffsetSpec.LATEST}))
    assert found["t", 0].offset == 1


def test_a_topic_made_a_moment_ago_is_waited_for() -> None:
    cluster = FakeCluster()
    cluster.always(ApiKey.LIST_OFFSETS, offsets())

    async def appear() -> Any:
        asking = asyncio.create_task(core_of(cluster).records.list_offsets({("t", 0): OffsetSpec.LATEST}))
        while len(cluster.refreshes) < 2 and not asking.done():  # noqa: ASYNC110 - the fake counts, it does not tell
            await asyncio.sleep(0)
        cluster.add_topic("t")
        return await asking

    assert run(appear())["t", 0].offset == 0


def test_a_topic_that_does_not_appear_is_unknown() -> None:
    with pytest.raises(AdminError) as raised:
        run(core_of(FakeCluster()).records.list_offsets({("t", 0): OffsetSpec.LATEST}, timeout=0.02))
    assert isinstance(raised.value.errors["t", 0], UnknownTopicError)


def test_a_coordinator_that_moved_is_looked_for() -> None:
    cluster = FakeCluster(brokers=2)

    def moved(node_id: int, request: Any) -> DeleteGroupsResponse:
        cluster.coordinators[CoordinatorKind.GROUP, "g"] = 1
        result = DeletableGroupResult(group_id="g", error_code=ErrorCode.NOT_COORDINATOR)
        return DeleteGroupsResponse(results=[result])

    cluster.answer(ApiKey.DELETE_GROUPS, moved, DeleteGroupsResponse(results=[DeletableGroupResult(group_id="g")]))
    forgotten: list[str] = []
    cluster.forget_coordinator = lambda kind, key: forgotten.append(key)  # type: ignore[method-assign]
    run(core_of(cluster).groups.delete_group("g"))
    assert forgotten == ["g"]
    assert [node_id for node_id, _ in cluster.requests] == [coordinator_id(0), coordinator_id(1)]


def test_the_last_failure_is_reported_when_the_time_is_over() -> None:
    cluster = FakeCluster()
    cluster.always(ApiKey.CREATE_TOPICS, created(a=ErrorCode.NOT_CONTROLLER))
    with pytest.raises(ClientTimeoutError, match="NOT_CONTROLLER"):
        run(core_of(cluster).topics.create_topic("a", timeout=0.02))
    cluster.always(ApiKey.CREATE_TOPICS, lost("broker-0:9092"))
    with pytest.raises(UnreachableError, match="broker-0:9092"):
        run(core_of(cluster).topics.create_topic("a", timeout=0.02))


def test_as_many_retries_as_the_option_says() -> None:
    cluster = FakeCluster()
    cluster.always(ApiKey.CREATE_TOPICS, created(a=ErrorCode.NOT_CONTROLLER))
    with pytest.raises(ClientTimeoutError):
        run(core_of(cluster, retries=2).topics.create_topic("a"))
    assert len(cluster.requests) == 3


def test_the_broker_learns_how_long_it_may_take() -> None:
    cluster = FakeCluster()
    cluster.always(ApiKey.CREATE_TOPICS, created(a=0))
    run(core_of(cluster, request_timeout_ms=700).topics.create_topic("a"))
    run(core_of(cluster).topics.create_topic("a", timeout=2))
    first, second = cluster.requests_of(ApiKey.CREATE_TOPICS)
    assert first.timeout_ms == 700
    assert 0 < second.timeout_ms <= 2000


def test_a_broker_that_responds_for_something_else() -> None:
    cluster = FakeCluster()
    cluster.always(ApiKey.CREATE_TOPICS, created(b=0))
    with pytest.raises(KafkaError, match="broker 0 left a out"):
        run(core_of(cluster).topics.create_topic("a"))


def test_settings_of_a_broker_are_asked_of_that_broker() -> None:
    cluster = FakeCluster(brokers=3)

    def answer(node_id: int, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
        return DescribeConfigsResponse(
            results=[
                DescribeConfigsResult(resource_type=each.resource_type, resource_name=each.resource_name)
                for each in request.resources
            ]
        )

    cluster.always(ApiKey.DESCRIBE_CONFIGS, answer)
    resources = [ConfigResource.broker(2), ConfigResource.broker(), ConfigResource.topic("2")]
    run(core_of(cluster).configs.describe_configs(resources))
    asked = {node_id: [each.resource_name for each in request.resources] for node_id, request in cluster.requests}
    assert asked == {2: ["2"], 0: ["", "2"]}


def test_topics_are_described_by_metadata_where_there_are_no_pages() -> None:
    cluster = FakeCluster(brokers=2, topics={"t": 2})
    cluster.versions[ApiKey.DESCRIBE_TOPIC_PARTITIONS] = -1
    described = run(core_of(cluster).topics.describe_topic("t"))
    assert [each.leader for each in described.partitions] == [0, 1]
    assert described.partitions[0].eligible_leader_replicas is None
    with pytest.raises(UnknownTopicError, match="missing"):
        run(core_of(cluster).topics.describe_topic("missing"))


def test_pages_are_put_together() -> None:
    cluster = FakeCluster()

    def page(*numbers: int, then: int | None = None) -> pages.DescribeTopicPartitionsResponse:
        made = [pages.DescribeTopicPartitionsResponsePartition(partition_index=number) for number in numbers]
        topic = pages.DescribeTopicPartitionsResponseTopic(name="t", partitions=made)
        cursor = None if then is None else pages.Cursor(topic_name="t", partition_index=then)
        return pages.DescribeTopicPartitionsResponse(topics=[topic], next_cursor=cursor)

    cluster.answer(ApiKey.DESCRIBE_TOPIC_PARTITIONS, page(0, 1, then=2), page(2))
    described = run(core_of(cluster).topics.describe_topic("t"))
    assert [each.partition for each in described.partitions] == [0, 1, 2]
    second = cluster.requests_of(ApiKey.DESCRIBE_TOPIC_PARTITIONS)[1]
    assert second.cursor == pages.Cursor(topic_name="t", partition_index=2)


def test_defaults_of_the_broker_need_a_broker_that_knows_them() -> None:
    cluster = FakeCluster()
    cluster.versions[ApiKey.CREATE_TOPICS] = 3
    with pytest.raises(UnsupportedVersionError):
        run(core_of(cluster).topics.create_topic("a"))
    cluster.answer(ApiKey.CREATE_TOPICS, created(a=0))
    run(core_of(cluster).topics.create_topic("a", 2, 1))
    (request,) = cluster.requests_of(ApiKey.CREATE_TOPICS)
    assert isinstance(request, CreateTopicsRequest) and request.topics[0].num_partitions == 2


@pytest.mark.parametrize(("given", "kind"), [(-5, ValueError), ("5", TypeError), (2**63, ValueError)])
def test_an_offset_that_would_wipe_a_position_is_refused(given: Any, kind: type[Exception]) -> None:
    cluster = FakeCluster(topics={"t": 1})
    with pytest.raises(kind, match="an offset is"):
        run(core_of(cluster).group_offsets.alter_group_offsets("g", {("t", 0): given}))
    assert cluster.requests == []


def starting(cluster: FakeCluster, failures: int) -> list[int]:
    """The bootstrap servers cannot be reached so many times; gives the attempts."""
    attempts: list[int] = []

    async def start() -> None:
        attempts.append(len(attempts))
        if len(attempts) <= failures:
            raise lost("away:9092")

    cluster.start = start  # type: ignore[method-assign]
    return attempts


def test_a_cluster_that_starts_is_waited_for_within_the_time_that_the_call_was_given() -> None:
    cluster = FakeCluster()
    cluster.always(ApiKey.CREATE_TOPICS, created(a=0))
    attempts = starting(cluster, 3)
    run(core_of(cluster).topics.create_topic("a", timeout=20))
    assert len(attempts) == 4


def test_the_first_call_says_at_once_that_nobody_is_there_unless_it_was_given_time() -> None:
    cluster = FakeCluster()
    attempts = starting(cluster, 1_000_000)
    with pytest.raises(UnreachableError, match="away:9092"):
        run(core_of(cluster).topics.create_topic("a"))
    assert len(attempts) == 1
    with pytest.raises(UnreachableError, match="away:9092"):
        run(core_of(cluster).topics.create_topic("a", timeout=0.05))
    assert len(attempts) > 2


def test_what_was_heard_of_a_cluster_says_more_than_that_time_is_over() -> None:
    cluster = FakeCluster()
    attempts: list[int] = []

    async def start() -> None:
        attempts.append(1)
        if len(attempts) > 1:
            await asyncio.Event().wait()
        raise lost("away:9092")

    cluster.start = start  # type: ignore[method-assign]
    with pytest.raises(UnreachableError, match="away:9092"):
        run(core_of(cluster).topics.create_topic("a", timeout=0.05))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda core: core.records.list_offsets({("t", "0"): OffsetSpec.LATEST}), "whole number, not '0'"),
        (lambda core: core.records.list_offsets({("t", 0): 1.5}), "a time is a whole number"),
        (lambda core: core.records.list_offsets({("t", 0): "latest"}), "a time is a whole number"),
        (lambda core: core.records.delete_records({("t", 0): "1"}), "an offset is a whole number"),
        (lambda core: core.group_offsets.list_group_offsets("g", [("t", None)]), "whole number, not None"),
        (lambda core: core.group_offsets.list_group_offsets("g", ("t", 0)), "a topic and a number"),
        (lambda core: core.group_offsets.delete_group_offsets("g", [("t", "0")]), "whole number"),
        (lambda core: core.transactions.describe_producers([("t", None)]), "whole number"),
        (lambda core: core.log_dirs.describe_log_dirs([0], partitions=[("t", "0")]), "whole number"),
    ],
)
def test_what_has_the_wrong_type_is_reported_before_anybody_is_asked(call: Any, words: str) -> None:
    cluster = FakeCluster(topics={"t": 1})
    with pytest.raises(TypeError, match=words):
        run(call(core_of(cluster)))
    assert cluster.requests == []


def test_a_partition_that_cannot_exist_is_an_error_of_its_own_beside_the_others() -> None:
    cluster = FakeCluster(topics={"t": 1})
    cluster.always(ApiKey.LIST_OFFSETS, offsets())
    with pytest.raises(AdminError) as raised:
        run(
            core_of(cluster).records.list_offsets(
                {("t", -1): OffsetSpec.LATEST, ("t", 0): OffsetSpec.LATEST}, timeout=0.02
            )
        )
    assert list(raised.value.errors) == [("t", -1)]
    assert list(raised.value.results) == [("t", 0)]
