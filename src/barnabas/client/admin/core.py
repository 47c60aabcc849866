"""The admin client behind both facades: one object that owns its parts. It runs on the client's I/O thread.

A part has the calls about one subject. The facades in `admin` and `aio` declare each call in one line, from its part,
and `AdminCalls` passes it to the I/O thread.
"""

from barnabas.client.admin.acls import AclAdmin
from barnabas.client.admin.cluster import ClusterAdmin
from barnabas.client.admin.configs import ConfigAdmin
from barnabas.client.admin.group_offsets import GroupOffsetAdmin
from barnabas.client.admin.groups import GroupAdmin
from barnabas.client.admin.hanging import HangingTransactionAdmin
from barnabas.client.admin.log_dirs import LogDirAdmin
from barnabas.client.admin.reassignments import ReassignmentAdmin
from barnabas.client.admin.records import RecordAdmin
from barnabas.client.admin.requests import AdminRequests
from barnabas.client.admin.tokens import TokenAdmin
from barnabas.client.admin.topics import TopicAdmin
from barnabas.client.admin.transactions import TransactionAdmin
from barnabas.client.admin.users import UserAdmin
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.environment import environment
from barnabas.client.metrics.push import MetricsPush
from barnabas.client.metrics.values import Collecting, Metrics, Snapshots
from barnabas.client.options import AdminOptions
from barnabas.client.unclosed import end_when_collected
from barnabas.client.user_side import UserSide
from barnabas.clock import Clock


class AdminCore:
    """Made in the user's thread; every method of a part is a coroutine for the I/O thread."""

    def __init__(self, cluster: ClusterClient, options: AdminOptions, clock: Clock | None = None) -> None:
        requests = AdminRequests(cluster, options, clock or environment().clock)
        self.topics = TopicAdmin(requests)
        self.configs = ConfigAdmin(requests)
        self.records = RecordAdmin(requests)
        self.groups = GroupAdmin(requests)
        self.group_offsets = GroupOffsetAdmin(requests)
        self.transactions = TransactionAdmin(requests)
        self.hanging_transactions = HangingTransactionAdmin(requests, self.topics, self.transactions)
        self.cluster = ClusterAdmin(requests)
        self.log_dirs = LogDirAdmin(requests)
        self.reassignments = ReassignmentAdmin(requests)
        self.acls = AclAdmin(requests)
        self.users = UserAdmin(requests)
        self.tokens = TokenAdmin(requests)
        self._cluster = cluster
        self._client_id = options.client_id
        self._clock: Clock = clock or environment().clock
        self._snapshots = Snapshots(self._clock.monotonic_ms())
        self._push = MetricsPush(cluster, options, self.metrics)

    def metrics(self) -> Metrics:
        """What this client measures, by Kafka's names: connections, requests, bytes and latencies."""
        out = Collecting(self._snapshots, self._clock.monotonic_ms())
        out.network("admin-client-metrics", self._cluster.meters, in_flight=self._cluster.requests_in_flight())
        return out.finish(self._client_id)

    async def close(self) -> None:
        await self._push.close()
        await self._cluster.close()


class AdminCalls:
    """What users call on an admin client, on one user side."""

    def __init__(self, options: AdminOptions, side: UserSide) -> None:
        self.side = side
        self.io = environment().start_io("admin")
        self.core = AdminCore(ClusterClient(options), options)

    def end_with(self, facade: object) -> None:
        """The client is closed when the facade is garbage collected."""
        end_when_collected(facade, self.io, self.core.close)

    async def close(self) -> None:
        """Close the connections. May be called again; in a child process they are the parent's and stay."""
        if not self.io.stopped and not self.io.is_forked:
            await self.side.on_io(self.io, self.core.close())
            self.io.stop()

    async def leave(self, failed: bool) -> None:
        """The end of a `with` block."""
        await self.close()
