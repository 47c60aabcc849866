"""Requests of this broker to the controller, one method per command.

Each returns what the controller decided, once that is durable and every listener has been called. What a broker needs
for itself (producer ids, topics on demand, in-sync replicas) goes to the controller wherever it is; the rest raises
KafkaError with NOT_CONTROLLER if that is another broker, and is forwarded as a whole. `cluster_membership.py` carries
them out.
"""

from collections.abc import Sequence

from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.controller import commands
from barnabas.machines.controller.acls import Acl, AclFilter
from barnabas.machines.controller.delegation_tokens import (
    CreateToken,
    DelegationToken,
    ExpireToken,
    RemoveExpiredTokens,
    RenewToken,
)
from barnabas.metadata.image import ConfigResource
from barnabas.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from barnabas.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    PartitionData,
    TopicData,
)
from barnabas.protocol.messages.controlled_shutdown import ControlledShutdownRequest, ControlledShutdownResponse
from barnabas.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from barnabas.server.broker_links import LinkUse
from barnabas.server.cluster_membership import ClusterMembership
from barnabas.server.controller_channel import ControllerChannel
from barnabas.types import NodeId, TopicId, TopicPartition

REQUEST_TIMEOUT_MS = 30_000
CODES = {int(error): error for error in ErrorCode}


class ControllerClient:
    def __init__(
        self,
        membership: ClusterMembership,
        channel: ControllerChannel | None = None,
        request_timeout_ms: int = REQUEST_TIMEOUT_MS,
    ) -> None:
        """Without a channel only a local controller is asked."""
        self._membership = membership
        self._submit = membership.submit
        self._channel = channel
        self._request_timeout_ms = request_timeout_ms

    async def create_topics(
        self,
        topics: Sequence[commands.NewTopic],
        *,
        validate_only: bool = False,
        charge: commands.ChargeMutations | None = None,
    ) -> tuple[commands.TopicResult, ...]:
        results: tuple[commands.TopicResult, ...] = await self._submit(
            commands.CreateTopics(tuple(topics), validate_only, charge)
        )
        return results

    async def adopt_topics(self, found: commands.AdoptTopics) -> commands.Adoption:
        adoption: commands.Adoption = await self._submit(found)
        return adoption

    async def delete_topics(
        self, topics: Sequence[commands.TopicToDelete], *, charge: commands.ChargeMutations | None = None
    ) -> tuple[commands.DeletedTopic, ...]:
        results: tuple[commands.DeletedTopic, ...] = await self._submit(commands.DeleteTopics(tuple(topics), charge))
        return results

    async def create_partitions(
        self,
        topics: Sequence[commands.NewPartitions],
        *,
        validate_only: bool = False,
        charge: commands.ChargeMutations | None = None,
    ) -> tuple[commands.NewPartitionsResult, ...]:
        results: tuple[commands.NewPartitionsResult, ...] = await self._submit(
            commands.CreatePartitions(tuple(topics), validate_only, charge)
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

    async def alter_scram_credentials(
        self, changes: Sequence[commands.ScramChange]
    ) -> tuple[commands.ScramResult, ...]:
        results: tuple[commands.ScramResult, ...] = await self._submit(commands.AlterScramCredentials(tuple(changes)))
        return results

    async def create_acls(self, acls: Sequence[Acl]) -> tuple[commands.AclResult, ...]:
        results: tuple[commands.AclResult, ...] = await self._submit(commands.CreateAcls(tuple(acls)))
        return results

    async def delete_acls(self, filters: Sequence[AclFilter]) -> tuple[commands.DeletedAcls, ...]:
        results: tuple[commands.DeletedAcls, ...] = await self._submit(commands.DeleteAcls(tuple(filters)))
        return results

    async def create_token(self, command: CreateToken) -> DelegationToken:
        token: DelegationToken = await self._submit(command)
        return token

    async def change_token(self, command: RenewToken | ExpireToken) -> int:
        """Returns when it expires now."""
        expires_at_ms: int = await self._submit(command)
        return expires_at_ms

    async def remove_expired_tokens(self) -> int:
        """Returns how many were removed."""
        removed: int = await self._submit(RemoveExpiredTokens())
        return removed

    async def alter_quotas(self, command: commands.AlterQuotas) -> tuple[commands.QuotaResult, ...]:
        results: tuple[commands.QuotaResult, ...] = await self._submit(command)
        return results

    async def alter_partition(
        self, broker_id: NodeId, broker_epoch: int, changes: Sequence[commands.IsrChange]
    ) -> tuple[commands.IsrResult, ...]:
        """For this broker, wherever the controller is. What became of a change is in the next image."""
        response: AlterPartitionResponse | None = None
        if self._channel is not None:
            request = AlterPartitionRequest(broker_id=broker_id, broker_epoch=broker_epoch, topics=_as_topics(changes))
            response = await self._channel.request(request, LinkUse.CONTROL, self._request_timeout_ms)
        if response is None:
            return await self.alter_partition_here(broker_id, broker_epoch, changes)
        _raise_if(response.error_code)
        return tuple(
            commands.IsrResult(
                topic.topic_id,
                each.partition_index,
                CODES[each.error_code],
                partition_epoch=-1 if each.error_code else each.partition_epoch,
            )
            for topic in response.topics
            for each in topic.partitions
        )

    async def alter_partition_here(
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

    async def controlled_shutdown(self, timeout_ms: int | None = None) -> tuple[TopicPartition, ...]:
        """Moves leadership away from this broker; returns the partitions that have no other in-sync replica."""
        membership = self._membership
        response: ControlledShutdownResponse | None = None
        if self._channel is not None:
            request = ControlledShutdownRequest(broker_id=membership.broker_id, broker_epoch=membership.broker_epoch)
            response = await self._channel.request(request, LinkUse.CONTROL, timeout_ms or self._request_timeout_ms)
        if response is None:
            return await self.controlled_shutdown_here(membership.broker_id, membership.broker_epoch)
        _raise_if(response.error_code)
        return tuple(TopicPartition(each.topic_name, each.partition_index) for each in response.remaining_partitions)

    async def controlled_shutdown_here(self, broker_id: NodeId, broker_epoch: int) -> tuple[TopicPartition, ...]:
        remaining: tuple[TopicPartition, ...] = await self._submit(commands.ControlledShutdown(broker_id, broker_epoch))
        return remaining

    async def alter_reassignments(
        self, partitions: Sequence[commands.Reassignment], *, allow_replication_factor_change: bool = True
    ) -> tuple[commands.ReassignmentResult, ...]:
        results: tuple[commands.ReassignmentResult, ...] = await self._submit(
            commands.AlterReassignments(tuple(partitions), allow_replication_factor_change)
        )
        return results

    async def unregister_broker(self, broker_id: int) -> None:
        await self._submit(commands.UnregisterBroker(broker_id))

    async def balance_leaders(self) -> int:
        """Returns how many leaders moved to preferred replicas."""
        moved: int = await self._submit(commands.BalanceLeaders())
        return moved

    async def allocate_producer_id_block(self, broker_id: NodeId | None = None) -> range:
        """For this broker, wherever the controller is; as controller, for another one."""
        response: AllocateProducerIdsResponse | None = None
        membership = self._membership
        if broker_id is None and self._channel is not None:
            request = AllocateProducerIdsRequest(broker_id=membership.broker_id, broker_epoch=membership.broker_epoch)
            response = await self._channel.request(request, LinkUse.CONTROL, self._request_timeout_ms)
        if response is not None:
            _raise_if(response.error_code)
            return range(response.producer_id_start, response.producer_id_start + response.producer_id_len)
        wanted = membership.broker_id if broker_id is None else broker_id
        block: range = await self._submit(commands.AllocateProducerIds(wanted))
        return block

    async def create_topics_anywhere(self, topics: Sequence[commands.NewTopic]) -> list[tuple[str, ErrorCode, str]]:
        """(name, error, message) of topics that this broker wants, such as those of the coordinators."""
        response: CreateTopicsResponse | None = None
        if self._channel is not None:
            request = CreateTopicsRequest(
                topics=[_as_requested(topic) for topic in topics], timeout_ms=self._request_timeout_ms
            )
            response = await self._channel.request(request, LinkUse.CONTROL, self._request_timeout_ms)
        if response is None:
            return [(each.name, each.error, each.message or "") for each in await self.create_topics(topics)]
        return [(each.name, CODES[each.error_code], each.error_message or "") for each in response.topics]


def _as_topics(changes: Sequence[commands.IsrChange]) -> list[TopicData]:
    topics: dict[TopicId, TopicData] = {}
    for change in changes:
        topic = topics.setdefault(change.topic_id, TopicData(topic_id=change.topic_id, partitions=[]))
        topic.partitions.append(
            PartitionData(
                partition_index=change.partition,
                leader_epoch=change.leader_epoch,
                new_isr_with_epochs=[
                    BrokerState(broker_id=each, broker_epoch=epoch)
                    for each, epoch in zip(change.in_sync_replicas, change.broker_epochs, strict=True)
                ],
                leader_recovery_state=int(change.leader_recovering),
                partition_epoch=change.partition_epoch,
            )
        )
    return list(topics.values())


def _raise_if(error_code: int) -> None:
    if error_code != ErrorCode.NONE:
        raise KafkaError(CODES[error_code])


def _as_requested(topic: commands.NewTopic) -> CreatableTopic:
    return CreatableTopic(
        name=topic.name,
        num_partitions=topic.num_partitions,
        replication_factor=topic.replication_factor,
        configs=[CreatableTopicConfig(name=name, value=value) for name, value in topic.configs],
    )
