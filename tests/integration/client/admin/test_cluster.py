"""The cluster as a whole, features, directories; and what only one of Apache Kafka and Barnabas does."""

from __future__ import annotations

import pytest
from confluent import produce_all
from confluent_kafka.admin import AdminClient
from eventually import eventually

from barnabas import Admin, ErrorCode, KafkaError, TopicPartition
from barnabas.client.admin.types import (
    AclBinding,
    AclFilter,
    AclOperation,
    AclPermission,
    FeatureUpdate,
    FeatureUpgradeType,
    PatternType,
    QuotaEntity,
    ResourceType,
    ScramDeletion,
    ScramMechanism,
    ScramUpsertion,
)


@pytest.fixture
def kafka_only(cluster: str) -> None:
    if cluster != "kafka":
        pytest.skip("Barnabas refuses this")


@pytest.fixture
def barnabas_only(cluster: str) -> None:
    if cluster != "barnabas":
        pytest.skip("Apache Kafka does this")


@pytest.fixture
def broker(admin: Admin) -> int:
    return admin.describe_cluster().brokers[0].node.id


def test_the_cluster(admin: Admin, judge: AdminClient, bootstrap: str) -> None:
    described = admin.describe_cluster(include_authorized_operations=True)
    seen = judge.describe_cluster(include_authorized_operations=True).result(10)
    assert described.cluster_id == seen.cluster_id
    assert described.controller is not None and described.controller.id == seen.controller.id
    assert [broker.node.address for broker in described.brokers] == [bootstrap]
    assert described.authorized_operations == {AclOperation[each.name] for each in seen.authorized_operations}
    assert admin.describe_cluster().authorized_operations is None
    assert not admin.describe_cluster(include_fenced_brokers=True).brokers[0].is_fenced


def test_features(admin: Admin) -> None:
    features = admin.describe_features()
    assert features.finalized["group.version"].max_version == 1
    assert features.supported["transaction.version"].max_version >= 2
    broker = admin.describe_cluster().brokers[0].node.id
    assert admin.describe_features(broker_id=broker) == features
    with pytest.raises(KafkaError, match="no broker 99"):
        admin.describe_features(broker_id=99)


def test_log_directories(admin: Admin, bootstrap: str, topic: str) -> None:
    produce_all(bootstrap, topic, [b"x" * 500])
    broker = admin.describe_cluster().brokers[0].node.id
    everything = admin.describe_log_dirs()
    directories = admin.describe_log_dirs([broker], partitions=[(topic, 0)])[broker]
    (replica,) = [each for path in directories.values() for each in path.replicas.items()]
    assert replica[0] == TopicPartition(topic, 0)
    assert replica[1].size > 500 and replica[1].offset_lag == 0 and not replica[1].is_future
    for path, directory in everything[broker].items():
        assert directory.path == path and directory.error is None
        assert directory.total_bytes is not None and 0 < (directory.usable_bytes or 0) < directory.total_bytes
    assert sum((topic, 1) in each.replicas for each in everything[broker].values()) == 1


def test_the_quorum(admin: Admin, broker: int) -> None:
    quorum = admin.describe_quorum()
    assert quorum.leader_id == broker and quorum.leader_epoch > 0
    (voter,) = quorum.voters
    assert voter.replica_id == broker and voter.log_end_offset >= quorum.high_watermark
    assert list(quorum.nodes) == [broker]


def test_feature_levels(admin: Admin) -> None:
    level = admin.describe_features().finalized["group.version"].max_version
    admin.update_features({"group.version": FeatureUpdate(max_version_level=level)}, validate_only=True)
    with pytest.raises(KafkaError, match=r"group\.version"):
        admin.update_features({"group.version": FeatureUpdate(max_version_level=99)})
    assert admin.describe_features().finalized["group.version"].max_version == level
    assert admin.describe_features().finalized["metadata.version"].max_version == 27


def test_a_broker_that_is_not_registered(admin: Admin) -> None:
    with pytest.raises(KafkaError) as raised:
        admin.unregister_broker(99)
    assert raised.value.code is ErrorCode.BROKER_ID_NOT_REGISTERED


def test_reassignments_and_elections(admin: Admin, broker: int, topic: str) -> None:
    admin.alter_partition_reassignments({(topic, 0): [broker]})
    assert admin.list_partition_reassignments() == {}
    assert admin.list_partition_reassignments([(topic, 0)]) == {}
    with pytest.raises(KafkaError) as raised:
        admin.alter_partition_reassignments({(topic, 0): None})
    assert raised.value.code is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    with pytest.raises(KafkaError, match=f"{topic}-1") as raised:
        admin.alter_partition_reassignments({(topic, 1): [broker, 99]})
    assert raised.value.code is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert admin.elect_leaders([(topic, 0), (topic, 1)]) == {(topic, 0): False, (topic, 1): False}
    assert admin.elect_leaders() == {}
    assert admin.elect_leaders([(topic, 0)], election_type="unclean") == {(topic, 0): False}


def test_credentials(admin: Admin, judge: AdminClient, new_name: str) -> None:
    admin.alter_user_scram_credentials(
        [
            ScramUpsertion(user=new_name, password="secret"),
            ScramUpsertion(user=new_name, password="secret", mechanism=ScramMechanism.SCRAM_SHA_512, iterations=8192),
        ]
    )
    described = eventually(
        lambda: admin.describe_user_scram_credentials([new_name]), lambda seen: len(seen[new_name]) == 2
    )
    found = described[new_name]
    assert {each.mechanism: each.iterations for each in found} == {
        ScramMechanism.SCRAM_SHA_256: 4096,
        ScramMechanism.SCRAM_SHA_512: 8192,
    }
    theirs = judge.describe_user_scram_credentials([new_name])[new_name].result(10)
    assert len(theirs.scram_credential_infos) == 2
    admin.alter_user_scram_credentials(
        [ScramDeletion(user=new_name, mechanism=each) for each in (ScramMechanism(1), ScramMechanism(2))]
    )
    eventually(lambda: new_name not in admin.describe_user_scram_credentials())
    with pytest.raises(KafkaError) as raised:
        admin.describe_user_scram_credentials([new_name])
    assert raised.value.code is ErrorCode.RESOURCE_NOT_FOUND


@pytest.mark.usefixtures("barnabas_only")
class TestOnlyBarnabas:
    """What has no effect here is refused, and nothing of it is kept."""

    def test_no_access_rules(self, admin: Admin) -> None:
        with pytest.raises(KafkaError, match="No Authorizer is configured") as raised:
            admin.describe_acls()
        assert raised.value.code is ErrorCode.SECURITY_DISABLED


@pytest.mark.usefixtures("kafka_only")
class TestOnlyKafka:
    def test_a_feature_at_a_lower_level(self, admin: Admin) -> None:
        update = FeatureUpdate(max_version_level=0, upgrade_type=FeatureUpgradeType.SAFE_DOWNGRADE)
        admin.update_features({"group.version": update}, validate_only=True)

    def test_a_replica_moves_to_another_directory(self, admin: Admin, topic: str) -> None:
        key = TopicPartition(topic, 0)
        before = {path: key in each.replicas for path, each in admin.describe_log_dirs()[1].items()}
        target = next(path for path, there in before.items() if not there)
        admin.alter_replica_log_dirs({(key, 1): target})
        eventually(lambda: key in admin.describe_log_dirs()[1][target].replicas)
        with pytest.raises(KafkaError, match="describe_log_dirs shows") as raised:
            admin.alter_replica_log_dirs({(key, 1): "/missing"})
        assert raised.value.code is ErrorCode.LOG_DIR_NOT_FOUND

    def test_access_rules(self, admin: Admin, judge: AdminClient, topic: str) -> None:
        from confluent_kafka.admin import AclBindingFilter as TheirFilter
        from confluent_kafka.admin import AclOperation as TheirOperation
        from confluent_kafka.admin import AclPermissionType, ResourcePatternType
        from confluent_kafka.admin import ResourceType as TheirResource

        rule = AclBinding(
            resource_type=ResourceType.TOPIC,
            resource_name=topic,
            pattern_type=PatternType.PREFIXED,
            principal="User:alice",
            operation=AclOperation.READ,
            permission=AclPermission.DENY,
        )
        wanted = AclFilter(resource_type=ResourceType.TOPIC, resource_name=topic)
        admin.create_acls([rule])
        eventually(lambda: admin.describe_acls(wanted) == [rule])
        their_filter = TheirFilter(
            TheirResource.TOPIC,
            topic,
            ResourcePatternType.ANY,
            None,
            None,
            TheirOperation.ANY,
            AclPermissionType.ANY,
        )
        (seen,) = judge.describe_acls(their_filter).result(10)
        assert (seen.principal, seen.operation.name, seen.permission_type.name) == ("User:alice", "READ", "DENY")
        assert rule in admin.describe_acls()
        assert admin.delete_acls([wanted]) == {wanted: [rule]}
        eventually(lambda: admin.describe_acls(wanted) == [])

    def test_quotas(self, admin: Admin, topic: str) -> None:
        one, default = QuotaEntity(user=topic, client_id="c"), QuotaEntity(client_id="")
        admin.alter_client_quotas({one: {"producer_byte_rate": 1024.0, "request_percentage": 50.0}})
        admin.alter_client_quotas({default: {"consumer_byte_rate": 2048}})
        eventually(
            lambda: (
                admin.describe_client_quotas(one) == {one: {"producer_byte_rate": 1024.0, "request_percentage": 50.0}}
            )
        )
        eventually(lambda: admin.describe_client_quotas(default) == {default: {"consumer_byte_rate": 2048.0}})
        assert one in admin.describe_client_quotas(QuotaEntity(user="*"))
        assert one not in admin.describe_client_quotas(QuotaEntity(user="*"), strict=True)
        admin.alter_client_quotas({one: {"producer_byte_rate": None, "request_percentage": None}})
        admin.alter_client_quotas({default: {"consumer_byte_rate": None}})
        eventually(lambda: admin.describe_client_quotas(one) == {})
        with pytest.raises(KafkaError):
            admin.alter_client_quotas({one: {"no_such_quota": 1}})
