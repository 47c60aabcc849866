"""What the broker and its handlers ask of the cluster: the image to look things up in, and changes to it.

Each request is one command to the controller machine and returns what it decided, once that is durable and every
listener has heard of it. Raises KafkaError with NOT_CONTROLLER where another broker must be asked. How it is carried
out is `membership.py`.
"""

from collections.abc import Sequence

from barnabas.machines.controller import commands
from barnabas.metadata.image import ConfigResource
from barnabas.server.auto_topic_creation import AutoTopicCreation
from barnabas.server.membership import DeltaListener, InconsistentClusterIdError, Membership
from barnabas.types import TopicPartition

__all__ = ["Cluster", "DeltaListener", "InconsistentClusterIdError"]


class Cluster(Membership):
    """See `Membership` for what it is made with."""

    auto_creation: AutoTopicCreation

    async def start(self) -> None:
        self.auto_creation = AutoTopicCreation(self.create_topics)
        await super().start()

    async def stop(self) -> None:
        await self.auto_creation.stop()
        await super().stop()

    async def create_topics(
        self, topics: Sequence[commands.NewTopic], *, validate_only: bool = False
    ) -> tuple[commands.TopicResult, ...]:
        results: tuple[commands.TopicResult, ...] = await self.submit(
            commands.CreateTopics(tuple(topics), validate_only)
        )
        return results

    async def adopt_topics(self, found: commands.AdoptTopics) -> commands.Adoption:
        adoption: commands.Adoption = await self.submit(found)
        return adoption

    async def delete_topics(self, topics: Sequence[commands.TopicToDelete]) -> tuple[commands.DeletedTopic, ...]:
        results: tuple[commands.DeletedTopic, ...] = await self.submit(commands.DeleteTopics(tuple(topics)))
        return results

    async def create_partitions(
        self, topics: Sequence[commands.NewPartitions], *, validate_only: bool = False
    ) -> tuple[commands.NewPartitionsResult, ...]:
        results: tuple[commands.NewPartitionsResult, ...] = await self.submit(
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
        results: tuple[commands.ConfigResult, ...] = await self.submit(
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
        results: tuple[commands.ConfigResult, ...] = await self.submit(commands.AlterConfigs(values, validate_only))
        return results

    async def alter_partition(
        self, broker_id: int, broker_epoch: int, changes: Sequence[commands.IsrChange]
    ) -> tuple[commands.IsrResult, ...]:
        results: tuple[commands.IsrResult, ...] = await self.submit(
            commands.AlterPartition(broker_id, broker_epoch, tuple(changes))
        )
        return results

    async def elect_leaders(
        self, election: commands.ElectionType, partitions: Sequence[TopicPartition] | None = None
    ) -> tuple[commands.ElectionResult, ...]:
        wanted = None if partitions is None else tuple(partitions)
        results: tuple[commands.ElectionResult, ...] = await self.submit(commands.ElectLeaders(election, wanted))
        return results

    async def controlled_shutdown(self, broker_id: int, broker_epoch: int = -1) -> tuple[TopicPartition, ...]:
        """Moves leadership away from a broker; returns what it still leads for want of another in-sync replica."""
        remaining: tuple[TopicPartition, ...] = await self.submit(commands.ControlledShutdown(broker_id, broker_epoch))
        return remaining

    async def allocate_producer_id_block(self) -> range:
        block: range = await self.submit(commands.AllocateProducerIds(self.broker_id))
        return block
