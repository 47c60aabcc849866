"""Requests of this broker to the controller, one method per command.

Each returns what the controller decided, once that is durable and every listener has been called. Raises KafkaError
with NOT_CONTROLLER if another broker is the controller. `cluster_membership.py` carries them out.
"""

from collections.abc import Sequence

from barnabas.machines.controller import commands
from barnabas.metadata.image import ConfigResource
from barnabas.server.cluster_membership import ClusterMembership
from barnabas.types import NodeId, TopicPartition


class ControllerClient:
    def __init__(self, membership: ClusterMembership) -> None:
        self._broker_id = membership.broker_id
        self._submit = membership.submit

    async def create_topics(
        self, topics: Sequence[commands.NewTopic], *, validate_only: bool = False
    ) -> tuple[commands.TopicResult, ...]:
        results: tuple[commands.TopicResult, ...] = await self._submit(
            commands.CreateTopics(tuple(topics), validate_only)
        )
        return results

    async def adopt_topics(self, found: commands.AdoptTopics) -> commands.Adoption:
        adoption: commands.Adoption = await self._submit(found)
        return adoption

    async def delete_topics(self, topics: Sequence[commands.TopicToDelete]) -> tuple[commands.DeletedTopic, ...]:
        results: tuple[commands.DeletedTopic, ...] = await self._submit(commands.DeleteTopics(tuple(topics)))
        return results

    async def create_partitions(
        self, topics: Sequence[commands.NewPartitions], *, validate_only: bool = False
    ) -> tuple[commands.NewPartitionsResult, ...]:
        results: tuple[commands.NewPartitionsResult, ...] = await self._submit(
            commands.CreatePartitions(tuple(topics), validate_only)
        )
        return results

    async def incremental_alter_configs(
        self,
        resources: Sequence[tuple[ConfigResource, Sequence[commands.ConfigChange]]],
        *,
        validate_only: bool = False,
    ) -> tuple[commands.ConfigResult, ...]:
        changes = tuple((resource, tuple(each)) for resource, each in resources)
        results: tuple[commands.ConfigResult, ...] = await self._submit(
            commands.IncrementalAlterConfigs(changes, validate_only)
        )
        return results

    async def alter_configs(
        self,
        resources: Sequence[tuple[ConfigResource, Sequence[tuple[str, str | None]]]],
        *,
        validate_only: bool = False,
    ) -> tuple[commands.ConfigResult, ...]:
        """Replaces all settings of each resource."""
        values = tuple((resource, tuple(each)) for resource, each in resources)
        results: tuple[commands.ConfigResult, ...] = await self._submit(commands.AlterConfigs(values, validate_only))
        return results

    async def alter_partition(
        self, broker_id: NodeId, broker_epoch: int, changes: Sequence[commands.IsrChange]
    ) -> tuple[commands.IsrResult, ...]:
        results: tuple[commands.IsrResult, ...] = await self._submit(
            commands.AlterPartition(broker_id, broker_epoch, tuple(changes))
        )
        return results

    async def elect_leaders(
        self, election: commands.ElectionType, partitions: Sequence[TopicPartition] | None = None
    ) -> tuple[commands.ElectionResult, ...]:
        wanted = None if partitions is None else tuple(partitions)
        results: tuple[commands.ElectionResult, ...] = await self._submit(commands.ElectLeaders(election, wanted))
        return results

    async def controlled_shutdown(self, broker_id: NodeId, broker_epoch: int = -1) -> tuple[TopicPartition, ...]:
        """Moves leadership away from a broker; returns the partitions that have no other in-sync replica."""
        remaining: tuple[TopicPartition, ...] = await self._submit(commands.ControlledShutdown(broker_id, broker_epoch))
        return remaining

    async def allocate_producer_id_block(self) -> range:
        block: range = await self._submit(commands.AllocateProducerIds(self._broker_id))
        return block
