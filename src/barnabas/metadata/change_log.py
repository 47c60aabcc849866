"""The change log in the store: what the controller decided, entry by entry, for the brokers that follow it.

    /barnabas/changes                the head: number of the newest entry, in text
    /barnabas/changes/0000000042     the records of entry 42 (`change_codec.py`)

`repository.py` writes an entry in the same transaction as the nodes that it changes, and sets the head with its
version: so entries have consecutive numbers, and of two writers one fails. Whoever lacks an entry that has been removed
loads everything.
"""

from collections.abc import Sequence

from barnabas.machines.controller.records import Record
from barnabas.metadata.change_codec import decode_change
from barnabas.metadata.store import Create, Delete, MetadataStore, NodeExistsError, Operation, Set

CHANGES = "/barnabas/changes"
KEPT_CHANGES = 1000
TRIM_INTERVAL = 100
"""Removing entries needs a list of them, so it is done for many at once."""


def change_path(number: int) -> str:
    return f"{CHANGES}/{number:010d}"


class ChangeLog:
    def __init__(self, store: MetadataStore) -> None:
        self._store = store
        self.number = 0
        """Of the newest entry, as last read or written."""
        self._version = 0

    def prepare(self) -> None:
        try:
            self._store.create(CHANGES, b"0")
        except NodeExistsError:
            pass

    def read_head(self) -> int:
        node = self._store.get(CHANGES)
        self.number, self._version = (0, 0) if node is None else (int(node.data), node.version)
        return self.number

    def after(self, number: int) -> list[tuple[int, tuple[Record, ...]]] | None:
        """The entries after `number`; None if the first of them is no longer there."""
        head = self.read_head()
        if head - number > KEPT_CHANGES + TRIM_INTERVAL or head < number:
            return None
        numbers = range(number + 1, head + 1)
        nodes = self._store.get_many([change_path(each) for each in numbers])
        entries = [(each, decode_change(node.data)) for each, node in zip(numbers, nodes) if node is not None]
        return entries if len(entries) == len(nodes) else None

    def appending(self, entry: bytes) -> tuple[Operation, Operation]:
        """What adds the next entry."""
        number = self.number + 1
        return Create(change_path(number), entry), Set(CHANGES, str(number).encode(), self._version)

    def on_appended(self) -> None:
        self.number += 1
        self._version += 1

    def has(self, entry: bytes) -> bool:
        """Whether the next entry was written after all, as this one."""
        node = self._store.get(change_path(self.number + 1))
        return node is not None and node.data == entry

    def surplus(self) -> Sequence[Operation]:
        """What removes the entries that nobody needs to keep."""
        oldest = self.number - KEPT_CHANGES + 1
        return [Delete(f"{CHANGES}/{name}") for name in self._store.children(CHANGES) if int(name) < oldest]
