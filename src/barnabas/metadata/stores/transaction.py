"""What the operations of a tree mean, once for every store that keeps its nodes itself.

A store gives the five primitives; the rules about parents, versions, children and sequence numbers are here. If an
operation raises, the store must take back the whole transaction.
"""

from abc import ABC, abstractmethod

from barnabas.metadata.store import (
    ANY_VERSION,
    BadVersionError,
    Check,
    Create,
    Delete,
    Node,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    Operation,
    Set,
    parent_of,
)


class Transaction(ABC):
    def __init__(self, number: int, session_id: int) -> None:
        self.number = number
        self.session_id = session_id
        self.changed: list[str] = []

    @abstractmethod
    def find(self, path: str) -> Node | None: ...

    @abstractmethod
    def put(self, path: str, node: Node) -> None: ...

    @abstractmethod
    def remove(self, path: str) -> None: ...

    @abstractmethod
    def has_children(self, path: str) -> bool: ...

    @abstractmethod
    def next_sequence(self, parent: str) -> int: ...

    def apply(self, operation: Operation) -> str | int:
        """Returns the path a Create made, or the version a Set made."""
        match operation:
            case Create():
                return self._create(operation)
            case Set(path, data, version):
                node = self._expect(path, version)
                self.put(path, node._replace(data=data, version=node.version + 1, modified=self.number))
                self.changed.append(path)
                return node.version + 1
            case Delete(path, version):
                self._expect(path, version)
                if self.has_children(path):
                    raise NotEmptyError(path)
                self.remove(path)
                self.changed.append(path)
                return path
            case Check(path, version):
                return self._expect(path, version).version

    def _create(self, operation: Create) -> str:
        path = operation.path
        parent = parent_of(path)
        if self.find(parent) is None:
            raise NoNodeError(parent)
        if operation.sequential:
            path = f"{path}{self.next_sequence(parent):010d}"
        if self.find(path) is not None:
            raise NodeExistsError(path)
        owner = self.session_id if operation.ephemeral else 0
        self.put(path, Node(operation.data, 0, self.number, self.number, owner))
        self.changed.append(path)
        return path

    def _expect(self, path: str, version: int) -> Node:
        node = self.find(path)
        if node is None:
            raise NoNodeError(path)
        if version not in (ANY_VERSION, node.version):
            raise BadVersionError(path)
        return node
