"""The way from a member to its group's coordinator, and to metadata: sends, and forgets a coordinator that fails.

Requests of the group go over a connection of their own, because the coordinator delays the response to JoinGroup, and
with it everything behind it. Only leaving uses the shared one while something is on its way there, so that it never
waits for a JoinGroup; otherwise it does not, because on the shared one a long poll may be in front of it.
"""

import asyncio
import contextlib
import logging
from collections.abc import Iterator
from typing import Any

from barnabas.client.cluster_client import ClusterClient, CoordinatorKind
from barnabas.client.consumer.group.options import GroupOptions
from barnabas.client.node_connections import coordinator_id
from barnabas.client.retry import Backoff, Deadline, retrying
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.leave_group import LeaveGroupRequest

logger = logging.getLogger("barnabas.client.consumer.group")

LEAVE_TIMEOUT_MS = 5000
FIND_TIMEOUT_MS = 60_000
FIRST_VERSION_WITH_MEMBERS = 3
NO_ANSWER = frozenset({ErrorCode.NETWORK_EXCEPTION, ErrorCode.REQUEST_TIMED_OUT})


class CoordinatorLink:
    """Finds the coordinator and sends the requests of one member."""

    def __init__(self, cluster: ClusterClient, options: GroupOptions) -> None:
        self._cluster = cluster
        self._options = options
        self.failure: KafkaError | None = None
        """The last error in finding or reaching the coordinator; None after a response."""

    async def send(
        self,
        request: Any,
        *,
        timeout_ms: int,
        min_version: int = 0,
        max_version: int | None = None,
        deadline: Deadline | None = None,
    ) -> Any:
        """Once. The deadline is for finding the coordinator, the time-out for its response."""
        node_id = await self._coordinator(deadline)
        with self._noting_failure():
            return await self._cluster.send(
                node_id, request, timeout_ms=timeout_ms, min_version=min_version, max_version=max_version
            )

    async def ready(self, deadline: Deadline) -> None:
        """Find the coordinator and connect to it: a `send` right after this leaves before anything else happens."""
        node_id = await self._coordinator(deadline)
        with self._noting_failure():
            await self._cluster.connect(node_id, timeout_ms=deadline.remaining_ms)

    async def version_of(self, api_key: ApiKey, *, max_version: int, deadline: Deadline) -> int:
        node_id = await self._coordinator(deadline)
        with self._noting_failure():
            return await self._cluster.version_of(node_id, api_key, max_version=max_version)

    def forget(self) -> None:
        self._cluster.forget_coordinator(CoordinatorKind.GROUP, self._options.group_id)

    async def leave(self, request: Any) -> None:
        """Once, and not for long: a coordinator that does not receive it notices when the session ends."""
        try:
            async with asyncio.timeout(LEAVE_TIMEOUT_MS / 1000):
                node_id = await self._coordinator(None)
                if not self._cluster.is_ready(node_id) or self._cluster.in_flight_count(node_id):
                    node_id = coordinator_id(node_id)
                if isinstance(request, LeaveGroupRequest):
                    version = await self._cluster.version_of(node_id, ApiKey.LEAVE_GROUP)
                    if version < FIRST_VERSION_WITH_MEMBERS:
                        request = LeaveGroupRequest(group_id=request.group_id, member_id=request.members[0].member_id)
                await self._cluster.send(node_id, request)
        except (KafkaError, TimeoutError) as error:
            logger.info("group %s: could not say that it leaves: %r", self._options.group_id, error)

    async def refresh(self, topics: frozenset[str] | None) -> None:
        """Retries until it succeeds: without metadata nothing can be assigned. Raises permanent errors."""
        backoff = Backoff(self._options.retry_backoff_ms, self._options.retry_backoff_max_ms)
        create = self._options.allow_auto_create_topics and topics is not None
        while True:
            try:
                await self._cluster.refresh_metadata(topics, allow_auto_topic_creation=create)
                return
            except KafkaError as error:
                if not error.retriable:
                    raise
            await asyncio.sleep(backoff.next_ms() / 1000)

    async def _coordinator(self, deadline: Deadline | None) -> int:
        return await retrying(
            self._find_coordinator,
            deadline=Deadline(FIND_TIMEOUT_MS) if deadline is None else deadline,
            backoff=Backoff(self._options.retry_backoff_ms, self._options.retry_backoff_max_ms),
        )

    async def _find_coordinator(self) -> int:
        """Once, so that callers can report meanwhile why it takes so long."""
        with self._noting_failure():
            return await self._cluster.coordinator(CoordinatorKind.GROUP, self._options.group_id, Deadline(0))

    @contextlib.contextmanager
    def _noting_failure(self) -> Iterator[None]:
        try:
            yield
        except KafkaError as error:
            self.failure = error
            if error.code in NO_ANSWER:
                self.forget()
            raise
        self.failure = None
