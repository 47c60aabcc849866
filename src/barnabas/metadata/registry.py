"""Every kind of metadata store, by the name that a location begins with.

    etcd://[USER:PASSWORD@]HOST:2379,HOST:2379[/PREFIX]            an etcd cluster, keys below a prefix
    zookeeper://[USER:PASSWORD@]HOST:2181,HOST:2181[/CHROOT]       a ZooKeeper ensemble, nodes below a chroot
    sqlite:FILE    a file that the brokers of one host share; a plain path means the same
    memory:        nothing is kept after the process has ended

A broker makes its store here, and its `--metadata` option is such a location. A new kind of store is one more entry.
"""

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote

from barnabas.config.metadata_engine import MetadataEngineConfig
from barnabas.metadata.engine_options import Address, EngineOptions, parse_addresses
from barnabas.metadata.store import MetadataStore
from barnabas.metadata.stores.memory import MemoryStore
from barnabas.metadata.stores.sqlite import SqliteStore

SQLITE = "sqlite"
METADATA_FILE = "barnabas-metadata.sqlite"
"""In the first log directory of a broker without other settings."""


class UnknownStoreError(ValueError):
    """The location names no kind of store; the text says which there are."""


def _memory_store(address: str, _options: EngineOptions) -> MemoryStore:
    if address:
        raise UnknownStoreError(f"the metadata store memory: has no address, but {address!r} is given")
    return MemoryStore()


def _sqlite_store(address: str, _options: EngineOptions) -> SqliteStore:
    if not address:
        raise UnknownStoreError("the metadata store sqlite: needs a file, as in sqlite:FILE")
    return SqliteStore(address)


def _etcd_store(address: str, options: EngineOptions) -> MetadataStore:
    from barnabas.metadata.stores.etcd import EtcdStore
    from barnabas.metadata.stores.etcd_client import DEFAULT_PORT

    return EtcdStore(*parse_engine("etcd", address, DEFAULT_PORT, options))


def _zookeeper_store(address: str, options: EngineOptions) -> MetadataStore:
    try:
        from barnabas.metadata.stores.zookeeper import DEFAULT_PORT, ZooKeeperStore
    except ImportError as error:
        raise UnknownStoreError(f"{error}: ZooKeeper needs the extra, pip install barnabas[zookeeper]") from error
    return ZooKeeperStore(*parse_engine("zookeeper", address, DEFAULT_PORT, options))


STORES: dict[str, Callable[[str, EngineOptions], MetadataStore]] = {
    "etcd": _etcd_store,
    "memory": _memory_store,
    SQLITE: _sqlite_store,
    "zookeeper": _zookeeper_store,
}


def store_at(location: str | Path, options: EngineOptions | None = None) -> MetadataStore:
    """The store, not opened yet; `options` are for engines. Raises UnknownStoreError."""
    kind, address = _split(location)
    return STORES[kind](address, options or EngineOptions())


def parse_engine(
    kind: str, text: str, default_port: int, options: EngineOptions
) -> tuple[tuple[Address, ...], str, EngineOptions]:
    """Addresses, prefix, and the options with the login that the location has."""
    match = re.fullmatch(r"//(?:([^@/]*)@)?([^/@?]+)(/[^?]*)?", text)
    if match is None:
        raise UnknownStoreError(f"the metadata store {kind}: needs hosts, as in {kind}://HOST:{default_port}/PATH")
    login, hosts, prefix = match.groups()
    if login is not None:
        username, _, password = login.partition(":")
        options = dataclasses.replace(options, username=unquote(username), password=unquote(password))
    try:
        addresses = parse_addresses(hosts, default_port)
    except ValueError as error:
        raise UnknownStoreError(f"the metadata store {kind}: {error}") from error
    return addresses, (prefix or "").rstrip("/"), options


def default_location(engine: MetadataEngineConfig, log_directory: str | Path) -> str | Path:
    """Where a broker with these settings keeps its metadata."""
    return engine.location or Path(log_directory, METADATA_FILE)


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
            f"there is no metadata store called {kind!r}, only {', '.join(sorted(STORES))}"
            f" (for a file of that name: {SQLITE}:{location})"
        )
    return kind, address
