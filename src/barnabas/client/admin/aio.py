"""The admin client for asyncio: the same calls, awaited.

async with Admin("localhost:9092") as admin:
    await admin.create_topic("orders", partitions=6)
"""

from types import TracebackType
from typing import Self

from barnabas.client.admin.acls import AclAdmin
from barnabas.client.admin.cluster import ClusterAdmin
from barnabas.client.admin.configs import ConfigAdmin
from barnabas.client.admin.core import AdminBase, of
from barnabas.client.admin.group_offsets import GroupOffsetAdmin
from barnabas.client.admin.groups import GroupAdmin
from barnabas.client.admin.hanging import HangingTransactionAdmin
from barnabas.client.admin.log_dirs import LogDirAdmin
from barnabas.client.admin.reassignments import ReassignmentAdmin
from barnabas.client.admin.records import RecordAdmin
from barnabas.client.admin.topics import TopicAdmin
from barnabas.client.admin.transactions import TransactionAdmin
from barnabas.client.admin.users import UserAdmin
from barnabas.client.facade import awaitable


class Admin(AdminBase):
    """Topics, groups, settings, transactions and all else that is not reading and writing records."""

    async def close(self) -> None:
        """Close the connections. May be called again; in a child process they are the parent's and stay."""
        if not self._io.stopped and not self._io.is_forked:
            await self._io.run(self._core.close())
            self._io.stop()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    create_topic = awaitable(of("topics", TopicAdmin.create_topic))
    create_topics = awaitable(of("topics", TopicAdmin.create_topics))
    delete_topic = awaitable(of("topics", TopicAdmin.delete_topic))
    delete_topics = awaitable(of("topics", TopicAdmin.delete_topics))
    list_topics = awaitable(of("topics", TopicAdmin.list_topics))
    describe_topic = awaitable(of("topics", TopicAdmin.describe_topic))
    describe_topics = awaitable(of("topics", TopicAdmin.describe_topics))
    add_partitions = awaitable(of("topics", TopicAdmin.add_partitions))

    describe_config = awaitable(of("configs", ConfigAdmin.describe_config))
    describe_configs = awaitable(of("configs", ConfigAdmin.describe_configs))
    alter_config = awaitable(of("configs", ConfigAdmin.alter_config))
    alter_configs = awaitable(of("configs", ConfigAdmin.alter_configs))
    list_config_resources = awaitable(of("configs", ConfigAdmin.list_config_resources))

    list_offsets = awaitable(of("records", RecordAdmin.list_offsets))
    delete_records = awaitable(of("records", RecordAdmin.delete_records))

    list_groups = awaitable(of("groups", GroupAdmin.list_groups))
    describe_group = awaitable(of("groups", GroupAdmin.describe_group))
    describe_groups = awaitable(of("groups", GroupAdmin.describe_groups))
    delete_group = awaitable(of("groups", GroupAdmin.delete_group))
    delete_groups = awaitable(of("groups", GroupAdmin.delete_groups))
    remove_members = awaitable(of("groups", GroupAdmin.remove_members))

    list_group_offsets = awaitable(of("group_offsets", GroupOffsetAdmin.list_group_offsets))
    list_groups_offsets = awaitable(of("group_offsets", GroupOffsetAdmin.list_groups_offsets))
    alter_group_offsets = awaitable(of("group_offsets", GroupOffsetAdmin.alter_group_offsets))
    delete_group_offsets = awaitable(of("group_offsets", GroupOffsetAdmin.delete_group_offsets))

    list_transactions = awaitable(of("transactions", TransactionAdmin.list_transactions))
    describe_transaction = awaitable(of("transactions", TransactionAdmin.describe_transaction))
    describe_transactions = awaitable(of("transactions", TransactionAdmin.describe_transactions))
    fence_producers = awaitable(of("transactions", TransactionAdmin.fence_producers))
    describe_producers = awaitable(of("transactions", TransactionAdmin.describe_producers))
    abort_transaction = awaitable(of("transactions", TransactionAdmin.abort_transaction))
    find_hanging_transactions = awaitable(of("hanging_transactions", HangingTransactionAdmin.find_hanging_transactions))

    describe_cluster = awaitable(of("cluster", ClusterAdmin.describe_cluster))
    describe_features = awaitable(of("cluster", ClusterAdmin.describe_features))
    update_features = awaitable(of("cluster", ClusterAdmin.update_features))
    describe_quorum = awaitable(of("cluster", ClusterAdmin.describe_quorum))
    unregister_broker = awaitable(of("cluster", ClusterAdmin.unregister_broker))

    describe_log_dirs = awaitable(of("log_dirs", LogDirAdmin.describe_log_dirs))
    alter_replica_log_dirs = awaitable(of("log_dirs", LogDirAdmin.alter_replica_log_dirs))

    alter_partition_reassignments = awaitable(of("reassignments", ReassignmentAdmin.alter_partition_reassignments))
    list_partition_reassignments = awaitable(of("reassignments", ReassignmentAdmin.list_partition_reassignments))
    elect_leaders = awaitable(of("reassignments", ReassignmentAdmin.elect_leaders))

    describe_acls = awaitable(of("acls", AclAdmin.describe_acls))
    create_acls = awaitable(of("acls", AclAdmin.create_acls))
    delete_acls = awaitable(of("acls", AclAdmin.delete_acls))

    describe_user_scram_credentials = awaitable(of("users", UserAdmin.describe_user_scram_credentials))
    alter_user_scram_credentials = awaitable(of("users", UserAdmin.alter_user_scram_credentials))
    describe_client_quotas = awaitable(of("users", UserAdmin.describe_client_quotas))
    alter_client_quotas = awaitable(of("users", UserAdmin.alter_client_quotas))
