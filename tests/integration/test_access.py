"""Access rules over the wire: kept by the cluster, from any of its brokers; nobody else gets in."""

import pytest
from eventually import eventually

from barnabas import Admin, Producer
from barnabas.client.admin.types import AclBinding, AclFilter, AclOperation, AclPermission, ResourceType
from barnabas.errors import ErrorCode, KafkaError
from barnabas.testing import Broker, Cluster

SETTINGS = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}
RULE = AclBinding(
    resource_type=ResourceType.TOPIC,
    resource_name="orders",
    principal="User:alice",
    operation=AclOperation.READ,
    permission=AclPermission.ALLOW,
)


def test_rules_are_kept_by_the_cluster() -> None:
    with Cluster(2, settings={**SETTINGS, "super.users": "User:ANONYMOUS"}) as cluster:
        for number, broker in enumerate(cluster.brokers):
            rule = AclBinding(
                resource_type=ResourceType.GROUP,
                resource_name=f"group-{number}",
                principal="User:alice",
                operation=AclOperation.READ,
                permission=AclPermission.DENY,
            )
            with Admin(broker.bootstrap) as admin:
                admin.create_acls([RULE, rule])
        for broker in cluster.brokers:
            with Admin(broker.bootstrap) as admin:
                eventually(lambda admin=admin: len(admin.describe_acls()) == 3)  # type: ignore[misc]
        with Producer(cluster.bootstrap) as producer:
            assert producer.send("orders", b"1").result(30).offset == 0
        with Admin(cluster.bootstrap) as admin:
            wanted = AclFilter(principal="User:alice")
            assert len(admin.delete_acls([wanted])[wanted]) == 3


def test_nobody_but_super_users() -> None:
    with Broker({**SETTINGS, "super.users": "User:root"}) as broker, Admin(broker.bootstrap) as admin:
        for call in (lambda: admin.create_acls([RULE]), admin.describe_acls, admin.describe_client_quotas):
            with pytest.raises(KafkaError) as refused:
                call()
            assert refused.value.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert not admin.list_groups() and not admin.list_topics()


def test_a_login_is_who_is_asked_about() -> None:
    jaas = (
        "org.apache.kafka.common.security.plain.PlainLoginModule required"
        ' user_root="root-secret" user_alice="alice-secret";'
    )
    settings = {
        **SETTINGS,
        "super.users": "User:root;User:ANONYMOUS",
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": jaas,
    }
    with Broker(settings) as broker, _login(broker, "root") as root, _login(broker, "alice") as alice:
        root.create_acls([RULE])
        assert root.describe_acls() == [RULE]
        with pytest.raises(KafkaError) as refused:
            alice.describe_acls()
        assert refused.value.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def _login(broker: Broker, name: str) -> Admin:
    return Admin(
        broker.bootstrap,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_username=name,
        sasl_password=f"{name}-secret",
    )
