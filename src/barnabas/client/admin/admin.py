"""The blocking admin client.

    with Admin("localhost:9092") as admin:
        admin.create_topic("orders", partitions=6, config={"retention.ms": 259200000})

Every call takes `timeout` in seconds (default: default.api.timeout.ms) and retries within it what passes by itself;
only that no bootstrap server can be reached is said at once, by a first call that was given no time. A call about one
thing raises its `KafkaError`; a call about many raises `AdminError`, which keeps what succeeded.
May be used from several threads.
"""

from types import TracebackType
from typing import Self

from barnabas.client.admin.core import AdminBase, AdminCore
from barnabas.client.facade import blocking


class Admin(AdminBase):
    """Topics, groups, settings, transactions and all else that is not reading and writing records."""

    def close(self) -> None:
        """Close the connections. May be called again; in a child process they are the parent's and stay."""
        if not self._io.stopped and not self._io.is_forked:
            self._io.wait(self._core.close())
            self._io.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    create_topic = blocking(AdminCore.create_topic)
    create_topics = blocking(AdminCore.create_topics)
    delete_topic = blocking(AdminCore.delete_topic)
    delete_topics = blocking(AdminCore.delete_topics)
    list_topics = blocking(AdminCore.list_topics)
    describe_topic = blocking(AdminCore.describe_topic)
    describe_topics = blocking(AdminCore.describe_topics)
    add_partitions = blocking(AdminCore.add_partitions)

    describe_config = blocking(AdminCore.describe_config)
    describe_configs = blocking(AdminCore.describe_configs)
    alter_config = blocking(AdminCore.alter_config)
    alter_configs = blocking(AdminCore.alter_configs)
    list_config_resources = blocking(AdminCore.list_config_resources)

    list_offsets = blocking(AdminCore.list_offsets)
    delete_records = blocking(AdminCore.delete_records)

    list_groups = blocking(AdminCore.list_groups)
    describe_group = blocking(AdminCore.describe_group)
    describe_groups = blocking(AdminCore.describe_groups)
    delete_group = blocking(AdminCore.delete_group)
    delete_groups = blocking(AdminCore.delete_groups)
    remove_members = blocking(AdminCore.remove_members)

    list_group_offsets = blocking(AdminCore.list_group_offsets)
    list_groups_offsets = blocking(AdminCore.list_groups_offsets)
    alter_group_offsets = blocking(AdminCore.alter_group_offsets)
    delete_group_offsets = blocking(AdminCore.delete_group_offsets)

    list_transactions = blocking(AdminCore.list_transactions)
    describe_transaction = blocking(AdminCore.describe_transaction)
    describe_transactions = blocking(AdminCore.describe_transactions)
    fence_producers = blocking(AdminCore.fence_producers)
    describe_producers = blocking(AdminCore.describe_producers)
    abort_transaction = blocking(AdminCore.abort_transaction)
    find_hanging_transactions = blocking(AdminCore.find_hanging_transactions)

    describe_cluster = blocking(AdminCore.describe_cluster)
    describe_features = blocking(AdminCore.describe_features)
    update_features = blocking(AdminCore.update_features)
    describe_quorum = blocking(AdminCore.describe_quorum)
    unregister_broker = blocking(AdminCore.unregister_broker)

    describe_log_dirs = blocking(AdminCore.describe_log_dirs)
    alter_replica_log_dirs = blocking(AdminCore.alter_replica_log_dirs)

    alter_partition_reassignments = blocking(AdminCore.alter_partition_reassignments)
    list_partition_reassignments = blocking(AdminCore.list_partition_reassignments)
    elect_leaders = blocking(AdminCore.elect_leaders)

    describe_acls = blocking(AdminCore.describe_acls)
    create_acls = blocking(AdminCore.create_acls)
    delete_acls = blocking(AdminCore.delete_acls)

    describe_user_scram_credentials = blocking(AdminCore.describe_user_scram_credentials)
    alter_user_scram_credentials = blocking(AdminCore.alter_user_scram_credentials)
    describe_client_quotas = blocking(AdminCore.describe_client_quotas)
    alter_client_quotas = blocking(AdminCore.alter_client_quotas)
