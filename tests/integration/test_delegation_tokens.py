"""Delegation tokens of a cluster: made at one broker, changed at another, used at a third, whoever is controller."""

from __future__ import annotations

import base64
from collections.abc import Iterator

import pytest
from eventually import eventually
from sasl_peer import Peer

from barnabas import Admin, Consumer, Producer
from barnabas.errors import ErrorCode
from barnabas.protocol.messages.create_delegation_token import CreatableRenewers, CreateDelegationTokenRequest
from barnabas.protocol.messages.describe_delegation_token import DescribeDelegationTokenRequest
from barnabas.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from barnabas.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from barnabas.testing import Cluster

LISTENER = "SASL_PLAINTEXT"
USERS = {"alice": "secret-5301", "bob": "secret-5302"}
SETTINGS = {"delegation.token.secret.key": "key-5303", "connection.failed.authentication.delay.ms": 10}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(3, SETTINGS, listeners=[LISTENER, "PLAINTEXT"], users=USERS) as started:
        yield started


class Client(Peer):
    """One who has logged in at one broker and asks nobody else."""

    def __init__(self, cluster: Cluster, broker: int, user: str) -> None:
        super().__init__(cluster.brokers[broker].address_of(LISTENER))
        assert self.log_in(user, USERS[user]).error_code == ErrorCode.NONE

    def knows(self, token_id: str) -> bool:
        return token_id in {each.token_id for each in self.ask(DescribeDelegationTokenRequest(owners=None), 3).tokens}


@pytest.mark.parametrize("first", range(3))
def test_any_broker_takes_any_request(cluster: Cluster, first: int) -> None:
    second, third = (first + 1) % 3, (first + 2) % 3
    with (
        Client(cluster, first, "alice") as at_first,
        Client(cluster, second, "bob") as at_second,
        Client(cluster, third, "alice") as at_third,
    ):
        renewer = CreatableRenewers(principal_type="User", principal_name="bob")
        request = CreateDelegationTokenRequest(renewers=[renewer], max_lifetime_ms=-1)
        created = at_first.ask(request, 3)
        assert created.error_code == ErrorCode.NONE
        assert (created.principal_name, created.token_requester_principal_name) == ("alice", "alice")
        for client in (at_first, at_second, at_third):
            eventually(lambda client=client: client.knows(created.token_id))  # type: ignore[misc]
        password = base64.b64encode(created.hmac).decode()
        for broker in cluster.brokers:
            with Peer(broker.address_of(LISTENER)) as holder:
                assert holder.log_in_by_scram(created.token_id, password, is_token=True).error_code == ErrorCode.NONE
                # Refused by the broker that knows the connection, before the request goes to the controller.
                for refused in (
                    request,
                    RenewDelegationTokenRequest(hmac=created.hmac, renew_period_ms=1),
                    ExpireDelegationTokenRequest(hmac=created.hmac, expiry_time_period_ms=-1),
                ):
                    response = holder.ask(refused, 2)
                    assert response.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        renewed = at_second.ask(RenewDelegationTokenRequest(hmac=created.hmac, renew_period_ms=-1), 2)
        assert renewed.error_code == ErrorCode.NONE and renewed.expiry_timestamp_ms >= created.expiry_timestamp_ms
        ended = at_third.ask(ExpireDelegationTokenRequest(hmac=created.hmac, expiry_time_period_ms=-1), 2)
        assert ended.error_code == ErrorCode.NONE
        for client in (at_first, at_second, at_third):
            eventually(lambda client=client: not client.knows(created.token_id))  # type: ignore[misc]
        for broker in cluster.brokers:
            with Peer(broker.address_of(LISTENER)) as holder:
                refused = holder.log_in_by_scram(created.token_id, password, is_token=True)
                assert refused.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


def test_our_clients_work_with_a_token(cluster: Cluster) -> None:
    addresses = ",".join(broker.address_of(LISTENER) for broker in cluster.brokers)
    options = cluster.client_options("alice", listener=LISTENER)
    cluster.create_topic("by-token", partitions=3)
    with Admin(addresses, **options) as admin:  # type: ignore[arg-type]
        token = admin.create_delegation_token()
    jaas = (
        "org.apache.kafka.common.security.scram.ScramLoginModule required"
        f' username="{token.token_id}" password="{token.password}" tokenauth="true";'
    )
    own = {
        "security_protocol": LISTENER,
        "sasl_mechanism": "SCRAM-SHA-256",
        "sasl_username": token.token_id,
        "sasl_password": token.password,
        "sasl_scram_token_auth": True,
    }
    for given in (own, {"security_protocol": LISTENER, "sasl_mechanism": "SCRAM-SHA-512", "sasl_jaas_config": jaas}):
        with Producer(addresses, **given) as producer:  # type: ignore[arg-type]
            for number in range(3):
                producer.send("by-token", b"%d" % number, partition=number)
            producer.flush()
    with Consumer(addresses, group_id="g", auto_offset_reset="earliest", **own) as consumer:  # type: ignore[arg-type]
        consumer.subscribe(["by-token"])
        seen: list[bytes] = []
        while len(seen) < 6:
            seen += [record.value for record in consumer.poll(1.0) if record.value is not None]
    assert sorted(seen) == [b"0", b"0", b"1", b"1", b"2", b"2"]
