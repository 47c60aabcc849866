"""What Apache Kafka returns to a user who poses as a broker, request by request, and what Barnabas returns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kafka_process import QuickKafka, why_no_kafka
from raw_client import ConnectionEnded, fetch_request
from secured_cluster import AUTHORIZER, USERS, LoggedInClient
from server_process import free_port

from barnabas.config.jaas import quoted
from barnabas.errors import ErrorCode
from barnabas.protocol.messages import (
    add_partitions_to_txn,
    allocate_producer_ids,
    alter_partition,
    controlled_shutdown,
    envelope,
    write_txn_markers,
)
from barnabas.testing import Broker

pytestmark = [
    pytest.mark.java,
    pytest.mark.soak,
    pytest.mark.skipif(why_no_kafka() is not None, reason=str(why_no_kafka())),
]
TOPIC = "orders"
CLOSED = "closed"
DENIED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED.name
ADMIN, ALICE = (
    {"security_protocol": "SASL_PLAINTEXT", "sasl_username": name, "sasl_password": USERS[name]}
    for name in ("admin", "alice")
)


def code_of(response: Any) -> str:
    """The one error in it."""
    for field in response.__schema__.fields:
        value = getattr(response, field)
        if "error_code" in field and value:
            return ErrorCode(value).name
        if isinstance(value, list) and value and hasattr(value[0], "__schema__"):
            found = code_of(value[0])
            if found != ErrorCode.NONE.name:
                return found
    return ErrorCode.NONE.name


def requests() -> dict[str, tuple[Any, int]]:
    transaction = add_partitions_to_txn.AddPartitionsToTxnTransaction(
        transactional_id="t",
        producer_id=1,
        topics=[add_partitions_to_txn.AddPartitionsToTxnTopic(name=TOPIC, partitions=[0])],
    )
    marker = write_txn_markers.WritableTxnMarker(
        producer_id=7,
        producer_epoch=0,
        topics=[write_txn_markers.WritableTxnMarkerTopic(name=TOPIC, partition_indexes=[0])],
    )
    return {
        "fetch": (fetch_request(TOPIC, 0, replica_id=1), 12),
        "verify": (add_partitions_to_txn.AddPartitionsToTxnRequest(transactions=[transaction]), 4),
        "marker": (write_txn_markers.WriteTxnMarkersRequest(markers=[marker]), 1),
        "alter": (alter_partition.AlterPartitionRequest(broker_id=1, broker_epoch=1, topics=[]), 3),
        "shutdown": (controlled_shutdown.ControlledShutdownRequest(broker_id=1, broker_epoch=1), 3),
        "ids": (allocate_producer_ids.AllocateProducerIdsRequest(broker_id=1, broker_epoch=1), 0),
        "envelope": (envelope.EnvelopeRequest(request_data=b"x", client_host_address=b"\x7f\0\0\1"), 0),
    }


def codes(bootstrap: str) -> dict[str, str]:
    with LoggedInClient(bootstrap, ADMIN) as admin:
        admin.create_topic(TOPIC)
    found = {}
    for name, (request, version) in requests().items():
        with LoggedInClient(bootstrap, ALICE) as client:
            try:
                found[name] = code_of(client.ask(request, version))
            except ConnectionEnded:
                found[name] = CLOSED
    return found


def settings() -> dict[str, str]:
    users = " ".join(f"user_{name}={quoted(password)}" for name, password in USERS.items())
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    return {
        "authorizer.class.name": AUTHORIZER,
        "super.users": "User:admin;User:ANONYMOUS",
        "sasl.enabled.mechanisms": "PLAIN",
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f"{module} required {users};",
    }


def test_the_codes_of_apache_kafka(tmp_path: Path) -> None:
    kafka = QuickKafka(tmp_path / "kafka", settings())
    door = free_port()
    kafka.settings["listeners"] += f",SASL_PLAINTEXT://127.0.0.1:{door}"
    kafka.settings["listener.security.protocol.map"] = (
        "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT"
    )
    with kafka:
        theirs = codes(f"127.0.0.1:{door}")
    own = {**settings(), "listeners": "SASL_PLAINTEXT://127.0.0.1:0,PLAINTEXT://127.0.0.1:0"}
    with Broker(own) as broker:
        ours = codes(broker.address_of("SASL_PLAINTEXT"))
    # Brokers of Kafka 4 send these to controllers, on a listener that clients do not have.
    to_controllers = ("alter", "shutdown", "ids", "envelope")
    assert {theirs.pop(name) for name in to_controllers} == {CLOSED}
    assert {ours.pop(name) for name in to_controllers} == {DENIED}
    assert ours == theirs
    assert theirs["fetch"] == ErrorCode.TOPIC_AUTHORIZATION_FAILED.name
