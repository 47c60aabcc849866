"""Every kind of metadata store, by the name that a location begins with.

    sqlite:FILE    a file that the brokers of one host share; a plain path means the same
    memory:        nothing is kept after the process has ended

A broker makes its store here, and its `--metadata` option is such a location. A new kind of store is one more entry.
"""

import re
from collections.abc import Callable
from pathlib import Path

from barnabas.metadata.store import MetadataStore
from barnabas.metadata.stores.memory import MemoryStore
from barnabas.metadata.stores.sqlite import SqliteStore

SQLITE = "sqlite"


class UnknownStoreError(ValueError):
    """The location names no kind of store; the text says which there are."""


def _memory_store(address: str) -> MemoryStore:
    if address:
        raise UnknownStoreError(f"the metadata store memory: has no address, but {address!r} is given")
    return MemoryStore()


def _sqlite_store(address: str) -> SqliteStore:
    if not address:
        raise UnknownStoreError("the metadata store sqlite: needs a file, as in sqlite:FILE")
    return SqliteStore(address)


STORES: dict[str, Callable[[str], MetadataStore]] = {"memory": _memory_store, SQLITE: _sqlite_store}


def store_at(location: str | Path) -> MetadataStore:
    """The store, not opened yet. Raises UnknownStoreError."""
    kind, address = _split(location)
    return STORES[kind](address)


def file_at(location: str | Path) -> Path | None:
    """The file that the store keeps everything in; None if it is not a file of this host."""
    kind, address = _split(location)
    return Path(address) if kind == SQLITE else None


def _split(location: str | Path) -> tuple[str, str]:
    """A Path, and text that does not begin like `kind:`, is the path of an SQLite file."""
    named = re.match(r"([a-z]+):(.*)", location, re.DOTALL) if isinstance(location, str) else None
    if named is None:
        return SQLITE, str(location)
    kind, address = named.groups()
    if kind not in STORES:
        raise UnknownStoreError(
            f"there is no metadata store called {kind!r}, only {' and '.join(sorted(STORES))}"
            f" (for a file of that name: {SQLITE}:{location})"
        )
    return kind, address
