"""What the operations mean, once for every store that keeps its nodes itself.

A store gives the three primitives; the rules about versions are here. If an operation raises, the store must take back
the whole transaction.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from barnabas.metadata.store import (
    ANY_VERSION,
    BadVersionError,
    Check,
    Create,
    Delete,
    Node,
    NodeExistsError,
    NoNodeError,
    Operation,
    Set,
    check_distinct,
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

    def apply_all(self, operations: Sequence[Operation]) -> None:
        check_distinct(operations)
        for operation in operations:
            self._apply(operation)

    def _apply(self, operation: Operation) -> None:
        path = operation.path
        match operation:
            case Create(_, data, ephemeral):
                if self.find(path) is not None:
                    raise NodeExistsError(path)
                self.put(path, Node(data, 0, self.number, self.number, self.session_id if ephemeral else 0))
            case Set(_, data, version):
                node = self._expect(path, version)
                self.put(path, node._replace(data=data, version=node.version + 1, modified=self.number))
            case Delete(_, version):
                self._expect(path, version)
                self.remove(path)
            case Check(_, version):
                self._expect(path, version)
                return
        self.changed.append(path)

    def _expect(self, path: str, version: int) -> Node:
        node = self.find(path)
        if node is None:
            raise NoNodeError(path)
        if version not in (ANY_VERSION, node.version):
            raise BadVersionError(path)
        return node
