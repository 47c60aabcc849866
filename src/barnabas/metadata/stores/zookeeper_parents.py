"""Nodes that ZooKeeper needs and the store does not show: the parents of nodes, where nobody has created them.

Such a parent has null for data, as those that Apache Kafka makes have; a node of the store has data, if only empty. It
is created and deleted with its children, in the same transaction, which this module completes.
"""

from collections.abc import Callable, Sequence
from typing import Any

from kazoo.protocol.serialization import CheckVersion, GetData, SetData
from kazoo.protocol.serialization import Create as CreateRequest
from kazoo.protocol.serialization import Delete as DeleteRequest

from barnabas.metadata.store import Check, Create, Delete, Operation, Set, parent_of

Read = Callable[[Sequence[Any]], list[Any]]
_EPHEMERAL = 1


class Step:
    """One operation for ZooKeeper; `operation` is the caller's, or None for a parent."""

    __slots__ = ("operation", "request")

    def __init__(self, request: Any, operation: Operation | None) -> None:
        self.request = request
        self.operation = operation


class Parents:
    def __init__(self, prefix: str, acl: list[Any], read: Read) -> None:
        """`read` carries out GetData requests; None for a node that is not there."""
        self._prefix = prefix
        self._acl = acl
        self._read = read
        self._present: set[str] = {"/"}
        """Paths seen to exist. If one is gone by now, the transaction fails and `forget` is called."""

    def forget(self) -> None:
        self._present = {"/"}

    def completed(self, operations: Sequence[Operation]) -> list[Step]:
        """The operations with the parents that they need before, and those that nobody needs after."""
        missing = self._missing_parents([each for each in operations if isinstance(each, Create)])
        surplus = self._surplus_parents(operations)
        steps: list[Step] = []
        for operation in operations:
            path = f"{self._prefix}{operation.path}"
            steps += [Step(self._parent(each), None) for each in missing.pop(operation.path, ())]
            steps.append(Step(self._request(operation, path), operation))
            steps += [Step(DeleteRequest(each, -1), None) for each in surplus.get(operation.path, ())]
        return steps

    def on_done(self, steps: Sequence[Step]) -> None:
        for step in steps:
            if isinstance(step.request, CreateRequest):
                if not step.request.flags:
                    self._present.add(step.request.path)
            elif isinstance(step.request, DeleteRequest):
                self._present.discard(step.request.path)

    def _request(self, operation: Operation, path: str) -> Any:
        match operation:
            case Create(_, data, ephemeral):
                return CreateRequest(path, data, self._acl, _EPHEMERAL if ephemeral else 0)
            case Set(_, data, version):
                return SetData(path, data, version)
            case Delete(_, version):
                return DeleteRequest(path, version)
            case Check(_, version):
                return CheckVersion(path, version)

    def _parent(self, path: str) -> Any:
        return CreateRequest(path, None, self._acl, 0)

    def _missing_parents(self, creations: Sequence[Create]) -> dict[str, list[str]]:
        """By the path of the first operation that needs them."""
        created = {f"{self._prefix}{each.path}" for each in creations}
        chains = {each.path: _ancestors(f"{self._prefix}{each.path}") for each in creations}
        unknown = {path for chain in chains.values() for path in chain if not self._is_decided(path, chain, created)}
        names = sorted(unknown)
        found = self._read([GetData(path, None) for path in names])
        self._present.update(path for path, node in zip(names, found) if node is not None)
        planned: set[str] = set()
        missing: dict[str, list[str]] = {}
        for path, chain in chains.items():
            missing[path] = [
                each for each in chain if each not in self._present and each not in planned and each not in created
            ]
            planned.update(missing[path])
        return missing

    def _is_decided(self, path: str, chain: Sequence[str], created: set[str]) -> bool:
        """It is there, it is among the operations, or it cannot be there because an ancestor is only just created."""
        return path in self._present or any(each in created for each in chain[: chain.index(path) + 1])

    def _surplus_parents(self, operations: Sequence[Operation]) -> dict[str, list[str]]:
        """By the path of the last deletion that leaves them empty."""
        gone = {f"{self._prefix}{each.path}" for each in operations if isinstance(each, Delete)}
        arriving = {parent_of(f"{self._prefix}{each.path}") for each in operations if isinstance(each, Create)}
        removed: dict[str, int] = {}
        surplus: dict[str, list[str]] = {}
        known = self._read_parents(gone)
        for operation in operations:
            if not isinstance(operation, Delete):
                continue
            path = parent_of(f"{self._prefix}{operation.path}")
            found = surplus.setdefault(operation.path, [])
            while path in known:
                removed[path] = removed.get(path, 0) + 1
                data, stat = known[path]
                if data is not None or removed[path] < stat.numChildren or path in arriving:
                    break
                found.append(path)
                path = parent_of(path)
        return surplus

    def _read_parents(self, paths: set[str]) -> dict[str, tuple[bytes | None, Any]]:
        """Those above the paths, up to the first that is a node of the store."""
        known: dict[str, tuple[bytes | None, Any]] = {}
        level = sorted({parent_of(path) for path in paths} - {"/", self._prefix})
        while level:
            found = zip(level, self._read([GetData(path, None) for path in level]))
            fresh = {path: node for path, node in found if node is not None}
            known |= fresh
            above = {parent_of(path) for path, (data, _) in fresh.items() if data is None}
            level = sorted(above - {"/", self._prefix} - known.keys())
        return known


def _ancestors(path: str) -> list[str]:
    """From the root, which is left out, down to the parent."""
    found = []
    parent = parent_of(path)
    while parent != "/":
        found.append(parent)
        parent = parent_of(parent)
    return found[::-1]
