"""A store in memory, for tests and brokers that need not outlive their process.

`MemoryTree` is the service, `MemoryStore` one broker's session with it; several brokers in one process share a tree.
"""

import threading
from collections.abc import Callable, Sequence

from barnabas.metadata.store import (
    ANY_VERSION,
    Create,
    Delete,
    Node,
    Operation,
    Scan,
    SessionExpiredError,
    SessionListener,
    SessionState,
    Set,
    ignore_session_state,
    is_at_or_below,
    parent_of,
)
from barnabas.metadata.stores.transaction import Transaction
from barnabas.metadata.stores.watches import Watches


class MemoryTree:
    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.nodes: dict[str, Node] = {}
        self.sessions: dict[int, MemoryStore] = {}
        self.transaction_count = 0
        self.session_count = 0

    def commit(self, session_id: int, operations: Sequence[Operation]) -> int:
        with self.lock:
            transaction = _MemoryTransaction(self, session_id)
            try:
                transaction.apply_all(operations)
            except BaseException:
                transaction.undo()
                raise
            self.transaction_count = transaction.number
            sessions = list(self.sessions.values())
        for session in sessions:
            session.watches.fire(transaction.changed)
        return transaction.number

    def end_session(self, session_id: int) -> None:
        with self.lock:
            if self.sessions.pop(session_id, None) is None:
                return
            owned = [path for path, node in self.nodes.items() if node.owner == session_id]
        self.commit(session_id, [Delete(path) for path in owned])


class _MemoryTransaction(Transaction):
    def __init__(self, tree: MemoryTree, session_id: int) -> None:
        super().__init__(tree.transaction_count + 1, session_id)
        self._nodes = tree.nodes
        self._undo: list[tuple[str, Node | None]] = []

    def find(self, path: str) -> Node | None:
        return self._nodes.get(path)

    def put(self, path: str, node: Node) -> None:
        self._undo.append((path, self._nodes.get(path)))
        self._nodes[path] = node

    def remove(self, path: str) -> None:
        self._undo.append((path, self._nodes.pop(path)))

    def undo(self) -> None:
        for path, node in reversed(self._undo):
            if node is None:
                del self._nodes[path]
            else:
                self._nodes[path] = node


class MemoryStore:
    multi_limit = 1_000_000
    max_bytes = 1 << 40
    call_timeout_ms = 0

    def __init__(self, tree: MemoryTree | None = None) -> None:
        self.tree = tree or MemoryTree()
        self.watches = Watches()
        self.on_session_state: SessionListener = ignore_session_state
        self._session_id = 0

    @property
    def session_id(self) -> int:
        return self._session_id

    def open(self) -> None:
        with self.tree.lock:
            self.tree.session_count += 1
            self._session_id = self.tree.session_count
            self.tree.sessions[self._session_id] = self
        self.on_session_state(SessionState.CONNECTED)

    def close(self) -> None:
        self.tree.end_session(self._session_id)

    def expire(self) -> None:
        """End the session as a server would after too long without a message of the broker."""
        self.tree.end_session(self._session_id)
        self.on_session_state(SessionState.LOST)
        self.watches.fire_all()

    def get(self, path: str) -> Node | None:
        return self.get_many([path])[0]

    def get_many(self, paths: Sequence[str]) -> list[Node | None]:
        with self.tree.lock:
            self._check_session()
            nodes = self.tree.nodes
            return [nodes.get(path) for path in paths]

    def children(self, path: str) -> list[str]:
        with self.tree.lock:
            self._check_session()
            return sorted(each.rpartition("/")[2] for each in self.tree.nodes if parent_of(each) == path)

    def scan(self, prefix: str) -> Scan:
        with self.tree.lock:
            self._check_session()
            found = {path: node for path, node in self.tree.nodes.items() if is_at_or_below(path, prefix)}
            return Scan(self.tree.transaction_count, found)

    def sync(self) -> None:
        with self.tree.lock:
            self._check_session()

    def create(self, path: str, data: bytes = b"", *, ephemeral: bool = False) -> int:
        return self.multi([Create(path, data, ephemeral)])

    def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> int:
        self.multi([Set(path, data, version)])
        return self.tree.nodes[path].version if version == ANY_VERSION else version + 1

    def delete(self, path: str, version: int = ANY_VERSION) -> None:
        self.multi([Delete(path, version)])

    def multi(self, operations: Sequence[Operation]) -> int:
        with self.tree.lock:
            self._check_session()
            return self.tree.commit(self._session_id, operations)

    def watch(self, path: str, callback: Callable[[], None]) -> Callable[[], None]:
        return self.watches.add(path, callback)

    def _check_session(self) -> None:
        if self._session_id not in self.tree.sessions:
            raise SessionExpiredError(f"session {self._session_id} is over")
