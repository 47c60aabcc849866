"""Brokers that reach each other by TLS and SASL: everything that they do together, with access rules on."""

from __future__ import annotations

import pytest
from eventually import eventually
from raw_client import RawClient
from secured_cluster import AUTHORIZER, KINDS, LoggedInClient, librdkafka, secured_cluster
from transactions import transaction, transactional_producer

from barnabas import Admin, Producer
from barnabas.testing import Cluster
from barnabas.testing.topics import all_records

every_kind = pytest.mark.parametrize("kind", KINDS)


def in_sync(cluster: Cluster, topic: str) -> list[set[int]]:
    """As each broker that runs sees it, of the topic's first partition."""
    found = []
    for broker in cluster.brokers:
        if broker.is_running:
            partition = broker._running().cluster.image.partition(topic, 0)
            found.append(set() if partition is None else set(partition.in_sync_replicas))
    return found


@every_kind
def test_replication_transactions_forwarding_and_failover(kind: str) -> None:
    with secured_cluster(kind) as cluster:
        options = cluster.client_options("admin", mechanism="PLAIN")
        with Admin(cluster.bootstrap, **options) as admin:
            admin.create_topic("orders", partitions=2, replication_factor=3, config={"min.insync.replicas": "2"})
        follower = cluster.brokers[(cluster.controller + 1) % 3]
        with LoggedInClient(follower.bootstrap, options) as client:
            client.create_topic("forwarded")  # by the controller, in an Envelope

        producer = transactional_producer(cluster.bootstrap, "t", **librdkafka(options, cluster.bootstrap))
        transaction(producer, "orders", [b"committed"])
        transaction(producer, "orders", [b"aborted"], commit=False)
        before = cluster.leader("orders", 0)
        cluster.kill(before)
        assert cluster.leader("orders", 0) != before
        with Producer(cluster.bootstrap, acks="all", **options) as survivor:
            survivor.send("orders", b"after", partition=0).result(30)
        cluster.restart(before)
        eventually(lambda: in_sync(cluster, "orders"), lambda found: found == [{0, 1, 2}] * 3, timeout=60)
        transaction(producer, "orders", [b"last"])

        def committed() -> list[bytes | None]:
            found = all_records(cluster.bootstrap, "orders", committed=True, options=options)
            return [record.value for record in found]

        eventually(committed, lambda found: found == [b"committed", b"after", b"last"], timeout=60)
        topics = {name for each in cluster.brokers for name in each._running().cluster.image.topics}
        assert "forwarded" in topics


def test_a_cluster_that_runs_is_secured_broker_by_broker() -> None:
    given = {
        "authorizer.class.name": AUTHORIZER,
        "super.users": "User:ANONYMOUS",  # the brokers that are still on the old listener
        "inter.broker.listener.name": "PLAINTEXT",
    }
    with Cluster(3, given, listeners=["SASL_SSL", "PLAINTEXT"], users={"alice": "secret"}) as cluster:
        bootstrap = ",".join(broker.address_of("PLAINTEXT") for broker in cluster.brokers)
        with Admin(bootstrap) as admin:
            admin.create_topic("orders", partitions=1, replication_factor=3, config={"min.insync.replicas": "3"})
        for number, broker in enumerate(cluster.brokers):
            broker._settings["inter.broker.listener.name"] = "SASL_SSL"
            cluster.restart(number)
            eventually(lambda: in_sync(cluster, "orders"), lambda found: found == [{0, 1, 2}] * 3, timeout=60)
            with Producer(bootstrap, acks="all") as producer:  # old and new listeners are in use
                assert producer.send("orders", b"%d" % number).result(60).offset == number
            follower = cluster.brokers[(cluster.controller + 1) % 3]
            with RawClient(follower.address_of("PLAINTEXT")) as client:
                client.create_topic(f"forwarded-{number}")
