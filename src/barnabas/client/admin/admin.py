"""The blocking admin client.

    with Admin("localhost:9092") as admin:
        admin.create_topic("orders", partitions=6, config={"retention.ms": 259200000})

Every call takes `timeout` in seconds (default: default.api.timeout.ms) and retries within it what passes by itself;
only that no bootstrap server can be reached is said at once, by a first call that was given no time. A call about one
thing raises its `KafkaError`; a call about many raises `AdminError`, which keeps what succeeded.
May be used from several threads.
"""

from collections.abc import Sequence
from typing import Unpack

from barnabas.client.admin.acls import AclAdmin
from barnabas.client.admin.cluster import ClusterAdmin
from barnabas.client.admin.configs import ConfigAdmin
from barnabas.client.admin.core import AdminCalls, AdminCore
from barnabas.client.admin.group_offsets import GroupOffsetAdmin
from barnabas.client.admin.groups import GroupAdmin
from barnabas.client.admin.hanging import HangingTransactionAdmin
from barnabas.client.admin.log_dirs import LogDirAdmin
from barnabas.client.admin.reassignments import ReassignmentAdmin
from barnabas.client.admin.records import RecordAdmin
from barnabas.client.admin.tokens import TokenAdmin
from barnabas.client.admin.topics import TopicAdmin
from barnabas.client.admin.transactions import TransactionAdmin
from barnabas.client.admin.users import UserAdmin
from barnabas.client.facade import BlockingFacade, on_io, plain, waiting
from barnabas.client.options import AdminKwargs, AdminOptions
from barnabas.client.user_side import BlockingSide


class Admin(BlockingFacade):
    """Topics, groups, settings, transactions and all else that is not reading and writing records."""

    _options = AdminOptions

    def __init__(self, bootstrap_servers: str | Sequence[str], /, **options: Unpack[AdminKwargs]) -> None:
        self._start(AdminOptions.of(bootstrap_servers, **options))

    def _start(self, options: AdminOptions) -> None:
        self._side = BlockingSide()
        self._core = AdminCalls(options, self._side)
        self._core.end_with(self)

    metrics = plain(AdminCore.metrics, part="core")
    close = waiting(AdminCalls.close)

    create_topic = waiting(on_io(TopicAdmin.create_topic, part="topics"))
    create_topics = waiting(on_io(TopicAdmin.create_topics, part="topics"))
    delete_topic = waiting(on_io(TopicAdmin.delete_topic, part="topics"))
    delete_topics = waiting(on_io(TopicAdmin.delete_topics, part="topics"))
    list_topics = waiting(on_io(TopicAdmin.list_topics, part="topics"))
    describe_topic = waiting(on_io(TopicAdmin.describe_topic, part="topics"))
    describe_topics = waiting(on_io(TopicAdmin.describe_topics, part="topics"))
    add_partitions = waiting(on_io(TopicAdmin.add_partitions, part="topics"))

    describe_config = waiting(on_io(ConfigAdmin.describe_config, part="configs"))
    describe_configs = waiting(on_io(ConfigAdmin.describe_configs, part="configs"))
    alter_config = waiting(on_io(ConfigAdmin.alter_config, part="configs"))
    alter_configs = waiting(on_io(ConfigAdmin.alter_configs, part="configs"))
    list_config_resources = waiting(on_io(ConfigAdmin.list_config_resources, part="configs"))

    list_offsets = waiting(on_io(RecordAdmin.list_offsets, part="records"))
    delete_records = waiting(on_io(RecordAdmin.delete_records, part="records"))

    list_groups = waiting(on_io(GroupAdmin.list_groups, part="groups"))
    describe_group = waiting(on_io(GroupAdmin.describe_group, part="groups"))
    describe_groups = waiting(on_io(GroupAdmin.describe_groups, part="groups"))
    delete_group = waiting(on_io(GroupAdmin.delete_group, part="groups"))
    delete_groups = waiting(on_io(GroupAdmin.delete_groups, part="groups"))
    remove_members = waiting(on_io(GroupAdmin.remove_members, part="groups"))

    list_group_offsets = waiting(on_io(GroupOffsetAdmin.list_group_offsets, part="group_offsets"))
    list_groups_offsets = waiting(on_io(GroupOffsetAdmin.list_groups_offsets, part="group_offsets"))
    alter_group_offsets = waiting(on_io(GroupOffsetAdmin.alter_group_offsets, part="group_offsets"))
    delete_group_offsets = waiting(on_io(GroupOffsetAdmin.delete_group_offsets, part="group_offsets"))

    list_transactions = waiting(on_io(TransactionAdmin.list_transactions, part="transactions"))
    describe_transaction = waiting(on_io(TransactionAdmin.describe_transaction, part="transactions"))
    describe_transactions = waiting(on_io(TransactionAdmin.describe_transactions, part="transactions"))
    fence_producers = waiting(on_io(TransactionAdmin.fence_producers, part="transactions"))
    describe_producers = waiting(on_io(TransactionAdmin.describe_producers, part="transactions"))
    abort_transaction = waiting(on_io(TransactionAdmin.abort_transaction, part="transactions"))
    find_hanging_transactions = waiting(
        on_io(HangingTransactionAdmin.find_hanging_transactions, part="hanging_transactions")
    )

    describe_cluster = waiting(on_io(ClusterAdmin.describe_cluster, part="cluster"))
    describe_features = waiting(on_io(ClusterAdmin.describe_features, part="cluster"))
    update_features = waiting(on_io(ClusterAdmin.update_features, part="cluster"))
    describe_quorum = waiting(on_io(ClusterAdmin.describe_quorum, part="cluster"))
    unregister_broker = waiting(on_io(ClusterAdmin.unregister_broker, part="cluster"))

    describe_log_dirs = waiting(on_io(LogDirAdmin.describe_log_dirs, part="log_dirs"))
    alter_replica_log_dirs = waiting(on_io(LogDirAdmin.alter_replica_log_dirs, part="log_dirs"))

    alter_partition_reassignments = waiting(
        on_io(ReassignmentAdmin.alter_partition_reassignments, part="reassignments")
    )
    list_partition_reassignments = waiting(on_io(ReassignmentAdmin.list_partition_reassignments, part="reassignments"))
    elect_leaders = waiting(on_io(ReassignmentAdmin.elect_leaders, part="reassignments"))

    describe_acls = waiting(on_io(AclAdmin.describe_acls, part="acls"))
    create_acls = waiting(on_io(AclAdmin.create_acls, part="acls"))
    delete_acls = waiting(on_io(AclAdmin.delete_acls, part="acls"))

    describe_user_scram_credentials = waiting(on_io(UserAdmin.describe_user_scram_credentials, part="users"))
    alter_user_scram_credentials = waiting(on_io(UserAdmin.alter_user_scram_credentials, part="users"))
    describe_client_quotas = waiting(on_io(UserAdmin.describe_client_quotas, part="users"))
    alter_client_quotas = waiting(on_io(UserAdmin.alter_client_quotas, part="users"))

    create_delegation_token = waiting(on_io(TokenAdmin.create_delegation_token, part="tokens"))
    renew_delegation_token = waiting(on_io(TokenAdmin.renew_delegation_token, part="tokens"))
    expire_delegation_token = waiting(on_io(TokenAdmin.expire_delegation_token, part="tokens"))
    describe_delegation_tokens = waiting(on_io(TokenAdmin.describe_delegation_tokens, part="tokens"))
