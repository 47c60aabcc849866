"""AlterPartition: the controller's own broker decides, any other says who is not the controller."""

import asyncio
from pathlib import Path

from broker_cluster import BrokerCluster

from barnabas.errors import ErrorCode
from barnabas.protocol.messages.alter_partition import AlterPartitionRequest, BrokerState, PartitionData, TopicData
from barnabas.protocol.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest


def test_a_leader_changes_its_isr_at_a_controller_elsewhere(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with BrokerCluster(tmp_path, 3) as cluster:
            controller, leader, other = cluster.controller_id, *cluster.others()
            placed = CreatableReplicaAssignment(partition_index=0, broker_ids=[leader, other])
            topic = CreatableTopic(name="t", num_partitions=-1, replication_factor=-1, assignments=[placed])
            await cluster.ask(controller, CreateTopicsRequest(topics=[topic], timeout_ms=30_000))
            await cluster.until(lambda: all("t" in each.cluster.image.topics for each in cluster.brokers.values()))
            image = cluster.brokers[leader].cluster.image
            epochs = {node_id: image.brokers[node_id].epoch for node_id in (leader, other)}
            partition = image.topics["t"].partitions[0]

            def request(broker_epoch: int, *members: int) -> AlterPartitionRequest:
                data = PartitionData(
                    partition_index=0,
                    leader_epoch=partition.leader_epoch,
                    new_isr_with_epochs=[BrokerState(broker_id=each, broker_epoch=epochs[each]) for each in members],
                    leader_recovery_state=0,
                    partition_epoch=partition.partition_epoch,
                )
                topics = [TopicData(topic_id=image.topics["t"].topic_id, partitions=[data])]
                return AlterPartitionRequest(broker_id=leader, broker_epoch=broker_epoch, topics=topics)

            elsewhere = await cluster.ask(other, request(epochs[leader], leader))
            assert elsewhere.error_code == ErrorCode.NOT_CONTROLLER
            stale = await cluster.ask(controller, request(epochs[leader] - 1, leader))
            assert stale.error_code == ErrorCode.STALE_BROKER_EPOCH
            changed = await cluster.ask(controller, request(epochs[leader], leader))
            (row,) = changed.topics[0].partitions
            assert (row.error_code, row.isr, row.partition_epoch) == (0, [leader], partition.partition_epoch + 1)
            again = await cluster.ask(controller, request(epochs[leader], leader))
            assert again.topics[0].partitions[0].error_code == ErrorCode.INVALID_UPDATE_VERSION

            # The follower that was left out asks for records, and its leader for its return, at the controller.
            def in_sync() -> bool:
                known = cluster.brokers[leader].cluster.image.topics["t"].partitions[0].in_sync_replicas
                return set(known) == {leader, other}

            await cluster.until(in_sync)

    asyncio.run(scenario())
