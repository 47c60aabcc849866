"""All admin calls in one object that lives on the client's I/O thread; the facades in `admin` and `aio` add nothing."""

from collections.abc import Mapping, Sequence
from typing import Any, Self, Unpack

from barnabas.client.admin.acls import AclCalls
from barnabas.client.admin.cluster import ClusterCalls
from barnabas.client.admin.configs import ConfigCalls
from barnabas.client.admin.group_offsets import GroupOffsetCalls
from barnabas.client.admin.groups import GroupCalls
from barnabas.client.admin.hanging import HangingCalls
from barnabas.client.admin.log_dirs import LogDirCalls
from barnabas.client.admin.reassignments import ReassignmentCalls
from barnabas.client.admin.records import RecordCalls
from barnabas.client.admin.users import UserCalls
from barnabas.client.cluster import ClusterClient
from barnabas.client.environment import environment
from barnabas.client.options import AdminKwargs, AdminOptions
from barnabas.client.unclosed import end_when_collected


class AdminCore(
    HangingCalls,  # topics and transactions too
    ConfigCalls,
    GroupCalls,
    GroupOffsetCalls,
    RecordCalls,
    ClusterCalls,
    LogDirCalls,
    ReassignmentCalls,
    AclCalls,
    UserCalls,
):
    """Made on the I/O thread; every method is a coroutine that runs there."""


class AdminBase:
    """What both facades have: a thread, and the core that lives on it."""

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
