"""Every request of a client, with the rights that Kafka 4.1 demands for it and the code for each that is missing.

Used twice: on a broker in the test's own process, and over the wire on Apache Kafka and on Barnabas, whose codes must
be equal. The requests change nothing that a later row depends on. `orders` and `payments` exist, with two partitions.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from raw_client import batch

from barnabas.errors import ErrorCode
from barnabas.machines.controller.acls import (
    CLUSTER_NAME,
    AclEntry,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
    SecuredType,
)
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    alter_client_quotas,
    alter_configs,
    alter_partition_reassignments,
    alter_replica_log_dirs,
    alter_user_scram_credentials,
    consumer_group_describe,
    consumer_group_heartbeat,
    create_acls,
    create_partitions,
    create_topics,
    delete_acls,
    delete_groups,
    delete_records,
    delete_topics,
    describe_acls,
    describe_client_quotas,
    describe_cluster,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_quorum,
    describe_topic_partitions,
    describe_transactions,
    describe_user_scram_credentials,
    elect_leaders,
    end_txn,
    fetch,
    find_coordinator,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    join_group,
    leave_group,
    list_config_resources,
    list_groups,
    list_offsets,
    list_partition_reassignments,
    list_transactions,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    sync_group,
    txn_offset_commit,
    unregister_broker,
    update_features,
    write_txn_markers,
)

TOPIC, GROUP, CLUSTER, TXN = (
    SecuredType.TOPIC,
    SecuredType.GROUP,
    SecuredType.CLUSTER,
    SecuredType.TRANSACTIONAL_ID,
)
DENIED = {
    TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    TXN: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
DENIALS = frozenset(DENIED.values())
TOPIC_NAME, OTHER_TOPIC, GROUP_ID, TXN_ID = "orders", "payments", "readers", "writer"
_NAMES = {TOPIC: TOPIC_NAME, GROUP: GROUP_ID, CLUSTER: CLUSTER_NAME, TXN: TXN_ID}
PLAIN_BATCH = bytes(batch(b"x"))


class Right(NamedTuple):
    operation: Operation
    type: SecuredType
    name: str

    @property
    def pattern(self) -> ResourcePattern:
        return ResourcePattern(self.type, self.name, PatternType.LITERAL)

    def entry(self, principal: str) -> AclEntry:
        return AclEntry(principal, "*", self.operation, Permission.ALLOW)


class Row(NamedTuple):
    """`rights` are needed all of them; each of `instead` alone would do as well."""

    name: str
    request: Any
    rights: tuple[Right, ...]
    version: int | None = None
    """None: the highest that both brokers have."""
    instead: tuple[Right, ...] = ()
    hides: bool = False
    """Without the rights there is less in the response, and no error."""

    @property
    def api_key(self) -> ApiKey:
        return ApiKey(self.request.__schema__.api_key)


def right(operation: Operation, kind: SecuredType, name: str | None = None) -> Right:
    return Right(operation, kind, _NAMES[kind] if name is None else name)


READ_TOPIC, WRITE_TOPIC = right(Operation.READ, TOPIC), right(Operation.WRITE, TOPIC)
DESCRIBE_TOPIC, DELETE_TOPIC = right(Operation.DESCRIBE, TOPIC), right(Operation.DELETE, TOPIC)
READ_GROUP, DESCRIBE_GROUP = right(Operation.READ, GROUP), right(Operation.DESCRIBE, GROUP)
DELETE_GROUP = right(Operation.DELETE, GROUP)
WRITE_TXN, DESCRIBE_TXN = right(Operation.WRITE, TXN), right(Operation.DESCRIBE, TXN)
ALTER_CLUSTER, DESCRIBE_CLUSTER = right(Operation.ALTER, CLUSTER), right(Operation.DESCRIBE, CLUSTER)
ALTER_CONFIGS, DESCRIBE_CONFIGS = right(Operation.ALTER_CONFIGS, CLUSTER), right(Operation.DESCRIBE_CONFIGS, CLUSTER)
CLUSTER_ACTION = right(Operation.CLUSTER_ACTION, CLUSTER)

CONFIG_TOPIC, CONFIG_BROKER, CONFIG_GROUP, CONFIG_METRICS = 2, 4, 32, 16
_CONFIG_RESOURCES = {
    "topic": (CONFIG_TOPIC, TOPIC_NAME, "retention.ms", TOPIC),
    "broker": (CONFIG_BROKER, "1", "log.cleaner.threads", CLUSTER),
    "group": (CONFIG_GROUP, GROUP_ID, "consumer.session.timeout.ms", GROUP),
    "client metrics": (CONFIG_METRICS, "m", "interval.ms", CLUSTER),
}


def rows() -> list[Row]:
    return [*_topics(), *_groups(), *_transactions(), *_administration(), *_configs()]


def _metadata(*names: str, creates: bool = False) -> metadata.MetadataRequest:
    topics = [metadata.MetadataRequestTopic(name=name) for name in names]
    return metadata.MetadataRequest(topics=topics, allow_auto_topic_creation=creates)


def _fetch(replica_id: int = -1) -> fetch.FetchRequest:
    part = fetch.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    topic = fetch.FetchTopic(topic=TOPIC_NAME, partitions=[part])
    return fetch.FetchRequest(
        replica_id=replica_id, max_wait_ms=0, min_bytes=0, max_bytes=1000, session_epoch=-1, topics=[topic]
    )


def _produce(topic: str = TOPIC_NAME, records: bytes = PLAIN_BATCH, **fields: Any) -> produce.ProduceRequest:
    part = produce.PartitionProduceData(index=0, records=records)
    data = produce.TopicProduceData(name=topic, partition_data=[part])
    return produce.ProduceRequest(**{"acks": -1, "timeout_ms": 5000, "topic_data": [data], **fields})


def _create_topic(name: str) -> create_topics.CreateTopicsRequest:
    topic = create_topics.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    return create_topics.CreateTopicsRequest(topics=[topic], timeout_ms=5000, validate_only=True)


def _topics() -> Iterator[Row]:
    unknown = "invented"
    yield Row("metadata", _metadata(TOPIC_NAME), (DESCRIBE_TOPIC,))
    yield Row("metadata by READ", _metadata(TOPIC_NAME), (READ_TOPIC,))
    yield Row("metadata by WRITE", _metadata(TOPIC_NAME), (WRITE_TOPIC,))
    yield Row("metadata v0", _metadata(TOPIC_NAME, creates=True), (DESCRIBE_TOPIC,), version=0)
    yield Row("metadata, unknown", _metadata(unknown), (right(Operation.DESCRIBE, TOPIC, unknown),))
    yield Row(
        "metadata, creates",
        _metadata("a bad name", creates=True),  # refused by its name, so that nothing is created
        (right(Operation.DESCRIBE, TOPIC, "a bad name"), right(Operation.CREATE, TOPIC, "a bad name")),
    )
    yield Row("metadata, all", metadata.MetadataRequest(topics=None), (DESCRIBE_TOPIC,), hides=True)
    topic = describe_topic_partitions.TopicRequest(name=TOPIC_NAME)
    wanted = describe_topic_partitions.DescribeTopicPartitionsRequest(topics=[topic], response_partition_limit=10)
    yield Row("describe topic partitions", wanted, (DESCRIBE_TOPIC,))
    everything = describe_topic_partitions.DescribeTopicPartitionsRequest(topics=[], response_partition_limit=10)
    yield Row("describe topic partitions, all", everything, (DESCRIBE_TOPIC,), hides=True)
    for version in (3, 9, 12):
        yield Row(f"produce v{version}", _produce(), (WRITE_TOPIC,), version=version)
    missing = right(Operation.WRITE, TOPIC, unknown)
    yield Row("produce, unknown", _produce(unknown), (missing,), version=12)
    in_transaction = bytes(batch(b"x", producer_id=7, producer_epoch=0, base_sequence=0, transactional=True))
    yield Row(
        "produce in a transaction",
        _produce(records=in_transaction, transactional_id="nobody"),
        (right(Operation.WRITE, TXN, "nobody"), WRITE_TOPIC),
        version=11,
    )
    for version in (4, 11, 12):
        yield Row(f"fetch v{version}", _fetch(), (READ_TOPIC,), version=version)
    part = list_offsets.ListOffsetsPartition(partition_index=0, timestamp=-1)
    offsets = list_offsets.ListOffsetsRequest(
        replica_id=-1, topics=[list_offsets.ListOffsetsTopic(name=TOPIC_NAME, partitions=[part])]
    )
    for version in (1, 7):
        yield Row(f"list offsets v{version}", offsets, (DESCRIBE_TOPIC,), version=version)
    epoch = offset_for_leader_epoch.OffsetForLeaderPartition(partition=0, leader_epoch=0)
    yield Row(
        "offset for leader epoch",
        offset_for_leader_epoch.OffsetForLeaderEpochRequest(
            replica_id=-1, topics=[offset_for_leader_epoch.OffsetForLeaderTopic(topic=TOPIC_NAME, partitions=[epoch])]
        ),
        (DESCRIBE_TOPIC,),
        instead=(CLUSTER_ACTION,),
    )
    new = right(Operation.CREATE, TOPIC, "new")
    yield Row("create topics", _create_topic("new"), (new,), instead=(right(Operation.CREATE, CLUSTER),))
    gone = delete_topics.DeleteTopicsRequest(
        topics=[delete_topics.DeleteTopicState(name="gone")], topic_names=[], timeout_ms=5000
    )
    may_describe = right(Operation.DESCRIBE, TOPIC, "gone")
    cluster_delete = right(Operation.DELETE, CLUSTER)
    yield Row("delete topics, unknown", gone, (may_describe,), instead=(cluster_delete,))
    more = create_partitions.CreatePartitionsTopic(name=TOPIC_NAME, count=3, assignments=None)
    yield Row(
        "create partitions",
        create_partitions.CreatePartitionsRequest(topics=[more], timeout_ms=5000, validate_only=True),
        (right(Operation.ALTER, TOPIC),),
    )
    records = delete_records.DeleteRecordsPartition(partition_index=0, offset=0)
    yield Row(
        "delete records",
        delete_records.DeleteRecordsRequest(
            topics=[delete_records.DeleteRecordsTopic(name=TOPIC_NAME, partitions=[records])], timeout_ms=5000
        ),
        (DELETE_TOPIC,),
    )
    producers = describe_producers.TopicRequest(name=TOPIC_NAME, partition_indexes=[0])
    yield Row("describe producers", describe_producers.DescribeProducersRequest(topics=[producers]), (READ_TOPIC,))


def _groups() -> Iterator[Row]:
    many = find_coordinator.FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP_ID])
    yield Row("find coordinator", many, (DESCRIBE_GROUP,))
    one = find_coordinator.FindCoordinatorRequest(key=GROUP_ID, key_type=0)
    yield Row("find coordinator v3", one, (DESCRIBE_GROUP,), version=3)
    member = join_group.JoinGroupRequestProtocol(name="range", metadata=b"")
    yield Row(
        "join group",
        join_group.JoinGroupRequest(
            group_id=GROUP_ID,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            member_id="",
            protocol_type="consumer",
            protocols=[member],
        ),
        (READ_GROUP,),
        version=6,
    )
    synced = sync_group.SyncGroupRequest(group_id=GROUP_ID, generation_id=1, member_id="m", assignments=[])
    yield Row("sync group", synced, (READ_GROUP,), version=3)
    alive = heartbeat.HeartbeatRequest(group_id=GROUP_ID, generation_id=1, member_id="m")
    yield Row("heartbeat", alive, (READ_GROUP,))
    gone = leave_group.LeaveGroupRequest(group_id=GROUP_ID, members=[leave_group.MemberIdentity(member_id="m")])
    yield Row("leave group", gone, (READ_GROUP,))
    yield Row(
        "consumer group heartbeat",
        consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
            group_id="new-readers",
            member_id="AAAAAAAAAAAAAAAAAAAAAA",
            member_epoch=5,
            subscribed_topic_names=[TOPIC_NAME],
            topic_partitions=[],
        ),
        (right(Operation.READ, GROUP, "new-readers"), DESCRIBE_TOPIC),
    )
    yield Row("describe groups", describe_groups.DescribeGroupsRequest(groups=[GROUP_ID]), (DESCRIBE_GROUP,))
    described = consumer_group_describe.ConsumerGroupDescribeRequest(group_ids=[GROUP_ID])
    yield Row("consumer group describe", described, (DESCRIBE_GROUP,))
    yield Row(
        "delete groups",
        delete_groups.DeleteGroupsRequest(groups_names=["no-group"]),
        (right(Operation.DELETE, GROUP, "no-group"),),
    )
    yield Row(
        "list groups", list_groups.ListGroupsRequest(), (DESCRIBE_GROUP,), instead=(DESCRIBE_CLUSTER,), hides=True
    )
    offset = offset_commit.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    yield Row(
        "offset commit",
        offset_commit.OffsetCommitRequest(
            group_id=GROUP_ID,
            generation_id_or_member_epoch=-1,
            member_id="",
            topics=[offset_commit.OffsetCommitRequestTopic(name=TOPIC_NAME, partitions=[offset])],
        ),
        (READ_GROUP, READ_TOPIC),
        version=8,
    )
    topics = [offset_fetch.OffsetFetchRequestTopic(name=TOPIC_NAME, partition_indexes=[0])]
    old = offset_fetch.OffsetFetchRequest(group_id=GROUP_ID, topics=topics)
    yield Row("offset fetch v1", old, (DESCRIBE_GROUP, DESCRIBE_TOPIC), version=1)
    yield Row("offset fetch v7", old, (DESCRIBE_GROUP, DESCRIBE_TOPIC), version=7)
    wanted = [offset_fetch.OffsetFetchRequestTopics(name=TOPIC_NAME, partition_indexes=[0])]
    of_group = offset_fetch.OffsetFetchRequestGroup(group_id=GROUP_ID, topics=wanted)
    many_groups = offset_fetch.OffsetFetchRequest(groups=[of_group])
    yield Row("offset fetch v8", many_groups, (DESCRIBE_GROUP, DESCRIBE_TOPIC), version=8)
    everything = offset_fetch.OffsetFetchRequestGroup(group_id=GROUP_ID, topics=None)
    all_topics = offset_fetch.OffsetFetchRequest(groups=[everything])
    yield Row("offset fetch, all", all_topics, (DESCRIBE_GROUP,), version=8)
    part = offset_delete.OffsetDeleteRequestPartition(partition_index=1)
    yield Row(
        "offset delete",
        offset_delete.OffsetDeleteRequest(
            group_id=GROUP_ID, topics=[offset_delete.OffsetDeleteRequestTopic(name=TOPIC_NAME, partitions=[part])]
        ),
        (DELETE_GROUP, READ_TOPIC),
    )


def _transactions() -> Iterator[Row]:
    many = find_coordinator.FindCoordinatorRequest(key_type=1, coordinator_keys=[TXN_ID])
    yield Row("find transaction coordinator", many, (DESCRIBE_TXN,))
    plain = init_producer_id.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)
    by_topic = right(Operation.WRITE, TOPIC, "anything")
    idempotent = right(Operation.IDEMPOTENT_WRITE, CLUSTER)
    yield Row("init producer id", plain, (idempotent,), instead=(by_topic,))
    named = init_producer_id.InitProducerIdRequest(transactional_id=TXN_ID, transaction_timeout_ms=1000)
    yield Row("init producer id of a transaction", named, (WRITE_TXN,))
    producer = {"producer_id": 7, "producer_epoch": 0}
    topic = add_partitions_to_txn.AddPartitionsToTxnTopic(name=TOPIC_NAME, partitions=[0])
    yield Row(
        "add partitions to transaction",
        add_partitions_to_txn.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="nobody",
            v3_and_below_producer_id=7,
            v3_and_below_producer_epoch=0,
            v3_and_below_topics=[topic],
        ),
        (right(Operation.WRITE, TXN, "nobody"), WRITE_TOPIC),
        version=3,
    )
    added = add_offsets_to_txn.AddOffsetsToTxnRequest(transactional_id="nobody", group_id=GROUP_ID, **producer)
    yield Row("add offsets to transaction", added, (right(Operation.WRITE, TXN, "nobody"), READ_GROUP))
    offset = txn_offset_commit.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    yield Row(
        "offset commit in a transaction",
        txn_offset_commit.TxnOffsetCommitRequest(
            transactional_id="nobody",
            group_id=GROUP_ID,
            topics=[txn_offset_commit.TxnOffsetCommitRequestTopic(name=TOPIC_NAME, partitions=[offset])],
            **producer,
        ),
        (right(Operation.WRITE, TXN, "nobody"), READ_GROUP, READ_TOPIC),
        version=3,
    )
    ended = end_txn.EndTxnRequest(transactional_id="nobody", committed=True, **producer)
    yield Row("end transaction", ended, (right(Operation.WRITE, TXN, "nobody"),))
    described = describe_transactions.DescribeTransactionsRequest(transactional_ids=[TXN_ID])
    yield Row("describe transactions", described, (DESCRIBE_TXN,))
    yield Row("list transactions", list_transactions.ListTransactionsRequest(), (DESCRIBE_TXN,), hides=True)
    marker = write_txn_markers.WritableTxnMarker(
        **producer,
        transaction_result=False,
        coordinator_epoch=0,
        topics=[write_txn_markers.WritableTxnMarkerTopic(name="gone", partition_indexes=[0])],
    )
    written = write_txn_markers.WriteTxnMarkersRequest(markers=[marker])
    yield Row("write transaction markers", written, (ALTER_CLUSTER,), instead=(CLUSTER_ACTION,))


def _administration() -> Iterator[Row]:
    yield Row("describe cluster", describe_cluster.DescribeClusterRequest(endpoint_type=1), ())
    quorum = describe_quorum.RequestTopicData(
        topic_name="__cluster_metadata", partitions=[describe_quorum.RequestPartitionData(partition_index=0)]
    )
    yield Row("describe quorum", describe_quorum.DescribeQuorumRequest(topics=[quorum]), (DESCRIBE_CLUSTER,))
    elected = elect_leaders.TopicPartitions(topic=TOPIC_NAME, partitions=[0])
    yield Row(
        "elect leaders",
        elect_leaders.ElectLeadersRequest(election_type=0, topic_partitions=[elected], timeout_ms=5000),
        (ALTER_CLUSTER,),
    )
    part = alter_partition_reassignments.ReassignablePartition(partition_index=0, replicas=None)
    yield Row(
        "alter partition reassignments",
        alter_partition_reassignments.AlterPartitionReassignmentsRequest(
            topics=[alter_partition_reassignments.ReassignableTopic(name=TOPIC_NAME, partitions=[part])],
            timeout_ms=5000,
        ),
        (ALTER_CLUSTER,),
    )
    listed = list_partition_reassignments.ListPartitionReassignmentsRequest(topics=None, timeout_ms=5000)
    yield Row("list partition reassignments", listed, (DESCRIBE_CLUSTER,))
    moved = alter_replica_log_dirs.AlterReplicaLogDir(
        path="/nowhere", topics=[alter_replica_log_dirs.AlterReplicaLogDirTopic(name=TOPIC_NAME, partitions=[0])]
    )
    yield Row(
        "alter replica log dirs", alter_replica_log_dirs.AlterReplicaLogDirsRequest(dirs=[moved]), (ALTER_CLUSTER,)
    )
    yield Row("describe log dirs", describe_log_dirs.DescribeLogDirsRequest(topics=[]), (DESCRIBE_CLUSTER,))
    yield Row("unregister broker", unregister_broker.UnregisterBrokerRequest(broker_id=99), (ALTER_CLUSTER,))
    yield Row(
        "update features", update_features.UpdateFeaturesRequest(timeout_ms=5000, feature_updates=[]), (ALTER_CLUSTER,)
    )
    anything: dict[str, Any] = {
        "resource_type_filter": 1,
        "resource_name_filter": None,
        "pattern_type_filter": 1,
        "principal_filter": "User:nobody",
        "host_filter": None,
        "operation": 1,
        "permission_type": 1,
    }
    yield Row("describe acls", describe_acls.DescribeAclsRequest(**anything), (DESCRIBE_CLUSTER,))
    deleted = delete_acls.DeleteAclsRequest(filters=[delete_acls.DeleteAclsFilter(**anything)])
    yield Row("delete acls", deleted, (ALTER_CLUSTER,))
    wrong = create_acls.AclCreation(
        resource_type=2,
        resource_name="",
        resource_pattern_type=3,
        principal="User:nobody",
        host="*",
        operation=3,
        permission_type=3,
    )
    yield Row("create acls", create_acls.CreateAclsRequest(creations=[wrong]), (ALTER_CLUSTER,))
    users = describe_user_scram_credentials.DescribeUserScramCredentialsRequest(
        users=[describe_user_scram_credentials.UserName(name="nobody")]
    )
    yield Row("describe user credentials", users, (DESCRIBE_CLUSTER,))
    removed = alter_user_scram_credentials.ScramCredentialDeletion(name="nobody", mechanism=1)
    changed = alter_user_scram_credentials.AlterUserScramCredentialsRequest(deletions=[removed], upsertions=[])
    yield Row("alter user credentials", changed, (ALTER_CLUSTER,))


def _configs() -> Iterator[Row]:
    for kind, (number, name, key, secured) in _CONFIG_RESOURCES.items():
        described = describe_configs.DescribeConfigsResource(
            resource_type=number, resource_name=name, configuration_keys=[key]
        )
        yield Row(
            f"describe configs of a {kind}",
            describe_configs.DescribeConfigsRequest(resources=[described]),
            (right(Operation.DESCRIBE_CONFIGS, secured),),
        )
        change = incremental_alter_configs.AlterableConfig(name=key, config_operation=1, value=None)
        incremental = incremental_alter_configs.AlterConfigsResource(
            resource_type=number, resource_name=name, configs=[change]
        )
        yield Row(
            f"alter configs of a {kind}",
            incremental_alter_configs.IncrementalAlterConfigsRequest(resources=[incremental], validate_only=True),
            (right(Operation.ALTER_CONFIGS, secured),),
        )
    old = alter_configs.AlterConfigsResource(resource_type=CONFIG_TOPIC, resource_name=TOPIC_NAME, configs=[])
    yield Row(
        "alter all configs of a topic",
        alter_configs.AlterConfigsRequest(resources=[old], validate_only=True),
        (right(Operation.ALTER_CONFIGS, TOPIC),),
    )
    listed = list_config_resources.ListConfigResourcesRequest(resource_types=[])
    yield Row("list config resources", listed, (DESCRIBE_CONFIGS,))
    component = describe_client_quotas.ComponentData(entity_type="user", match_type=0, match="nobody")
    quotas = describe_client_quotas.DescribeClientQuotasRequest(components=[component], strict=True)
    yield Row("describe client quotas", quotas, (DESCRIBE_CONFIGS,))
    entity = alter_client_quotas.EntityData(entity_type="user", entity_name="nobody")
    nothing = alter_client_quotas.OpData(key="producer_byte_rate", value=0.0, remove=True)
    entry = alter_client_quotas.EntryData(entity=[entity], ops=[nothing])
    yield Row(
        "alter client quotas",
        alter_client_quotas.AlterClientQuotasRequest(entries=[entry], validate_only=True),
        (ALTER_CONFIGS,),
    )


def codes_in(message: Any) -> list[tuple[str, int]]:
    """All error codes of a response, wherever they stand, in an order that does not depend on the broker's."""
    found: list[tuple[str, int]] = []
    for name in message.__schema__.fields:
        value = getattr(message, name)
        if name.endswith("error_code"):
            found.append((name, int(value)))
        elif isinstance(value, list):
            for item in value:
                if hasattr(item, "__schema__"):
                    found += codes_in(item)
    return sorted(found)
