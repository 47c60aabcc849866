"""The admin client behind both facades: one object that owns its parts. It runs on the client's I/O thread.

A part has the calls about one subject. The facades in `admin` and `aio` declare each call in one line, from its part.
"""

import functools
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, Unpack

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
from barnabas.client.admin.topics import TopicAdmin
from barnabas.client.admin.transactions import TransactionAdmin
from barnabas.client.admin.users import UserAdmin
from barnabas.client.cluster import ClusterClient
from barnabas.client.environment import environment
from barnabas.client.options import AdminKwargs, AdminOptions
from barnabas.client.unclosed import end_when_collected
from barnabas.clock import Clock

P = ParamSpec("P")
T = TypeVar("T")
Call = Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]


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
        self._cluster = cluster

    async def close(self) -> None:
        await self._cluster.close()


def of(part: str, method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]) -> Call[P, T]:
    """The method of a part, called on the core that owns the part."""

    @functools.wraps(method)
    def call(core: AdminCore, /, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, T]:
        return method(getattr(core, part), *args, **kwargs)

    return call


class AdminBase:
    """What both facades have: an I/O thread, and the core that runs on it."""

    def __init__(self, bootstrap_servers: str | Sequence[str], /, **options: Unpack[AdminKwargs]) -> None:
        self._open(AdminOptions.of(bootstrap_servers, **options))

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self:
        """Options by Kafka's dotted names."""
        admin = cls.__new__(cls)
        admin._open(AdminOptions.from_config(config))
        return admin

    def _open(self, options: AdminOptions) -> None:
        self._io = environment().start_io("admin")
        self._core = AdminCore(ClusterClient(options), options)
        end_when_collected(self, self._io, self._core.close)
