"""The admin client for asyncio: the same calls, awaited.

async with Admin("localhost:9092") as admin:
    await admin.create_topic("orders", partitions=6)
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
from barnabas.client.facade import AsyncFacade, awaited, on_io, plain
from barnabas.client.options import AdminKwargs, AdminOptions
from barnabas.client.user_side import AsyncSide


class Admin(AsyncFacade):
    """Topics, groups, settings, transactions and all else that is not reading and writing records."""

    _options = AdminOptions

    def __init__(self, bootstrap_servers: str | Sequence[str], /, **options: Unpack[AdminKwargs]) -> None:
        self._start(AdminOptions.of(bootstrap_servers, **options))

    def _start(self, options: AdminOptions) -> None:
        self._core = AdminCalls(options, AsyncSide())
        self._core.end_with(self)

    metrics = plain(AdminCore.metrics, part="core")
    close = awaited(AdminCalls.close)

    create_topic = awaited(on_io(TopicAdmin.create_topic, part="topics"))
    create_topics = awaited(on_io(TopicAdmin.create_topics, part="topics"))
    delete_topic = awaited(on_io(TopicAdmin.delete_topic, part="topics"))
    delete_topics = awaited(on_io(TopicAdmin.delete_topics, part="topics"))
    list_topics = awaited(on_io(TopicAdmin.list_topics, part="topics"))
    describe_topic = awaited(on_io(TopicAdmin.describe_topic, part="topics"))
    describe_topics = awaited(on_io(TopicAdmin.describe_topics, part="topics"))
    add_partitions = awaited(on_io(TopicAdmin.add_partitions, part="topics"))

    describe_config = awaited(on_io(ConfigAdmin.describe_config, part="configs"))
    describe_configs = awaited(on_io(ConfigAdmin.describe_configs, part="configs"))
    alter_config = awaited(on_io(ConfigAdmin.alter_config, part="configs"))
    alter_configs = awaited(on_io(ConfigAdmin.alter_configs, part="configs"))
    list_config_resources = awaited(on_io(ConfigAdmin.list_config_resources, part="configs"))

    list_offsets = awaited(on_io(RecordAdmin.list_offsets, part="records"))
    delete_records = awaited(on_io(RecordAdmin.delete_records, part="records"))

    list_groups = awaited(on_io(GroupAdmin.list_groups, part="groups"))
    describe_group = awaited(on_io(GroupAdmin.describe_group, part="groups"))
    describe_groups = awaited(on_io(GroupAdmin.describe_groups, part="groups"))
    delete_group = awaited(on_io(GroupAdmin.delete_group, part="groups"))
    delete_groups = awaited(on_io(GroupAdmin.delete_groups, part="groups"))
    remove_members = awaited(on_io(GroupAdmin.remove_members, part="groups"))

    list_group_offsets = awaited(on_io(GroupOffsetAdmin.list_group_offsets, part="group_offsets"))
    list_groups_offsets = awaited(on_io(GroupOffsetAdmin.list_groups_offsets, part="group_offsets"))
    alter_group_offsets = awaited(on_io(GroupOffsetAdmin.alter_group_offsets, part="group_offsets"))
    delete_group_offsets = awaited(on_io(GroupOffsetAdmin.delete_group_offsets, part="group_offsets"))

    list_transactions = awaited(on_io(TransactionAdmin.list_transactions, part="transactions"))
    describe_transaction = awaited(on_io(TransactionAdmin.describe_transaction, part="transactions"))
    describe_transactions = awaited(on_io(TransactionAdmin.describe_transactions, part="transactions"))
    fence_producers = awaited(on_io(TransactionAdmin.fence_producers, part="transactions"))
    describe_producers = awaited(on_io(TransactionAdmin.describe_producers, part="transactions"))
    abort_transaction = awaited(on_io(TransactionAdmin.abort_transaction, part="transactions"))
    find_hanging_transactions = awaited(
        on_io(HangingTransactionAdmin.find_hanging_transactions, part="hanging_transactions")
    )

    describe_cluster = awaited(on_io(ClusterAdmin.describe_cluster, part="cluster"))
    describe_features = awaited(on_io(ClusterAdmin.describe_features, part="cluster"))
    update_features = awaited(on_io(ClusterAdmin.update_features, part="cluster"))
    describe_quorum = awaited(on_io(ClusterAdmin.describe_quorum, part="cluster"))
    unregister_broker = awaited(on_io(ClusterAdmin.unregister_broker, part="cluster"))

    describe_log_dirs = awaited(on_io(LogDirAdmin.describe_log_dirs, part="log_dirs"))
    alter_replica_log_dirs = awaited(on_io(LogDirAdmin.alter_replica_log_dirs, part="log_dirs"))

    alter_partition_reassignments = awaited(
        on_io(ReassignmentAdmin.alter_partition_reassignments, part="reassignments")
    )
    list_partition_reassignments = awaited(on_io(ReassignmentAdmin.list_partition_reassignments, part="reassignments"))
    elect_leaders = awaited(on_io(ReassignmentAdmin.elect_leaders, part="reassignments"))

    describe_acls = awaited(on_io(AclAdmin.describe_acls, part="acls"))
    create_acls = awaited(on_io(AclAdmin.create_acls, part="acls"))
    delete_acls = awaited(on_io(AclAdmin.delete_acls, part="acls"))

    describe_user_scram_credentials = awaited(on_io(UserAdmin.describe_user_scram_credentials, part="users"))
    alter_user_scram_credentials = awaited(on_io(UserAdmin.alter_user_scram_credentials, part="users"))
    describe_client_quotas = awaited(on_io(UserAdmin.describe_client_quotas, part="users"))
    alter_client_quotas = awaited(on_io(UserAdmin.alter_client_quotas, part="users"))

    create_delegation_token = awaited(on_io(TokenAdmin.create_delegation_token, part="tokens"))
    renew_delegation_token = awaited(on_io(TokenAdmin.renew_delegation_token, part="tokens"))
    expire_delegation_token = awaited(on_io(TokenAdmin.expire_delegation_token, part="tokens"))
    describe_delegation_tokens = awaited(on_io(TokenAdmin.describe_delegation_tokens, part="tokens"))
