"""Which broker coordinates a group or a transactional id: looked up once, remembered until it proves wrong."""

from collections.abc import Awaitable, Callable, Iterable
from enum import IntEnum
from typing import Any

from barnabas.client.errors import UnreachableError, error_for
from barnabas.client.metadata import Node
from barnabas.client.node_connections import coordinator_id
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse

LAST_VERSION_WITH_ONE_KEY = 3


class CoordinatorKind(IntEnum):
    """The numbers are those of FindCoordinator."""

    GROUP = 0
    TRANSACTION = 1


class Coordinators:
    """`ask(request)` sends to any broker and returns the response."""

    def __init__(self, ask: Callable[[FindCoordinatorRequest], Awaitable[Any]]) -> None:
        self._ask = ask
        self._found: dict[tuple[CoordinatorKind, str], int] = {}
        self.nodes: dict[int, Node] = {}
        """Addresses of coordinators that are newer than the metadata."""

    def known(self, kind: CoordinatorKind, key: str) -> int | None:
        return self._found.get((kind, key))

    def forget(self, kind: CoordinatorKind, key: str) -> None:
        self._found.pop((kind, key), None)

    def forget_addresses(self, node_ids: Iterable[int]) -> None:
        """Newer metadata says where these are."""
        for node_id in node_ids:
            self.nodes.pop(node_id, None)

    async def find(self, kind: CoordinatorKind, key: str) -> int:
        """Asks once. Raises the error of the response, COORDINATOR_NOT_AVAILABLE for instance."""
        request = FindCoordinatorRequest(key=key, key_type=int(kind))
        response: FindCoordinatorResponse = await self._ask(request)
        if response.error_code:
            group = key if kind is CoordinatorKind.GROUP else None
            transactional_id = key if kind is CoordinatorKind.TRANSACTION else None
            raise error_for(response.error_code, response.error_message, group=group, transactional_id=transactional_id)
        if response.node_id < 0 or not response.host:
            raise UnreachableError(f"coordinator of {key}", "the broker named none")
        self.nodes[response.node_id] = Node(response.node_id, response.host, response.port)
        node_id = coordinator_id(response.node_id) if kind is CoordinatorKind.GROUP else response.node_id
        self._found[kind, key] = node_id
        return node_id
