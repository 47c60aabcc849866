"""The cluster as a whole: brokers and controller, features, the metadata quorum, brokers that are gone for good."""

from collections.abc import Mapping
from dataclasses import dataclass

from barnabas.client.admin.errors import admin_error, check
from barnabas.client.admin.requests import AdminRequests
from barnabas.client.admin.types import (
    BrokerDescription,
    ClusterDescription,
    FeatureMetadata,
    FeatureRange,
    FeatureUpdate,
    QuorumInfo,
    QuorumReplica,
)
from barnabas.client.admin.types.acls import authorized_operations
from barnabas.client.errors import UnsupportedVersionError
from barnabas.client.metadata import Node
from barnabas.client.retry import Deadline
from barnabas.protocol.messages import describe_quorum as quorum_messages
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.describe_cluster import DescribeClusterRequest
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.protocol.messages.unregister_broker import UnregisterBrokerRequest
from barnabas.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from barnabas.types import NO_TOPIC_ID, topic_id_text

METADATA_LOG = "__cluster_metadata"


@dataclass(frozen=True, slots=True)
class ClusterAdmin:
    """Brokers, features and the metadata quorum."""

    requests: AdminRequests

    async def describe_cluster(
        self,
        *,
        include_authorized_operations: bool = False,
        include_fenced_brokers: bool = False,
        timeout: float | None = None,
    ) -> ClusterDescription:
        """Cluster id, controller and brokers, as one of the brokers knows them."""
        deadline = self.requests.deadline(timeout)

        async def send_to(node_id: int) -> ClusterDescription:
            request = DescribeClusterRequest(
                include_cluster_authorized_operations=include_authorized_operations,
                include_fenced_brokers=include_fenced_brokers,
            )
            try:
                response = await self.requests.send(
                    node_id, request, deadline, min_version=2 if include_fenced_brokers else 0
                )
            except UnsupportedVersionError:
                if include_fenced_brokers:
                    raise
                return await self._cluster_by_metadata(node_id, deadline)
            check(response.error_code, response.error_message)
            brokers = [
                BrokerDescription(node=Node(each.broker_id, each.host, each.port, each.rack), is_fenced=each.is_fenced)
                for each in response.brokers
            ]
            return _description(
                response.cluster_id,
                response.controller_id,
                brokers,
                response.cluster_authorized_operations if include_authorized_operations else None,
            )

        return await self.requests.call(self.requests.any_node, send_to, deadline)

    async def _cluster_by_metadata(self, node_id: int, deadline: Deadline) -> ClusterDescription:
        response = await self.requests.send(
            node_id, MetadataRequest(topics=[], allow_auto_topic_creation=False), deadline
        )
        brokers = [
            BrokerDescription(node=Node(each.node_id, each.host, each.port, each.rack)) for each in response.brokers
        ]
        return _description(response.cluster_id, response.controller_id, brokers, None)

    async def describe_features(self, *, broker_id: int | None = None, timeout: float | None = None) -> FeatureMetadata:
        """Feature levels in force, and those that the broker (any, or the one named) supports."""
        deadline = self.requests.deadline(timeout)

        async def locate() -> int:
            if broker_id is None:
                return await self.requests.any_node()
            place = (await self.requests.on_brokers([broker_id]))[broker_id]
            if isinstance(place, int):
                return place
            raise place

        async def send_to(node_id: int) -> FeatureMetadata:
            request = ApiVersionsRequest(client_software_name="barnabas", client_software_version="1")
            response = await self.requests.send(node_id, request, deadline)
            check(response.error_code)
            known = response.finalized_features_epoch >= 0
            return FeatureMetadata(
                finalized={
                    each.name: FeatureRange(each.min_version_level, each.max_version_level)
                    for each in response.finalized_features
                },
                finalized_epoch=response.finalized_features_epoch if known else None,
                supported={
                    each.name: FeatureRange(each.min_version, each.max_version) for each in response.supported_features
                },
                api_versions={
                    each.api_key: FeatureRange(each.min_version, each.max_version) for each in response.api_keys
                },
            )

        return await self.requests.call(locate, send_to, deadline)

    async def update_features(
        self,
        updates: Mapping[str, FeatureUpdate],
        *,
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> None:
        """Put other feature levels in force, all of them or none."""
        deadline = self.requests.deadline(timeout)

        async def send_to(node_id: int) -> None:
            request = UpdateFeaturesRequest(
                timeout_ms=self.requests.request_timeout_ms(deadline),
                feature_updates=[
                    FeatureUpdateKey(
                        feature=name, max_version_level=update.max_version_level, upgrade_type=int(update.upgrade_type)
                    )
                    for name, update in updates.items()
                ],
                validate_only=validate_only,
            )
            response = await self.requests.send(node_id, request, deadline, min_version=1)
            check(response.error_code, response.error_message)
            for result in response.results:
                check(result.error_code, result.error_message and f"{result.feature}: {result.error_message}")

        await self.requests.call(self.requests.controller, send_to, deadline, on_retry=self.requests.forget_controller)

    async def describe_quorum(self, *, timeout: float | None = None) -> QuorumInfo:
        """The replicas of the metadata log of a KRaft cluster, and how far they are."""
        deadline = self.requests.deadline(timeout)

        async def send_to(node_id: int) -> QuorumInfo:
            partition = quorum_messages.RequestPartitionData(partition_index=0)
            topic = quorum_messages.RequestTopicData(topic_name=METADATA_LOG, partitions=[partition])
            response = await self.requests.send(
                node_id, quorum_messages.DescribeQuorumRequest(topics=[topic]), deadline
            )
            check(response.error_code, response.error_message)
            for described in response.topics:
                for log in described.partitions:
                    check(log.error_code, log.error_message, topic=described.topic_name, partition=log.partition_index)
                    return _quorum(log, response.nodes)
            raise admin_error(-1, f"the broker said nothing about {METADATA_LOG}")

        return await self.requests.call(self.requests.any_node, send_to, deadline)

    async def unregister_broker(self, broker_id: int, *, timeout: float | None = None) -> None:
        """Forget a broker that has stopped and will not come back."""
        deadline = self.requests.deadline(timeout)

        async def send_to(node_id: int) -> None:
            response = await self.requests.send(node_id, UnregisterBrokerRequest(broker_id=broker_id), deadline)
            check(response.error_code, response.error_message)

        await self.requests.call(self.requests.any_node, send_to, deadline)


def _description(
    cluster_id: str | None, controller_id: int, brokers: list[BrokerDescription], operations: int | None
) -> ClusterDescription:
    by_id = {broker.node.id: broker for broker in brokers}
    controller = by_id.get(controller_id)
    return ClusterDescription(
        cluster_id=cluster_id,
        controller=controller.node if controller else None,
        brokers=tuple(by_id[each] for each in sorted(by_id)),
        authorized_operations=None if operations is None else authorized_operations(operations),
    )


def _quorum(log: quorum_messages.PartitionData, nodes: list[quorum_messages.Node]) -> QuorumInfo:
    return QuorumInfo(
        leader_id=log.leader_id,
        leader_epoch=log.leader_epoch,
        high_watermark=log.high_watermark,
        voters=tuple(map(_replica, log.current_voters)),
        observers=tuple(map(_replica, log.observers)),
        nodes={node.node_id: {each.name: f"{each.host}:{each.port}" for each in node.listeners} for node in nodes},
    )


def _replica(state: quorum_messages.ReplicaState) -> QuorumReplica:
    directory = state.replica_directory_id
    return QuorumReplica(
        replica_id=state.replica_id,
        directory_id=None if directory == NO_TOPIC_ID else topic_id_text(directory),
        log_end_offset=state.log_end_offset,
        last_fetch_timestamp=state.last_fetch_timestamp if state.last_fetch_timestamp >= 0 else None,
        last_caught_up_timestamp=state.last_caught_up_timestamp if state.last_caught_up_timestamp >= 0 else None,
    )
