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
    SessionExpiredError,
    Set,
    parent_of,
)
from barnabas.metadata.stores.transaction import Transaction
from barnabas.metadata.stores.watches import Watches


class MemoryTree:
    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.nodes: dict[str, Node] = {"/": Node(b"", 0, 0, 0)}
        self.children: dict[str, dict[str, None]] = {"/": {}}
        self.sequences: dict[str, int] = {}
        self.sessions: dict[int, MemoryStore] = {}
        self.transaction_count = 0
        self.session_count = 0

    def commit(self, session_id: int, operations: Sequence[Operation]) -> list[str | int]:
        with self.lock:
            transaction = _MemoryTransaction(self, session_id)
            try:
                results = [transaction.apply(operation) for operation in operations]
            except BaseException:
                transaction.undo()
                raise
            self.transaction_count = transaction.number
            sessions = list(self.sessions.values())
        for session in sessions:
            session.watches.fire(transaction.changed)
        return results

    def end_session(self, session_id: int) -> None:
        with self.lock:
            if self.sessions.pop(session_id, None) is None:
                return
            owned = [path for path, node in self.nodes.items() if node.owner == session_id]
        self.commit(session_id, [Delete(path) for path in owned])


class _MemoryTransaction(Transaction):
    def __init__(self, tree: MemoryTree, session_id: int) -> None:
        super().__init__(tree.transaction_count + 1, session_id)
        self._tree = tree
        self._undo: list[tuple[str, Node | None]] = []

    def find(self, path: str) -> Node | None:
        return self._tree.nodes.get(path)

    def put(self, path: str, node: Node) -> None:
        self._undo.append((path, self._tree.nodes.get(path)))
        self._write(path, node)

    def remove(self, path: str) -> None:
        self._undo.append((path, self._tree.nodes[path]))
        self._write(path, None)

    def has_children(self, path: str) -> bool:
        return bool(self._tree.children[path])

    def next_sequence(self, parent: str) -> int:
        number = self._tree.sequences.get(parent, 0)
        self._tree.sequences[parent] = number + 1
        return number

    def undo(self) -> None:
        for path, node in reversed(self._undo):
            self._write(path, node)

    def _write(self, path: str, node: Node | None) -> None:
        tree = self._tree
        if node is None:
            del tree.nodes[path], tree.children[path]
            del tree.children[parent_of(path)][path]
            return
        if path not in tree.nodes:
            tree.children[path] = {}
            tree.children[parent_of(path)][path] = None
        tree.nodes[path] = node


class MemoryStore:
    multi_limit = 1_000_000

    def __init__(self, tree: MemoryTree | None = None) -> None:
        self.tree = tree or MemoryTree()
        self.watches = Watches()
        self._session_id = 0

    @property
    def session_id(self) -> int:
        return self._session_id

    def open(self) -> None:
        with self.tree.lock:
            self.tree.session_count += 1
            self._session_id = self.tree.session_count
            self.tree.sessions[self._session_id] = self

    def close(self) -> None:
        self.tree.end_session(self._session_id)

    def expire(self) -> None:
        """End the session as a server would after too long without a message of the broker."""
        self.tree.end_session(self._session_id)
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
            return sorted(child.rpartition("/")[2] for child in self.tree.children.get(path, ()))

    def create(self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False) -> str:
        return str(self._commit([Create(path, data, ephemeral, sequential)])[0])

    def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> int:
        return int(self._commit([Set(path, data, version)])[0])

    def delete(self, path: str, version: int = ANY_VERSION) -> None:
        self._commit([Delete(path, version)])

    def multi(self, operations: Sequence[Operation]) -> None:
        self._commit(operations)

    def watch(self, path: str, callback: Callable[[], None]) -> Callable[[], None]:
        return self.watches.add(path, callback)

    def _commit(self, operations: Sequence[Operation]) -> list[str | int]:
        with self.tree.lock:
            self._check_session()
            return self.tree.commit(self._session_id, operations)

    def _check_session(self) -> None:
        if self._session_id not in self.tree.sessions:
            raise SessionExpiredError(f"session {self._session_id} is over")
