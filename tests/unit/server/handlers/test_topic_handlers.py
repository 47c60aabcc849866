"""The APIs about topics and the cluster, over a cluster of one in memory: what Kafka answers, code by code.

Every answer is also encoded in its version, so that no field is left in a state the wire cannot carry.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest

from barnabas.clock import SystemClock
from barnabas.config.broker import BrokerConfig
from barnabas.errors import ErrorCode
from barnabas.machines.controller.commands import NewTopic
from barnabas.metadata.image import BrokerEndpoint
from barnabas.metadata.stores.memory import MemoryStore
from barnabas.protocol.compiler import encode
from barnabas.protocol.headers import RequestHeader
from barnabas.protocol.messages import create_partitions as grow
from barnabas.protocol.messages import create_topics as create
from barnabas.protocol.messages import delete_topics as delete
from barnabas.protocol.messages import describe_cluster as cluster_api
from barnabas.protocol.messages import describe_topic_partitions as describe
from barnabas.protocol.messages import metadata as meta
from barnabas.server.auto_topic_creation import AutoTopicCreation
from barnabas.server.cluster_membership import ClusterMembership
from barnabas.server.controller_client import ControllerClient
from barnabas.server.dispatch import Dispatcher, Handler
from barnabas.server.handlers import (
    create_partitions,
    create_topics,
    delete_topics,
    describe_cluster,
    describe_topic_partitions,
    metadata,
)
from barnabas.server.request import RequestContext
from barnabas.server.settings import Settings
from barnabas.types import NO_TOPIC_ID

NOT_ASKED = -(2**31)
ALL_TOPIC_OPERATIONS = 0b1101_1111_1000
ALL_CLUSTER_OPERATIONS = 0b1_1111_1010_0000


class Caller:
    """Calls handlers as the dispatcher does, with a broker that has settings and a cluster and nothing else."""

    def __init__(self, settings: Settings, cluster: ClusterMembership) -> None:
        self.cluster = cluster
        self.controller = ControllerClient(cluster)
        self.broker = cast(
            Any,
            SimpleNamespace(
                settings=settings,
                authorizer=None,
                cluster=cluster,
                controller=self.controller,
                auto_topic_creation=AutoTopicCreation(self.controller.create_topics_anywhere),
                node_id=1,
                config=settings.config,
                clock=SystemClock(),
            ),
        )
        self.broker.dispatcher = Dispatcher(self.broker, [])

    async def call(
        self, row: Handler[Any, Any], request: Any, version: int | None = None, listener: str = "PLAINTEXT"
    ) -> Any:
        version = row.max_version if version is None else version
        connection = Mock(listener=SimpleNamespace(name=listener))
        context = RequestContext(self.broker, connection, RequestHeader(row.api_key, version, 0, None, 0))
        answer = row.handle(context, request)
        answer = await answer if isinstance(answer, Awaitable) else answer
        encode(answer, version)
        encode(row.fail(context, request, ErrorCode.REQUEST_TIMED_OUT), version)
        return answer

    async def create(self, version: int = 7, validate_only: bool = False, **topic: Any) -> Any:
        wanted = create.CreatableTopic(**{"num_partitions": 1, "replication_factor": 1, **topic})
        request = create.CreateTopicsRequest(topics=[wanted], validate_only=validate_only)
        (answer,) = (await self.call(create_topics.HANDLER, request, version)).topics
        return answer

    async def metadata(self, *names: str, version: int = 13, listener: str = "PLAINTEXT", **options: Any) -> Any:
        topics = [meta.MetadataRequestTopic(name=name) for name in names]
        request = meta.MetadataRequest(topics=topics, **{"allow_auto_topic_creation": False, **options})
        return await self.call(metadata.HANDLER, request, version, listener)


def run(scenario: Callable[[Caller], Awaitable[None]], **config: str) -> None:
    async def main() -> None:
        given = {name.replace("_", "."): value for name, value in config.items()}
        settings = Settings(BrokerConfig.parse({"node.id": "1", **given}))
        cluster = ClusterMembership(
            MemoryStore(),
            broker_id=1,
            rules=settings.rules,
        )
        endpoints = [BrokerEndpoint("PLAINTEXT", "here", 9092), BrokerEndpoint("OTHER", "::1", 9093)]
        await cluster.start(endpoints, rack="r1")
        try:
            await scenario(Caller(settings, cluster))
        finally:
            await cluster.stop()

    asyncio.run(main())


@pytest.mark.parametrize("version", range(2, 8))
def test_a_topic_is_created(version: int) -> None:
    async def scenario(caller: Caller) -> None:
        configs = [create.CreatableTopicConfig(name="retention.ms", value="5")]
        answer = await caller.create(version, name="t", num_partitions=3, configs=configs)
        assert (answer.name, answer.error_code, answer.error_message) == ("t", ErrorCode.NONE, None)
        topic = caller.cluster.image.topics["t"]
        assert answer.topic_id == topic.topic_id
        assert (answer.num_partitions, answer.replication_factor) == (3, 1) == (len(topic.partitions), 1)
        shown = {entry.name: (entry.value, entry.config_source) for entry in answer.configs}
        assert shown["retention.ms"] == ("5", 1)
        assert shown["segment.bytes"] == ("1073741824", 5)
        assert shown["min.insync.replicas"] == ("1", 5)
        assert list(shown) == sorted(shown)

    run(scenario)


def test_creation_is_refused_as_kafka_refuses_it() -> None:
    async def scenario(caller: Caller) -> None:
        assert (await caller.create(name="a b")).error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
        assert (await caller.create(name="t", num_partitions=0)).error_code == ErrorCode.INVALID_PARTITIONS
        assert (await caller.create(name="t", replication_factor=2)).error_code == ErrorCode.INVALID_REPLICATION_FACTOR
        bad = [create.CreatableTopicConfig(name="retention.ms", value="soon")]
        assert (await caller.create(name="t", configs=bad)).error_code == ErrorCode.INVALID_CONFIG
        unknown = [create.CreatableTopicConfig(name="retention", value="5")]
        assert (await caller.create(name="t", configs=unknown)).error_code == ErrorCode.INVALID_CONFIG
        assert (await caller.create(name="t")).error_code == ErrorCode.NONE
        assert (await caller.create(name="t")).error_code == ErrorCode.TOPIC_ALREADY_EXISTS
        assert (await caller.create(name="u", validate_only=True)).error_code == ErrorCode.NONE
        assert list(caller.cluster.image.topics) == ["t"]

    run(scenario)


@pytest.mark.parametrize("version", range(2, 8))
def test_counts_of_minus_one_are_the_defaults_in_every_version(version: int) -> None:
    async def scenario(caller: Caller) -> None:
        answer = await caller.create(version, name="t", num_partitions=-1, replication_factor=-1)
        assert (answer.error_code, answer.num_partitions, answer.replication_factor) == (ErrorCode.NONE, 1, 1)

    run(scenario)


@pytest.mark.parametrize("version", range(2, 8))
def test_a_topic_that_exists_is_reported_before_any_other_fault(version: int) -> None:
    async def scenario(caller: Caller) -> None:
        await caller.create(name="t")
        unknown = [create.CreatableTopicConfig(name="retention", value="5")]
        wrong: tuple[dict[str, Any], ...] = (
            {"num_partitions": -1, "replication_factor": -1},
            {"num_partitions": 0},
            {"replication_factor": 7},
            {"configs": unknown},
        )
        for fault in wrong:
            answer = await caller.create(version, name="t", **fault)
            assert answer.error_code == ErrorCode.TOPIC_ALREADY_EXISTS, fault

    run(scenario)


def test_a_topic_is_created_by_assignment() -> None:
    async def scenario(caller: Caller) -> None:
        assignments = [create.CreatableReplicaAssignment(partition_index=index, broker_ids=[1]) for index in (1, 0)]
        options: dict[str, Any] = {"num_partitions": -1, "replication_factor": -1}
        answer = await caller.create(name="t", assignments=assignments, version=2, **options)
        assert (answer.error_code, answer.num_partitions) == (ErrorCode.NONE, 2)
        answer = await caller.create(name="u", assignments=assignments[:1], **options)
        assert answer.error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT

    run(scenario)


def test_topics_are_deleted_by_name_and_by_id() -> None:
    async def scenario(caller: Caller) -> None:
        await caller.controller.create_topics([NewTopic("a"), NewTopic("b")])
        topic_id = caller.cluster.image.topics["b"].topic_id
        old = delete.DeleteTopicsRequest(topic_names=["a", "none"])
        answers = (await caller.call(delete_topics.HANDLER, old, 1)).responses
        assert {each.name: each.error_code for each in answers} == {
            "a": ErrorCode.NONE,
            "none": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
        new = delete.DeleteTopicsRequest(
            topics=[
                delete.DeleteTopicState(name=None, topic_id=topic_id),
                delete.DeleteTopicState(name=None, topic_id=b"x" * 16),
            ]
        )
        answers = (await caller.call(delete_topics.HANDLER, new)).responses
        assert {(each.name, each.topic_id): each.error_code for each in answers} == {
            ("b", topic_id): ErrorCode.NONE,
            (None, b"x" * 16): ErrorCode.UNKNOWN_TOPIC_ID,
        }
        assert not caller.cluster.image.topics

    run(scenario)


def test_deletion_can_be_switched_off() -> None:
    async def scenario(caller: Caller) -> None:
        await caller.controller.create_topics([NewTopic("a")])
        request = delete.DeleteTopicsRequest(topic_names=["a"])
        for version, code in ((2, ErrorCode.INVALID_REQUEST), (3, ErrorCode.TOPIC_DELETION_DISABLED)):
            (answer,) = (await caller.call(delete_topics.HANDLER, request, version)).responses
            assert answer.error_code == code
        assert "a" in caller.cluster.image.topics

    run(scenario, delete_topic_enable="false")


def test_partitions_are_added() -> None:
    async def scenario(caller: Caller) -> None:
        await caller.controller.create_topics([NewTopic("a", 1)])
        topics = [
            grow.CreatePartitionsTopic(name="a", count=3, assignments=None),
            grow.CreatePartitionsTopic(name="none", count=3, assignments=None),
        ]
        answers = (await caller.call(create_partitions.HANDLER, grow.CreatePartitionsRequest(topics=topics))).results
        assert [each.error_code for each in answers] == [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        assigned = grow.CreatePartitionsAssignment(broker_ids=[1])
        topics = [grow.CreatePartitionsTopic(name="a", count=4, assignments=[assigned])]
        request = grow.CreatePartitionsRequest(topics=topics, validate_only=True)
        assert (await caller.call(create_partitions.HANDLER, request)).results[0].error_code == ErrorCode.NONE
        assert len(caller.cluster.image.topics["a"].partitions) == 3

    run(scenario)


@pytest.mark.parametrize("version", range(14))
def test_metadata_of_a_topic(version: int) -> None:
    async def scenario(caller: Caller) -> None:
        await caller.controller.create_topics([NewTopic("t", 2)])
        answer = await caller.metadata("t", version=version)
        assert [(each.node_id, each.host, each.port, each.rack) for each in answer.brokers] == [(1, "here", 9092, "r1")]
        assert (answer.cluster_id, answer.controller_id) == (caller.cluster.cluster_id, 1)
        (topic,) = answer.topics
        assert (topic.name, topic.error_code, topic.is_internal) == ("t", ErrorCode.NONE, False)
        assert topic.topic_id == caller.cluster.image.topics["t"].topic_id
        assert topic.topic_authorized_operations == NOT_ASKED
        for index, each in enumerate(topic.partitions):
            assert (each.partition_index, each.error_code, each.leader_id, each.leader_epoch) == (index, 0, 1, 0)
            assert (each.replica_nodes, each.isr_nodes, each.offline_replicas) == ([1], [1], [])

    run(scenario)


def test_metadata_speaks_of_the_listener_asked() -> None:
    async def scenario(caller: Caller) -> None:
        await caller.controller.create_topics([NewTopic("t", 1)])
        answer = await caller.metadata("t", listener="OTHER")
        assert [(each.host, each.port) for each in answer.brokers] == [("::1", 9093)]
        for version, code in ((5, ErrorCode.LEADER_NOT_AVAILABLE), (6, ErrorCode.LISTENER_NOT_FOUND)):
            answer = await caller.metadata("t", listener="NOWHERE", version=version)
            (partition,) = answer.topics[0].partitions
            assert (answer.brokers, partition.error_code, partition.leader_id) == ([], code, -1)
            assert partition.offline_replicas == [1]

    run(scenario)


def test_metadata_of_all_and_of_none() -> None:
    async def scenario(caller: Caller) -> None:
        await caller.controller.create_topics([NewTopic("a"), NewTopic("__consumer_offsets")])
        everything = meta.MetadataRequest(topics=None)
        answer = await caller.call(metadata.HANDLER, everything, 1)
        assert [(each.name, each.is_internal) for each in answer.topics] == [("a", False), ("__consumer_offsets", True)]
        assert len((await caller.metadata(version=0)).topics) == 2, "in version 0 no topics means all"
        assert (await caller.metadata(version=1)).topics == []

    run(scenario)


def test_metadata_by_topic_id() -> None:
    async def scenario(caller: Caller) -> None:
        await caller.controller.create_topics([NewTopic("t", 1)])
        topic_id = caller.cluster.image.topics["t"].topic_id
        topics = [meta.MetadataRequestTopic(name=None, topic_id=each) for each in (topic_id, b"x" * 16)]
        request = meta.MetadataRequest(topics=topics)
        answer = await caller.call(metadata.HANDLER, request, 12)
        assert [(each.name, each.topic_id, each.error_code) for each in answer.topics] == [
            ("t", topic_id, ErrorCode.NONE),
            (None, b"x" * 16, ErrorCode.UNKNOWN_TOPIC_ID),
        ]
        answer = await caller.call(metadata.HANDLER, request, 11)
        assert {each.error_code for each in answer.topics} == {ErrorCode.INVALID_REQUEST}

    run(scenario)


def test_unknown_topics_are_created_in_the_background() -> None:
    async def scenario(caller: Caller) -> None:
        heard = asyncio.Event()
        caller.cluster.listeners.append(lambda _: heard.set())
        answer = await caller.metadata("new", "not valid", allow_auto_topic_creation=True)
        assert {each.name: each.error_code for each in answer.topics} == {
            "new": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            "not valid": ErrorCode.INVALID_TOPIC_EXCEPTION,
        }
        await heard.wait()
        assert (await caller.metadata("new")).topics[0].error_code == ErrorCode.NONE
        assert list(caller.cluster.image.topics) == ["new"]

    run(scenario)


@pytest.mark.parametrize(("asked", "enabled"), [(True, "false"), (False, "true")])
def test_unknown_topics_stay_unknown_if_either_side_says_so(asked: bool, enabled: str) -> None:
    async def scenario(caller: Caller) -> None:
        answer = await caller.metadata("new", allow_auto_topic_creation=asked)
        assert answer.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        for name in ("later", "last"):  # requests are done in order: one in the background would come between these
            await caller.controller.create_topics([NewTopic(name)])
        assert list(caller.cluster.image.topics) == ["later", "last"]

    run(scenario, auto_create_topics_enable=enabled)


def test_operations_are_listed_when_asked_for() -> None:
    async def scenario(caller: Caller) -> None:
        await caller.controller.create_topics([NewTopic("t", 1)])
        asked = {"include_cluster_authorized_operations": True, "include_topic_authorized_operations": True}
        answer = await caller.metadata("t", version=8, **asked)
        assert answer.topics[0].topic_authorized_operations == ALL_TOPIC_OPERATIONS
        assert answer.cluster_authorized_operations == ALL_CLUSTER_OPERATIONS

    run(scenario)


@pytest.mark.parametrize("version", range(3))
def test_the_cluster_is_described(version: int) -> None:
    async def scenario(caller: Caller) -> None:
        request = cluster_api.DescribeClusterRequest(include_cluster_authorized_operations=True)
        answer = await caller.call(describe_cluster.HANDLER, request, version)
        assert (answer.error_code, answer.cluster_id, answer.controller_id) == (0, caller.cluster.cluster_id, 1)
        assert [(each.broker_id, each.host, each.port, each.rack) for each in answer.brokers] == [
            (1, "here", 9092, "r1")
        ]
        assert answer.cluster_authorized_operations == ALL_CLUSTER_OPERATIONS

    run(scenario)


def test_only_brokers_can_be_described() -> None:
    async def scenario(caller: Caller) -> None:
        for kind, code in ((2, ErrorCode.MISMATCHED_ENDPOINT_TYPE), (9, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE)):
            request = cluster_api.DescribeClusterRequest(endpoint_type=kind)
            assert (await caller.call(describe_cluster.HANDLER, request)).error_code == code

    run(scenario)


def test_topics_are_described_page_by_page() -> None:
    async def scenario(caller: Caller) -> None:
        await caller.controller.create_topics([NewTopic("b", 3), NewTopic("a", 2), NewTopic("c", 1)])
        pages: list[list[tuple[str, list[int]]]] = []
        cursor: describe.Cursor | None = None
        while True:
            request = describe.DescribeTopicPartitionsRequest(topics=[], response_partition_limit=2, cursor=cursor)
            answer = await caller.call(describe_topic_partitions.HANDLER, request)
            pages.append([(each.name, [one.partition_index for one in each.partitions]) for each in answer.topics])
            cursor = answer.next_cursor
            if cursor is None:
                break
        assert pages == [[("a", [0, 1])], [("b", [0, 1])], [("b", [2]), ("c", [0])]]

    run(scenario)


def test_topics_are_described_by_name() -> None:
    async def scenario(caller: Caller) -> None:
        await caller.controller.create_topics([NewTopic("a", 1)])
        topics = [describe.TopicRequest(name=name) for name in ("none", "a", "not valid")]
        request = describe.DescribeTopicPartitionsRequest(topics=topics)
        answer = await caller.call(describe_topic_partitions.HANDLER, request)
        assert [(each.name, each.error_code) for each in answer.topics] == [
            ("a", ErrorCode.NONE),
            ("none", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            ("not valid", ErrorCode.INVALID_TOPIC_EXCEPTION),
        ]
        known, unknown, _ = answer.topics
        assert unknown.topic_id == NO_TOPIC_ID and known.topic_authorized_operations == ALL_TOPIC_OPERATIONS
        (partition,) = known.partitions
        assert (partition.leader_id, partition.replica_nodes, partition.isr_nodes) == (1, [1], [1])
        assert (partition.eligible_leader_replicas, partition.last_known_elr) == ([], [])

    run(scenario)


def test_eligible_and_last_known_leaders_are_described() -> None:
    async def scenario(caller: Caller) -> None:
        await caller.controller.create_topics([NewTopic("a", 1)])
        image = caller.cluster.image
        topic = image.topics["a"]
        lost = topic.partitions[0]._replace(
            leader=-1, replicas=(1, 2, 3), eligible_leader_replicas=(3,), last_known_leader=2
        )
        caller.cluster.image = replace(image, topics={"a": topic._replace(partitions=(lost,))})
        request = describe.DescribeTopicPartitionsRequest(topics=[describe.TopicRequest(name="a")])
        (partition,) = (await caller.call(describe_topic_partitions.HANDLER, request)).topics[0].partitions
        assert (partition.leader_id, partition.offline_replicas) == (-1, [2, 3])
        assert (partition.eligible_leader_replicas, partition.last_known_elr) == ([3], [2])

    run(scenario)


@pytest.mark.parametrize(("topic", "partition"), [("z", 0), ("a", -1)])
def test_a_cursor_must_point_into_the_topics_asked_for(topic: str, partition: int) -> None:
    async def scenario(caller: Caller) -> None:
        cursor = describe.Cursor(topic_name=topic, partition_index=partition)
        request = describe.DescribeTopicPartitionsRequest(topics=[describe.TopicRequest(name="a")], cursor=cursor)
        answer = await caller.call(describe_topic_partitions.HANDLER, request)
        assert [each.error_code for each in answer.topics] == [ErrorCode.INVALID_REQUEST]

    run(scenario)
