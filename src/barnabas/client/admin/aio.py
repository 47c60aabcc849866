"""The admin client for asyncio: the same calls, awaited.

async with Admin("localhost:9092") as admin:
    await admin.create_topic("orders", partitions=6)
"""

from types import TracebackType
from typing import Self

from barnabas.client.admin.core import AdminBase, AdminCore
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

    create_topic = awaitable(AdminCore.create_topic)
    create_topics = awaitable(AdminCore.create_topics)
    delete_topic = awaitable(AdminCore.delete_topic)
    delete_topics = awaitable(AdminCore.delete_topics)
    list_topics = awaitable(AdminCore.list_topics)
    describe_topic = awaitable(AdminCore.describe_topic)
    describe_topics = awaitable(AdminCore.describe_topics)
    add_partitions = awaitable(AdminCore.add_partitions)

    describe_config = awaitable(AdminCore.describe_config)
    describe_configs = awaitable(AdminCore.describe_configs)
    alter_config = awaitable(AdminCore.alter_config)
    alter_configs = awaitable(AdminCore.alter_configs)
    list_config_resources = awaitable(AdminCore.list_config_resources)

    list_offsets = awaitable(AdminCore.list_offsets)
    delete_records = awaitable(AdminCore.delete_records)

    list_groups = awaitable(AdminCore.list_groups)
    describe_group = awaitable(AdminCore.describe_group)
    describe_groups = awaitable(AdminCore.describe_groups)
    delete_group = awaitable(AdminCore.delete_group)
    delete_groups = awaitable(AdminCore.delete_groups)
    remove_members = awaitable(AdminCore.remove_members)

    list_group_offsets = awaitable(AdminCore.list_group_offsets)
    list_groups_offsets = awaitable(AdminCore.list_groups_offsets)
    alter_group_offsets = awaitable(AdminCore.alter_group_offsets)
    delete_group_offsets = awaitable(AdminCore.delete_group_offsets)

    list_transactions = awaitable(AdminCore.list_transactions)
    describe_transaction = awaitable(AdminCore.describe_transaction)
    describe_transactions = awaitable(AdminCore.describe_transactions)
    fence_producers = awaitable(AdminCore.fence_producers)
    describe_producers = awaitable(AdminCore.describe_producers)
    abort_transaction = awaitable(AdminCore.abort_transaction)
    find_hanging_transactions = awaitable(AdminCore.find_hanging_transactions)

    describe_cluster = awaitable(AdminCore.describe_cluster)
    describe_features = awaitable(AdminCore.describe_features)
    update_features = awaitable(AdminCore.update_features)
    describe_quorum = awaitable(AdminCore.describe_quorum)
    unregister_broker = awaitable(AdminCore.unregister_broker)

    describe_log_dirs = awaitable(AdminCore.describe_log_dirs)
    alter_replica_log_dirs = awaitable(AdminCore.alter_replica_log_dirs)

    alter_partition_reassignments = awaitable(AdminCore.alter_partition_reassignments)
    list_partition_reassignments = awaitable(AdminCore.list_partition_reassignments)
    elect_leaders = awaitable(AdminCore.elect_leaders)

    describe_acls = awaitable(AdminCore.describe_acls)
    create_acls = awaitable(AdminCore.create_acls)
    delete_acls = awaitable(AdminCore.delete_acls)

    describe_user_scram_credentials = awaitable(AdminCore.describe_user_scram_credentials)
    alter_user_scram_credentials = awaitable(AdminCore.alter_user_scram_credentials)
    describe_client_quotas = awaitable(AdminCore.describe_client_quotas)
    alter_client_quotas = awaitable(AdminCore.alter_client_quotas)
