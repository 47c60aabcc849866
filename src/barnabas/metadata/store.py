"""Nodes with versions at paths: what the cluster's metadata lives in, over an existing engine.

`stores/` holds the implementations. Every call blocks until it is durable, so an event loop calls it from a thread; a
store may be called from one thread at a time. A call ends within `call_timeout_ms`, by an error at the latest.

Paths are absolute, without a slash at the end, and need no parents. Where a node with data has others below it, it is
created before them and deleted after them (ZooKeeper keeps a tree). A new node has version 0, each Set adds 1.
`created` and `modified` are revisions of the store, which only grow. Ephemeral nodes die with the session that made
them.

A watch is persistent, covers a node and everything below, and says only that something there may have changed: it may
fire once for many changes and without any, from any thread. Whoever is woken reads again.
"""

from collections.abc import Callable, Sequence
from enum import Enum
from typing import NamedTuple, Protocol, TypeAlias

ANY_VERSION = -1


def _size(data: bytes) -> str:
    """In place of the data, which may hold passwords."""
    return f"{len(data)} bytes"


class Node(NamedTuple):
    data: bytes
    version: int
    created: int
    """Revision that created the node; grows through the store's whole life."""
    modified: int
    owner: int = 0
    """Session of an ephemeral node, else 0."""

    def __repr__(self) -> str:
        return f"Node({_size(self.data)}, version={self.version}, created={self.created}, owner={self.owner})"


class Scan(NamedTuple):
    """The nodes at and below a path, by path.

    Every change up to `revision` is in it. A later one may be: not every engine reads many nodes at one moment.
    """

    revision: int
    nodes: dict[str, Node]


class Create(NamedTuple):
    path: str
    data: bytes = b""
    ephemeral: bool = False

    def __repr__(self) -> str:
        return f"Create({self.path}, {_size(self.data)}, ephemeral={self.ephemeral})"


class Set(NamedTuple):
    path: str
    data: bytes
    version: int = ANY_VERSION

    def __repr__(self) -> str:
        return f"Set({self.path}, {_size(self.data)}, version={self.version})"


class Delete(NamedTuple):
    path: str
    version: int = ANY_VERSION


class Check(NamedTuple):
    path: str
    version: int


Operation: TypeAlias = Create | Set | Delete | Check


class SessionState(Enum):
    CONNECTED = "connected"
    SUSPENDED = "suspended"
    """The engine is out of reach; the session may live on."""
    LOST = "lost"
    """The session is over, and its ephemeral nodes are gone or will be."""


SessionListener: TypeAlias = Callable[[SessionState], None]


class MetadataStoreError(Exception):
    """A store could not carry out a call. Nothing of the call happened, unless the class says otherwise."""


class StoreUnavailableError(MetadataStoreError):
    """The engine is out of reach or too slow. A write did not happen."""


class OutcomeUnknownError(MetadataStoreError):
    """A write that may have happened, and may still happen: read back before deciding anything else."""


class ConflictError(MetadataStoreError):
    """A node is not as the caller believed: read again and decide again."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


class NoNodeError(ConflictError):
    pass


class NodeExistsError(ConflictError):
    pass


class BadVersionError(ConflictError):
    pass


class SessionExpiredError(MetadataStoreError):
    """The session is over and its ephemeral nodes are gone; `open` begins another."""


class MetadataStore(Protocol):
    multi_limit: int
    """How many operations one `multi` takes."""
    max_bytes: int
    """How many bytes of paths and data one `multi` takes."""
    call_timeout_ms: int
    on_session_state: SessionListener
    """Called from any thread when the session's state changes; it must not call the store."""

    @property
    def session_id(self) -> int: ...

    def open(self) -> None:
        """Begin a session (again, after it expired)."""
        ...

    def close(self) -> None:
        """End the session; its ephemeral nodes disappear at once."""
        ...

    def get(self, path: str) -> Node | None: ...

    def get_many(self, paths: Sequence[str]) -> list[Node | None]: ...

    def children(self, path: str) -> list[str]:
        """Names of the nodes directly below, sorted."""
        ...

    def scan(self, prefix: str) -> Scan:
        """The node at `prefix` and all below it."""
        ...

    def sync(self) -> None:
        """What is read afterwards has every change that was acknowledged to anybody before."""
        ...

    def create(self, path: str, data: bytes = b"", *, ephemeral: bool = False) -> int:
        """Returns the revision that created the node."""
        ...

    def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> int:
        """Returns the new version."""
        ...

    def delete(self, path: str, version: int = ANY_VERSION) -> None: ...

    def multi(self, operations: Sequence[Operation]) -> int:
        """All of them, or none and the error of the first that failed; returns the revision.

        Each path may occur once.
        """
        ...

    def watch(self, path: str, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back after changes at or below `path` and when the session is lost; returns how to end the watch."""
        ...


def ignore_session_state(_state: SessionState) -> None:
    """What a store calls as long as nobody listens."""


def parent_of(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def is_at_or_below(path: str, prefix: str) -> bool:
    return path == prefix or prefix == "/" or path.startswith(prefix + "/")


def size_of(operation: Operation) -> int:
    """Bytes that an operation takes up of `max_bytes`; what an engine adds to each is estimated generously."""
    data = operation.data if isinstance(operation, Create | Set) else b""
    return len(operation.path) + len(data) + 64


def check_distinct(operations: Sequence[Operation]) -> None:
    """An engine may not see the effect of one operation in the next of the same transaction."""
    if len({operation.path for operation in operations}) != len(operations):
        raise ValueError("a path occurs twice in one multi")
