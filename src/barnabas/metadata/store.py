"""A small tree with versions, in the shape of ZooKeeper's: what the cluster's metadata lives in.

`stores/` holds the implementations. Every call blocks until it is durable, so an event loop calls it from a thread; a
store may be called from one thread at a time. Paths are absolute, without a slash at the end; a node's parent must
exist; a node with children cannot be deleted. Ephemeral nodes die with the session that made them.

A watch is persistent, covers a node and everything below, and says only that something there may have changed: it may
fire once for many changes and without any, from any thread. Whoever is woken reads again.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeAlias

ANY_VERSION = -1


class Node(NamedTuple):
    data: bytes
    version: int
    created: int
    """Number of the transaction that created the node; grows through the store's whole life."""
    modified: int
    owner: int = 0
    """Session of an ephemeral node, else 0."""


class Create(NamedTuple):
    path: str
    data: bytes = b""
    ephemeral: bool = False
    sequential: bool = False


class Set(NamedTuple):
    path: str
    data: bytes
    version: int = ANY_VERSION


class Delete(NamedTuple):
    path: str
    version: int = ANY_VERSION


class Check(NamedTuple):
    path: str
    version: int


Operation: TypeAlias = Create | Set | Delete | Check


class MetadataStoreError(Exception):
    """A store could not carry out a call; nothing of the call happened."""


class ConflictError(MetadataStoreError):
    """The tree is not as the caller believed: read it again and decide again."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.path = path


class NoNodeError(ConflictError):
    pass


class NodeExistsError(ConflictError):
    pass


class BadVersionError(ConflictError):
    pass


class NotEmptyError(ConflictError):
    pass


class SessionExpiredError(MetadataStoreError):
    """The session is over and its ephemeral nodes are gone; `open` begins another."""


class MetadataStore(Protocol):
    multi_limit: int
    """How many operations one `multi` takes."""

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
        """Names of the children, sorted; none of a node that does not exist."""
        ...

    def create(self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False) -> str:
        """Returns the path made: a sequential node gets ten digits added to its name."""
        ...

    def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> int:
        """Returns the new version."""
        ...

    def delete(self, path: str, version: int = ANY_VERSION) -> None: ...

    def multi(self, operations: Sequence[Operation]) -> None:
        """All of them, or none and the error of the first that failed."""
        ...

    def watch(self, path: str, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back after changes at or below `path` and when the session is lost; returns how to end the watch."""
        ...


def parent_of(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def ensure_path(store: MetadataStore, path: str) -> None:
    """Make a persistent node and its parents where they are missing."""
    if path == "/" or store.get(path) is not None:
        return
    ensure_path(store, parent_of(path))
    try:
        store.create(path)
    except NodeExistsError:
        pass
