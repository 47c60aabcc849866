"""Elections, reassignments, log directories, quorum and features of a broker that is alone."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from handler_calls import HandlerCalls

from barnabas.errors import ErrorCode
from barnabas.protocol.messages import alter_partition_reassignments as reassign
from barnabas.protocol.messages import alter_replica_log_dirs as move
from barnabas.protocol.messages import describe_quorum as quorum
from barnabas.protocol.messages import elect_leaders as elect
from barnabas.protocol.messages import list_partition_reassignments as reassigning
from barnabas.protocol.messages import update_features as features
from barnabas.protocol.messages.add_raft_voter import AddRaftVoterRequest
from barnabas.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from barnabas.protocol.messages.unregister_broker import UnregisterBrokerRequest

PREFERRED, UNCLEAN = 0, 1
UPGRADE, DOWNGRADE = 1, 2


def run(directory: Path, scenario: Callable[[HandlerCalls], Awaitable[None]], **settings: str) -> None:
    async def main() -> None:
        async with HandlerCalls(directory, **settings) as calls:
            await calls.make_topic("t")
            await scenario(calls)

    asyncio.run(main())


@pytest.mark.parametrize("election", [PREFERRED, UNCLEAN])
def test_a_lone_leader_needs_no_election(tmp_path: Path, election: int) -> None:
    async def scenario(calls: HandlerCalls) -> None:
        for version in calls.versions(elect.ElectLeadersRequest):
            wanted = [
                elect.TopicPartitions(topic="t", partitions=[0, 9]),
                elect.TopicPartitions(topic="u", partitions=[0]),
            ]
            request = elect.ElectLeadersRequest(topic_partitions=wanted)
            if version:
                request.election_type = election
            answer = await calls.call(request, version)
            codes = {
                (topic.topic, each.partition_id): each.error_code
                for topic in answer.replica_election_results
                for each in topic.partition_result
            }
            assert codes == {
                ("t", 0): ErrorCode.ELECTION_NOT_NEEDED,
                ("t", 9): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                ("u", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            }
            everything = await calls.call(elect.ElectLeadersRequest(topic_partitions=None), version)
            assert (everything.error_code, everything.replica_election_results) == (ErrorCode.NONE, [])

    run(tmp_path, scenario)


def test_an_unknown_kind_of_election(tmp_path: Path) -> None:
    async def scenario(calls: HandlerCalls) -> None:
        wanted = [elect.TopicPartitions(topic="t", partitions=[0])]
        answer = await calls.call(elect.ElectLeadersRequest(election_type=5, topic_partitions=wanted))
        assert answer.error_code == ErrorCode.INVALID_REQUEST
        (result,) = answer.replica_election_results[0].partition_result
        assert result.error_message == "Unknown election type 5"

    run(tmp_path, scenario)


@pytest.mark.parametrize(
    ("topic", "partition", "replicas", "error"),
    [
        ("t", 0, [1], ErrorCode.NONE),
        ("t", 0, None, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
        ("t", 0, [], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("t", 0, [1, 1], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("t", 0, [1, 7], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ("t", 9, [1], ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("u", 0, None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_reassignments(tmp_path: Path, topic: str, partition: int, replicas: list[int] | None, error: int) -> None:
    async def scenario(calls: HandlerCalls) -> None:
        for version in calls.versions(reassign.AlterPartitionReassignmentsRequest):
            wanted = reassign.ReassignablePartition(partition_index=partition, replicas=replicas)
            request = reassign.AlterPartitionReassignmentsRequest(
                topics=[reassign.ReassignableTopic(name=topic, partitions=[wanted])]
            )
            answer = await calls.call(request, version)
            assert answer.error_code == ErrorCode.NONE
            assert answer.responses[0].name == topic
            assert answer.responses[0].partitions[0].error_code == error
        listed = await calls.call(reassigning.ListPartitionReassignmentsRequest(topics=None))
        assert (listed.error_code, listed.topics) == (ErrorCode.NONE, [])

    run(tmp_path, scenario)


def test_a_replica_is_asked_to_move(tmp_path: Path) -> None:
    async def scenario(calls: HandlerCalls) -> None:
        directories = calls.broker.log_directories.directories
        (home,) = [each for each in directories if ("t", 0) in each.logs]
        (other,) = [each for each in directories if each is not home]

        async def moved(path: str, topic: str = "t", partition: int = 0) -> Any:
            wanted = move.AlterReplicaLogDir(
                path=path, topics=[move.AlterReplicaLogDirTopic(name=topic, partitions=[partition])]
            )
            answer = await calls.call(move.AlterReplicaLogDirsRequest(dirs=[wanted]))
            return answer.results[0].partitions[0].error_code

        assert await moved(home.path) == ErrorCode.NONE
        assert await moved(other.path) == ErrorCode.NONE
        assert await moved(other.path, "long" * 56, 0) == ErrorCode.INVALID_TOPIC_EXCEPTION
        assert await moved("/nowhere") == ErrorCode.LOG_DIR_NOT_FOUND
        assert await moved(home.path, "u") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert await moved(home.path, "t", 9) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    run(tmp_path, scenario, log_dirs=f"{tmp_path / 'a'},{tmp_path / 'b'}")


def test_the_quorum_is_the_controller(tmp_path: Path) -> None:
    async def scenario(calls: HandlerCalls) -> None:
        for version in calls.versions(quorum.DescribeQuorumRequest):
            partitions = [quorum.RequestPartitionData(partition_index=index) for index in (0, 1)]
            wanted = [quorum.RequestTopicData(topic_name=name, partitions=partitions) for name in METADATA_AND_TOPIC]
            answer = await calls.call(quorum.DescribeQuorumRequest(topics=wanted), version)
            (found, missing), others = [topic.partitions for topic in answer.topics]
            assert answer.error_code == found.error_code == ErrorCode.NONE
            assert (found.leader_id, found.leader_epoch) == (1, calls.broker.cluster.image.controller_epoch)
            assert [voter.replica_id for voter in found.current_voters] == [1] and found.observers == []
            for each in (missing, *others):
                assert each.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            assert [node.node_id for node in answer.nodes] == ([1] if version >= 2 else [])

    run(tmp_path, scenario)


METADATA_AND_TOPIC = ("__cluster_metadata", "t")


def test_there_are_no_voters_to_add_or_to_remove(tmp_path: Path) -> None:
    async def scenario(calls: HandlerCalls) -> None:
        for request in (AddRaftVoterRequest(voter_id=2), RemoveRaftVoterRequest(voter_id=1)):
            answer = await calls.call(request)
            assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION and "metadata store" in answer.error_message

    run(tmp_path, scenario)


@pytest.mark.parametrize(
    ("feature", "level", "upgrade_type", "error"),
    [
        ("group.version", 1, UPGRADE, ErrorCode.NONE),
        ("metadata.version", 27, UPGRADE, ErrorCode.NONE),
        ("group.version", 2, UPGRADE, ErrorCode.INVALID_UPDATE_VERSION),
        ("group.version", 0, DOWNGRADE, ErrorCode.INVALID_UPDATE_VERSION),
        ("share.version", 1, UPGRADE, ErrorCode.INVALID_UPDATE_VERSION),
    ],
)
def test_features_keep_their_level(tmp_path: Path, feature: str, level: int, upgrade_type: int, error: int) -> None:
    async def scenario(calls: HandlerCalls) -> None:
        update = features.FeatureUpdateKey(feature=feature, max_version_level=level, upgrade_type=upgrade_type)
        for version in (1, 2):
            answer = await calls.call(features.UpdateFeaturesRequest(feature_updates=[update]), version)
            assert answer.error_code == error
            assert (answer.error_message is None) == (error == ErrorCode.NONE)

    run(tmp_path, scenario)


def test_a_broker_is_registered_while_it_runs(tmp_path: Path) -> None:
    async def scenario(calls: HandlerCalls) -> None:
        gone = await calls.call(UnregisterBrokerRequest(broker_id=7))
        assert gone.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
        running = await calls.call(UnregisterBrokerRequest(broker_id=1))
        assert running.error_code == ErrorCode.INVALID_REQUEST and "is running" in running.error_message
        assert list(calls.broker.cluster.image.brokers) == [1]

    run(tmp_path, scenario)
