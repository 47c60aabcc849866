"""A store in an etcd cluster, below a prefix of its keys.

A path is a key, the version of a node is etcd's minus one, revisions are etcd's. Every write is one transaction of
etcd, whose comparisons are the operations' conditions; if one does not hold, the same transaction reads the versions
that say which. Sessions are leases. Reads are linearizable, so `sync` has nothing to do.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from barnabas.metadata.engine_options import Address, EngineOptions
from barnabas.metadata.store import (
    ANY_VERSION,
    BadVersionError,
    Check,
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
from barnabas.metadata.stores.etcd_client import NOT_FOUND, EtcdClient, EtcdError, EtcdHosts, decoded, encoded
from barnabas.metadata.stores.etcd_session import EtcdSession
from barnabas.metadata.stores.etcd_watch import EtcdWatch
from barnabas.metadata.stores.watches import Watches

DEFAULT_MULTI_LIMIT: Final = 128
"""etcd's default of --max-txn-ops."""
MAX_BYTES: Final = 1 << 20
"""Below etcd's default of --max-request-bytes, 1.5 MiB."""
PAGE_SIZE: Final = 10_000

Body = dict[str, Any]


class EtcdStore:
    max_bytes = MAX_BYTES

    def __init__(self, addresses: Sequence[Address], prefix: str = "", options: EngineOptions | None = None) -> None:
        """`prefix` begins with a slash and does not end with one, or is empty."""
        options = options or EngineOptions()
        self.multi_limit = options.multi_limit or DEFAULT_MULTI_LIMIT
        self.call_timeout_ms = options.call_timeout_ms
        self.on_session_state: SessionListener = ignore_session_state
        self._prefix = prefix
        self._ttl_s = max(1, options.session_timeout_ms // 1000)
        self._connect_timeout_s = options.connect_timeout_ms / 1000
        self._hosts = EtcdHosts(addresses, options)
        self._client = EtcdClient(self._hosts)
        self._lock = threading.Lock()
        self._watches = Watches()
        self._session: EtcdSession | None = None
        self._watch: EtcdWatch | None = None

    @property
    def session_id(self) -> int:
        return 0 if self._session is None else self._session.lease_id

    def open(self) -> None:
        self._hosts.prepare()
        if self._session is not None:
            self._session.end()
        session = EtcdSession(self._hosts, self._on_state, self._watches.fire_all)
        session.begin(self._ttl_s, self._connect_timeout_s)
        self._session = session
        if self._watch is None:
            self._watch = EtcdWatch(self._hosts, self._prefix, self._watches)
            self._hosts.on_moved = self._watch.restart
            self._watch.restart()
        self._on_state(SessionState.CONNECTED)

    def close(self) -> None:
        if self._watch is not None:
            self._hosts.on_moved = lambda: None
            self._watch.close()
            self._watch = None
        if self._session is not None:
            self._session.end()
        with self._lock:
            self._client.close()

    def get(self, path: str) -> Node | None:
        return self.get_many([path])[0]

    def get_many(self, paths: Sequence[str]) -> list[Node | None]:
        found: list[Node | None] = []
        for start in range(0, len(paths), self.multi_limit):
            part = paths[start : start + self.multi_limit]
            requests = [{"request_range": {"key": self._key(path)}} for path in part]
            response = self._read("kv/txn", {"success": requests})
            for each in response["responses"]:
                kvs = each["response_range"].get("kvs")
                found.append(_node(kvs[0]) if kvs else None)
        return found

    def children(self, path: str) -> list[str]:
        response = self._read("kv/range", {**self._below(path), "keys_only": True})
        names = (self._path(kv).removeprefix(path).lstrip("/") for kv in response.get("kvs", ()))
        return sorted(name for name in names if "/" not in name)

    def scan(self, prefix: str) -> Scan:
        """The first page has the node itself as well; the others are read at its revision."""
        below = {**self._below(prefix), "limit": str(PAGE_SIZE)}
        requests = [{"request_range": {"key": self._key(prefix)}}, {"request_range": below}]
        response = self._read("kv/txn", {"success": requests if prefix != "/" else requests[1:]})
        revision = int(response["header"]["revision"])
        pages = [each["response_range"] for each in response["responses"]]
        nodes = {self._path(kv): _node(kv) for page in pages for kv in page.get("kvs", ())}
        page = pages[-1]
        while page.get("more"):
            after_last = encoded(decoded(page["kvs"][-1]["key"]) + b"\0")
            page = self._read("kv/range", {**below, "key": after_last, "revision": str(revision)})
            nodes |= {self._path(kv): _node(kv) for kv in page.get("kvs", ())}
        return Scan(revision, nodes)

    def sync(self) -> None:
        self._opened()

    def create(self, path: str, data: bytes = b"", *, ephemeral: bool = False) -> int:
        return self.multi([Create(path, data, ephemeral)])

    def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> int:
        """Two may set a node without a condition at the same time, so the version is read by the transaction."""
        operation = Set(path, data, version)
        response = self._transaction([operation], then=[{"request_range": {"key": self._key(path), "keys_only": True}}])
        [kv] = response["responses"][-1]["response_range"]["kvs"]
        return int(kv["version"]) - 1

    def delete(self, path: str, version: int = ANY_VERSION) -> None:
        self.multi([Delete(path, version)])

    def multi(self, operations: Sequence[Operation]) -> int:
        check_distinct(operations)
        return int(self._transaction(operations)["header"]["revision"])

    def watch(self, path: str, callback: Callable[[], None]) -> Callable[[], None]:
        end = self._watches.add(path, callback)
        if self._watch is not None:
            self._watch.restart()
        return end

    @property
    def _timeout_s(self) -> float:
        return self.call_timeout_ms / 1000

    def _on_state(self, state: SessionState) -> None:
        self.on_session_state(state)

    def _opened(self) -> EtcdSession:
        if self._session is None or self._session.is_lost:
            raise SessionExpiredError("the session with etcd is over")
        return self._session

    def _read(self, call: str, body: Body) -> Body:
        self._opened()
        with self._lock:
            return self._client.read(call, body, self._timeout_s)

    def _transaction(self, operations: Sequence[Operation], then: Sequence[Body] = ()) -> Body:
        lease_id = self._opened().lease_id
        body = {
            "compare": [self._condition(each) for each in operations],
            "success": [*self._requests(operations, lease_id), *then],
            "failure": [{"request_range": {"key": self._key(each.path), "keys_only": True}} for each in operations],
        }
        try:
            with self._lock:
                response = self._client.write("kv/txn", body, self._timeout_s)
        except EtcdError as error:
            if error.code == NOT_FOUND and "lease" in str(error):
                raise SessionExpiredError(str(error)) from error
            raise
        if not response.get("succeeded"):
            raise self._conflict(operations, response["responses"])
        return response

    def _requests(self, operations: Sequence[Operation], lease_id: int) -> Iterator[Body]:
        for operation in operations:
            key = self._key(operation.path)
            match operation:
                case Create(_, data, ephemeral):
                    put = {"key": key, "value": encoded(data)}
                    yield {"request_put": {**put, "lease": str(lease_id)} if ephemeral else put}
                case Set(_, data):
                    yield {"request_put": {"key": key, "value": encoded(data), "ignore_lease": True}}
                case Delete():
                    yield {"request_delete_range": {"key": key}}
                case Check():
                    pass

    def _condition(self, operation: Operation) -> Body:
        compare = {"key": self._key(operation.path), "target": "VERSION"}
        if isinstance(operation, Create):
            return {**compare, "result": "EQUAL", "version": "0"}
        if operation.version == ANY_VERSION:
            return {**compare, "result": "GREATER", "version": "0"}
        # Version -2 and the like, which no node has, must not become "does not exist".
        version = operation.version + 1 if operation.version >= 0 else -1
        return {**compare, "result": "EQUAL", "version": str(version)}

    def _conflict(self, operations: Sequence[Operation], responses: Sequence[Body]) -> MetadataStoreError:
        for operation, response in zip(operations, responses):
            kvs = response["response_range"].get("kvs")
            error = _error_of(operation, int(kvs[0]["version"]) - 1 if kvs else None)
            if error is not None:
                return error
        return MetadataStoreError(f"etcd rejected a transaction whose conditions hold: {operations[:3]}")

    def _key(self, path: str) -> str:
        return encoded(f"{self._prefix}{path}")

    def _below(self, path: str) -> Body:
        folder = f"{self._prefix}{path}".rstrip("/")
        return {"key": encoded(f"{folder}/"), "range_end": encoded(f"{folder}0")}

    def _path(self, kv: Body) -> str:
        return decoded(kv["key"]).decode()[len(self._prefix) :]


def _node(kv: Body) -> Node:
    return Node(
        decoded(kv.get("value", "")),
        int(kv["version"]) - 1,
        int(kv["create_revision"]),
        int(kv["mod_revision"]),
        int(kv.get("lease", 0)),
    )


def _error_of(operation: Operation, version: int | None) -> ConflictError | None:
    """`version` of the node as it is, None if there is none."""
    if isinstance(operation, Create):
        return None if version is None else NodeExistsError(operation.path)
    if version is None:
        return NoNodeError(operation.path)
    return None if operation.version in (ANY_VERSION, version) else BadVersionError(operation.path)
