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

    create_topic = blocking(of("topics", TopicAdmin.create_topic))
    create_topics = blocking(of("topics", TopicAdmin.create_topics))
    delete_topic = blocking(of("topics", TopicAdmin.delete_topic))
    delete_topics = blocking(of("topics", TopicAdmin.delete_topics))
    list_topics = blocking(of("topics", TopicAdmin.list_topics))
    describe_topic = blocking(of("topics", TopicAdmin.describe_topic))
    describe_topics = blocking(of("topics", TopicAdmin.describe_topics))
    add_partitions = blocking(of("topics", TopicAdmin.add_partitions))

    describe_config = blocking(of("configs", ConfigAdmin.describe_config))
    describe_configs = blocking(of("configs", ConfigAdmin.describe_configs))
    alter_config = blocking(of("configs", ConfigAdmin.alter_config))
    alter_configs = blocking(of("configs", ConfigAdmin.alter_configs))
    list_config_resources = blocking(of("configs", ConfigAdmin.list_config_resources))

    list_offsets = blocking(of("records", RecordAdmin.list_offsets))
    delete_records = blocking(of("records", RecordAdmin.delete_records))

    list_groups = blocking(of("groups", GroupAdmin.list_groups))
    describe_group = blocking(of("groups", GroupAdmin.describe_group))
    describe_groups = blocking(of("groups", GroupAdmin.describe_groups))
    delete_group = blocking(of("groups", GroupAdmin.delete_group))
    delete_groups = blocking(of("groups", GroupAdmin.delete_groups))
    remove_members = blocking(of("groups", GroupAdmin.remove_members))

    list_group_offsets = blocking(of("group_offsets", GroupOffsetAdmin.list_group_offsets))
    list_groups_offsets = blocking(of("group_offsets", GroupOffsetAdmin.list_groups_offsets))
    alter_group_offsets = blocking(of("group_offsets", GroupOffsetAdmin.alter_group_offsets))
    delete_group_offsets = blocking(of("group_offsets", GroupOffsetAdmin.delete_group_offsets))

    list_transactions = blocking(of("transactions", TransactionAdmin.list_transactions))
    describe_transaction = blocking(of("transactions", TransactionAdmin.describe_transaction))
    describe_transactions = blocking(of("transactions", TransactionAdmin.describe_transactions))
    fence_producers = blocking(of("transactions", TransactionAdmin.fence_producers))
    describe_producers = blocking(of("transactions", TransactionAdmin.describe_producers))
    abort_transaction = blocking(of("transactions", TransactionAdmin.abort_transaction))
    find_hanging_transactions = blocking(of("hanging_transactions", HangingTransactionAdmin.find_hanging_transactions))

    describe_cluster = blocking(of("cluster", ClusterAdmin.describe_cluster))
    describe_features = blocking(of("cluster", ClusterAdmin.describe_features))
    update_features = blocking(of("cluster", ClusterAdmin.update_features))
    describe_quorum = blocking(of("cluster", ClusterAdmin.describe_quorum))
    unregister_broker = blocking(of("cluster", ClusterAdmin.unregister_broker))

    describe_log_dirs = blocking(of("log_dirs", LogDirAdmin.describe_log_dirs))
    alter_replica_log_dirs = blocking(of("log_dirs", LogDirAdmin.alter_replica_log_dirs))

    alter_partition_reassignments = blocking(of("reassignments", ReassignmentAdmin.alter_partition_reassignments))
    list_partition_reassignments = blocking(of("reassignments", ReassignmentAdmin.list_partition_reassignments))
    elect_leaders = blocking(of("reassignments", ReassignmentAdmin.elect_leaders))

    describe_acls = blocking(of("acls", AclAdmin.describe_acls))
    create_acls = blocking(of("acls", AclAdmin.create_acls))
    delete_acls = blocking(of("acls", AclAdmin.delete_acls))

    describe_user_scram_credentials = blocking(of("users", UserAdmin.describe_user_scram_credentials))
    alter_user_scram_credentials = blocking(of("users", UserAdmin.alter_user_scram_credentials))
    describe_client_quotas = blocking(of("users", UserAdmin.describe_client_quotas))
    alter_client_quotas = blocking(of("users", UserAdmin.alter_client_quotas))
