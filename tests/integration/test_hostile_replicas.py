"""A client that poses as a broker: it gets the code that Apache Kafka returns, and changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from eventually import eventually
from raw_client import batch, fetch_request
from secured_cluster import AUTHORIZER, USERS, LoggedInClient, secured_cluster

from barnabas import Admin
from barnabas.client.admin.types import AclBinding, AclOperation, AclPermission, ResourceType
from barnabas.errors import ErrorCode
from barnabas.protocol import encode_request
from barnabas.protocol.messages import (
    add_partitions_to_txn,
    allocate_producer_ids,
    alter_partition,
    controlled_shutdown,
    create_topics,
    envelope,
    list_groups,
    unregister_broker,
    write_txn_markers,
)
from barnabas.server.broker import Broker
from barnabas.server.envelope import principal_bytes
from barnabas.server.request import Principal
from barnabas.testing import Cluster

DENIED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
TOPIC = "orders"


class Attack:
    """What a client asks that knows everything about the cluster but a broker's password."""

    def __init__(self, cluster: Cluster, options: dict[str, str], listener: str) -> None:
        self.cluster = cluster
        self.leader = cluster.leader(TOPIC, 0)
        self.others = [number for number in range(3) if number != self.leader]
        self._options = options
        self._listener = listener

    def broker(self, number: int) -> Broker:
        return self.cluster.brokers[number]._running()

    def ask(self, number: int, request: Any, version: int) -> Any:
        address = self.cluster.brokers[number].address_of(self._listener)
        with LoggedInClient(address, self._options) as client:
            return client.ask(request, version)

    def ask_controller(self, request: Any, version: int = 0) -> ErrorCode:
        return ErrorCode(self.ask(self.cluster.controller, request, version).error_code)

    @property
    def high_watermark(self) -> int:
        return self.broker(self.leader).replicas.find(TOPIC, 0).log.high_watermark

    def fetch_as(self, replica_id: int) -> ErrorCode:
        response = self.ask(self.leader, fetch_request(TOPIC, 1, replica_id=replica_id), 12)
        codes = {part.error_code for topic in response.responses for part in topic.partitions}
        return ErrorCode(response.error_code or max(codes))

    def shrink_isr(self) -> ErrorCode:
        image = self.broker(self.leader).cluster.image
        partition = image.topics[TOPIC].partitions[0]
        leader_epoch = image.brokers[self.leader].epoch
        change = alter_partition.PartitionData(
            partition_index=0,
            leader_epoch=partition.leader_epoch,
            new_isr_with_epochs=[alter_partition.BrokerState(broker_id=self.leader, broker_epoch=leader_epoch)],
            partition_epoch=partition.partition_epoch,
        )
        topic = alter_partition.TopicData(topic_id=image.topics[TOPIC].topic_id, partitions=[change])
        request = alter_partition.AlterPartitionRequest(
            broker_id=self.leader, broker_epoch=leader_epoch, topics=[topic]
        )
        return self.ask_controller(request, 3)

    def shut_down(self) -> ErrorCode:
        epoch = self.broker(self.leader).cluster.broker_epoch
        request = controlled_shutdown.ControlledShutdownRequest(broker_id=self.leader, broker_epoch=epoch)
        return self.ask_controller(request, 3)

    def take_producer_ids(self) -> ErrorCode:
        epoch = self.broker(self.leader).cluster.broker_epoch
        request = allocate_producer_ids.AllocateProducerIdsRequest(broker_id=self.leader, broker_epoch=epoch)
        return self.ask_controller(request)

    def create_topic_as(self, user: str) -> ErrorCode:
        wanted = create_topics.CreatableTopic(name="theirs", num_partitions=1, replication_factor=1)
        return self.send_envelope(create_topics.CreateTopicsRequest(topics=[wanted], timeout_ms=1000), 7, user)

    def send_envelope(self, request: Any, version: int, user: str) -> ErrorCode:
        sealed = envelope.EnvelopeRequest(
            request_data=encode_request(request, version, 1, "me")[4:],
            request_principal=principal_bytes(Principal("User", user)),
            client_host_address=b"\x7f\0\0\1",
        )
        return self.ask_controller(sealed)

    def verify_transaction(self) -> ErrorCode:
        transaction = add_partitions_to_txn.AddPartitionsToTxnTransaction(
            transactional_id="t",
            producer_id=1,
            topics=[add_partitions_to_txn.AddPartitionsToTxnTopic(name=TOPIC, partitions=[0])],
        )
        request = add_partitions_to_txn.AddPartitionsToTxnRequest(transactions=[transaction])
        return ErrorCode(self.ask(self.leader, request, 4).error_code)

    def write_marker(self) -> ErrorCode:
        marker = write_txn_markers.WritableTxnMarker(
            producer_id=7,
            producer_epoch=0,
            transaction_result=True,
            topics=[write_txn_markers.WritableTxnMarkerTopic(name=TOPIC, partition_indexes=[0])],
            coordinator_epoch=0,
        )
        response = self.ask(self.leader, write_txn_markers.WriteTxnMarkersRequest(markers=[marker]), 1)
        return ErrorCode(response.markers[0].topics[0].partitions[0].error_code)

    def unregister(self) -> ErrorCode:
        return self.ask_controller(unregister_broker.UnregisterBrokerRequest(broker_id=self.others[0]))


@contextmanager
def nothing_changes(attack: Attack) -> Iterator[None]:
    """The leader is cut off from its followers, with a record that none of them has: it is not committed."""
    for each in attack.others:
        attack.cluster.partition(attack.leader, each)
    with LoggedInClient(attack.cluster.brokers[attack.leader].bootstrap, writer(attack.cluster)) as client:
        assert not client.produce(TOPIC, batch(b"not replicated"), acks=1).error_code
    log = attack.broker(attack.leader).replicas.find(TOPIC, 0).log
    before = [attack.broker(number).cluster.image for number in range(3)]
    producer_ids = [each.next_producer_id for each in before]
    yield
    assert (attack.high_watermark, log.log_end_offset) == (0, 1)
    after = [attack.broker(number).cluster.image for number in range(3)]
    assert [each.topics for each in after] == [each.topics for each in before]
    assert [each.brokers for each in after] == [each.brokers for each in before]
    assert [each.next_producer_id for each in after] == producer_ids


def writer(cluster: Cluster) -> dict[str, str]:
    return cluster.client_options("admin", mechanism="PLAIN")


def make_topic(cluster: Cluster) -> None:
    with Admin(cluster.bootstrap, **writer(cluster)) as admin:
        admin.create_topic(TOPIC, partitions=1, replication_factor=3, config={"min.insync.replicas": "2"})
    cluster.leader(TOPIC, 0)


def test_a_user_without_cluster_rights() -> None:
    with secured_cluster("plain") as cluster:
        make_topic(cluster)
        attack = Attack(cluster, cluster.client_options("alice", mechanism="PLAIN"), "SASL_SSL")
        with nothing_changes(attack):
            for replica_id in attack.others:
                assert attack.fetch_as(replica_id) is ErrorCode.TOPIC_AUTHORIZATION_FAILED
            assert attack.shrink_isr() is DENIED
            assert attack.take_producer_ids() is DENIED
            assert attack.create_topic_as("admin") is DENIED
            assert attack.verify_transaction() is DENIED
            assert attack.write_marker() is DENIED
            assert attack.unregister() is DENIED
            assert attack.shut_down() is DENIED


@pytest.mark.parametrize(("between", "door"), [("SASL_PLAINTEXT", "PLAINTEXT"), ("PLAINTEXT", "SASL_PLAINTEXT")])
def test_a_client_on_another_listener_where_nobody_has_rights(between: str, door: str) -> None:
    settings = {"inter.broker.listener.name": between}
    with Cluster(3, settings, listeners=[between, door], users=USERS) as cluster:
        make_topic(cluster)
        options = cluster.client_options("admin", mechanism="PLAIN", listener=door)
        attack = Attack(cluster, options, door)
        with nothing_changes(attack):
            for replica_id in attack.others:
                assert attack.fetch_as(replica_id) is DENIED
            assert attack.shrink_isr() is DENIED
            assert attack.take_producer_ids() is DENIED
            assert attack.create_topic_as("admin") is DENIED
            assert attack.verify_transaction() is DENIED
            assert attack.shut_down() is DENIED


def test_a_right_counts_on_the_listener_of_brokers_only() -> None:
    settings = {
        "authorizer.class.name": AUTHORIZER,
        "super.users": "User:admin",
        "inter.broker.listener.name": "SASL_PLAINTEXT",
    }
    with Cluster(3, settings, listeners=["SASL_PLAINTEXT", "PLAINTEXT"], users=USERS) as cluster:
        make_topic(cluster)
        for user in ("User:ANONYMOUS", "User:alice"):
            right = AclBinding(
                resource_type=ResourceType.CLUSTER,
                resource_name="kafka-cluster",
                principal=user,
                operation=AclOperation.CLUSTER_ACTION,
                permission=AclPermission.ALLOW,
            )
            with Admin(cluster.bootstrap, **writer(cluster)) as admin:
                admin.create_acls([right])
        door = Attack(cluster, {"security_protocol": "PLAINTEXT"}, "PLAINTEXT")
        inside = Attack(cluster, cluster.client_options("alice", mechanism="PLAIN"), "SASL_PLAINTEXT")
        eventually(lambda: inside.take_producer_ids() is ErrorCode.NONE, timeout=60)
        assert door.take_producer_ids() is DENIED


def test_an_envelope_holds_only_what_the_controller_must_decide() -> None:
    with secured_cluster("plain") as cluster:
        make_topic(cluster)
        attack = Attack(cluster, writer(cluster), "SASL_SSL")
        assert attack.create_topic_as("alice") is ErrorCode.NONE  # refused inside: alice may not
        assert attack.send_envelope(list_groups.ListGroupsRequest(), 4, "admin") is ErrorCode.INVALID_REQUEST
        assert attack.send_envelope(fetch_request(TOPIC, 0, replica_id=1), 12, "admin") is ErrorCode.INVALID_REQUEST
        assert "theirs" not in attack.broker(cluster.controller).cluster.image.topics


def test_a_broker_that_stops_says_in_which_epoch() -> None:
    with secured_cluster("plain") as cluster:
        make_topic(cluster)
        attack = Attack(cluster, writer(cluster), "SASL_SSL")
        for epoch in (-1, 10**9):
            request = controlled_shutdown.ControlledShutdownRequest(broker_id=attack.leader, broker_epoch=epoch)
            assert attack.ask_controller(request, 3) is ErrorCode.STALE_BROKER_EPOCH
