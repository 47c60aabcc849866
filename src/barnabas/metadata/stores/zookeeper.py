"""A store in a ZooKeeper ensemble, below a chroot, in which everybody sees what Apache Kafka would keep there.

Versions and sessions are ZooKeeper's own, revisions are its transaction numbers (zxid). The parents that ZooKeeper
needs are made and removed by the way (`zookeeper_parents.py`). A server may lag behind the others, which `sync` makes
up for; reads of many nodes are not of one moment, so a scan's revision is that of its beginning.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from kazoo.exceptions import KazooException
from kazoo.protocol.serialization import Exists, GetChildren, GetData

from barnabas.metadata.engine_options import Address, EngineOptions
from barnabas.metadata.store import (
    ANY_VERSION,
    BadVersionError,
    ConflictError,
    Create,
    Delete,
    MetadataStoreError,
    Node,
    NodeExistsError,
    NoNodeError,
    Operation,
    Scan,
    SessionExpiredError,
    SessionListener,
    SessionState,
    Set,
    check_distinct,
    ignore_session_state,
)
from barnabas.metadata.stores.watches import Watches
from barnabas.metadata.stores.zookeeper_connection import ZooKeeperConnection
from barnabas.metadata.stores.zookeeper_parents import Parents, Step
from barnabas.metadata.stores.zookeeper_requests import (
    BAD_VERSION,
    NO_NODE,
    NODE_EXISTS,
    NOT_EMPTY,
    Multi,
    first_failure,
)

DEFAULT_PORT: Final = 2181
MULTI_LIMIT: Final = 1000
MAX_BYTES: Final = 700_000
"""Two parents and an access list beside each node have to fit into jute.maxbuffer, 1 MiB."""
MAX_ATTEMPTS: Final = 5
_ERRORS: Final = {NO_NODE: NoNodeError, NODE_EXISTS: NodeExistsError, BAD_VERSION: BadVersionError}


class ZooKeeperStore:
    max_bytes = MAX_BYTES

    def __init__(self, addresses: Sequence[Address], chroot: str = "", options: EngineOptions | None = None) -> None:
        """`chroot` begins with a slash and does not end with one, or is empty."""
        self._options = options or EngineOptions()
        self.multi_limit = self._options.multi_limit or MULTI_LIMIT
        self.call_timeout_ms = self._options.call_timeout_ms
        self.on_session_state: SessionListener = ignore_session_state
        self._addresses = addresses
        self._prefix = chroot
        self._watches = Watches()
        self._connection: ZooKeeperConnection | None = None
        self._parents = Parents(chroot, [], lambda requests: [])

    @property
    def session_id(self) -> int:
        return 0 if self._connection is None else self._connection.session_id

    def open(self) -> None:
        if self._connection is not None:
            self._connection.close()
        connection = ZooKeeperConnection(self._addresses, self._prefix, self._options, self._watches, self._on_state)
        connection.open(self._options.connect_timeout_ms / 1000)
        self._connection = connection
        self._parents = Parents(self._prefix, connection.acl, lambda requests: self._read(requests)[0])

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def get(self, path: str) -> Node | None:
        return self.get_many([path])[0]

    def get_many(self, paths: Sequence[str]) -> list[Node | None]:
        results, _ = self._read([GetData(self._path(path), None) for path in paths])
        return [None if result is None else _node(*result) for result in results]

    def children(self, path: str) -> list[str]:
        """Parents that only ZooKeeper needs are left out. Whether a node has data is known without reading it."""
        [[names], _] = self._read([GetChildren(self._path(path), None)])
        names = sorted(names or ())
        folder = self._path(path).rstrip("/")
        stats = self._opened().read([Exists(f"{folder}/{name}", None) for name in names], self._timeout_s)
        empty = [name for name, stat in zip(names, stats) if stat is not None and stat.dataLength == 0]
        nodes, _ = self._read([GetData(f"{folder}/{name}", None) for name in empty])
        hidden = {name for name, node in zip(empty, nodes) if node is None or node[0] is None}
        return [name for name, stat in zip(names, stats) if stat is not None and name not in hidden]

    def scan(self, prefix: str) -> Scan:
        """Level by level, each in as few requests as possible."""
        nodes: dict[str, Node] = {}
        revision: int | None = None
        level = [self._path(prefix)]
        while level:
            results, zxid = self._read([GetData(path, None) for path in level])
            revision = zxid if revision is None else revision
            folders = []
            for path, result in zip(level, results):
                if result is None:
                    continue
                node = _node(*result)
                if node is not None and path not in ("/", self._prefix):
                    nodes[path[len(self._prefix) :]] = node
                if result[1].numChildren:
                    folders.append(path)
            names, _ = self._read([GetChildren(path, None) for path in folders])
            level = list(_joined(folders, names))
        assert revision is not None
        return Scan(revision, nodes)

    def sync(self) -> None:
        self._opened().sync(self._timeout_s)

    def create(self, path: str, data: bytes = b"", *, ephemeral: bool = False) -> int:
        return self.multi([Create(path, data, ephemeral)])

    def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> int:
        _, [stat] = self._commit([Set(path, data, version)])
        return int(stat.version)

    def delete(self, path: str, version: int = ANY_VERSION) -> None:
        self.multi([Delete(path, version)])

    def multi(self, operations: Sequence[Operation]) -> int:
        check_distinct(operations)
        return self._commit(operations)[0]

    def watch(self, path: str, callback: Callable[[], None]) -> Callable[[], None]:
        end = self._watches.add(path, callback)
        if self._connection is not None and not self._connection.is_lost:
            self._connection.watch_all()
        return end

    @property
    def _timeout_s(self) -> float:
        return self.call_timeout_ms / 1000

    def _on_state(self, state: SessionState) -> None:
        self.on_session_state(state)

    def _path(self, path: str) -> str:
        return f"{self._prefix}{path}".rstrip("/") or "/"

    def _opened(self) -> ZooKeeperConnection:
        if self._connection is None or self._connection.is_lost:
            raise SessionExpiredError("the session with ZooKeeper is over")
        return self._connection

    def _read(self, requests: Sequence[Any]) -> tuple[list[Any], int]:
        try:
            return self._opened().read_many(requests, self._timeout_s)
        except KazooException as error:
            raise MetadataStoreError(f"ZooKeeper: {error!r}") from error

    def _commit(self, operations: Sequence[Operation]) -> tuple[int, list[Any]]:
        """The zxid, and ZooKeeper's result of each operation.

        Again where other sessions have created or removed parents meanwhile.
        """
        connection = self._opened()
        for _ in range(MAX_ATTEMPTS):
            steps = self._parents.completed(operations)
            request = Multi(connection.client, [step.request for step in steps])
            try:
                results = connection.call(request, self._timeout_s)
            except KazooException as error:
                raise MetadataStoreError(f"ZooKeeper: {error!r}") from error
            failure = first_failure(results)
            if failure is None:
                self._parents.on_done(steps)
                return request.zxid, [result for step, result in zip(steps, results) if step.operation is not None]
            self._parents.forget()
            reason = _error_of(steps[failure[0]], failure[1])
            if reason is not None:
                raise reason
        raise ConflictError(operations[0].path)


def _node(data: bytes | None, stat: Any) -> Node | None:
    """None for a parent that only ZooKeeper needs."""
    return None if data is None else Node(data, stat.version, stat.czxid, stat.mzxid, stat.ephemeralOwner)


def _joined(folders: Sequence[str], names: Sequence[list[str] | None]) -> Iterator[str]:
    for folder, children in zip(folders, names):
        for name in children or ():
            yield f"{folder.rstrip('/')}/{name}"


def _error_of(step: Step, code: int) -> MetadataStoreError | None:
    """None if it is about parents, so that another attempt is worth while."""
    if step.operation is None or (isinstance(step.operation, Create) and code == NO_NODE):
        return None
    if code == NOT_EMPTY:
        return ConflictError(step.operation.path)
    kind = _ERRORS.get(code)
    return MetadataStoreError(f"ZooKeeper: error {code}") if kind is None else kind(step.operation.path)
