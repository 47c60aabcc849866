"""Users written into the metadata while no broker runs: the first administrator of a cluster whose listeners all demand
a login, or a new password for one who is locked out.

Used by the commands `barnabas user` and `kafka-storage.sh format`. Brokers that run would not notice such a change, so
it is refused while there are any.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from barnabas.config.broker import BrokerConfig
from barnabas.metadata import tree
from barnabas.metadata.engine_options import EngineOptions
from barnabas.metadata.image import ConfigResource
from barnabas.metadata.registry import default_location, file_at, store_at
from barnabas.metadata.store import Create, MetadataStore, Set


class BrokersRunError(Exception):
    """The cluster runs, so that users are changed by its brokers."""


class FirstUsers:
    """Use `open_users`."""

    def __init__(self, store: MetadataStore) -> None:
        self._store = store

    def credentials_of(self, user: str) -> dict[str, str]:
        """By mechanism, in Kafka's form."""
        node = self._store.get(tree.config_path(ConfigResource.user(user)))
        return {} if node is None else tree.decode_config(node.data)

    def put(self, user: str, credentials: Mapping[str, str]) -> None:
        """Those of other mechanisms stay. Raises BrokersRunError, MetadataStoreError."""
        path = tree.config_path(ConfigResource.user(user))
        node = self._store.get(path)
        before = {} if node is None else tree.decode_config(node.data)
        data = tree.encode_config({**before, **credentials})
        self.check()
        self._store.multi([Create(path, data) if node is None else Set(path, data, node.version)])

    def check(self) -> None:
        if self._store.children(tree.BROKER_IDS) or self._store.get(tree.CONTROLLER) is not None:
            raise BrokersRunError


@contextmanager
def open_users(config: BrokerConfig, location: str | None = None) -> Iterator[FirstUsers]:
    """Of the cluster that a broker with these settings would join, or whose metadata is at that location.

    Raises BrokersRunError, UnknownStoreError, MetadataStoreError, OSError.
    """
    engine = config.metadata_engine
    where = location or default_location(engine, config.log_directories[0])
    file = file_at(where)
    if file is not None:
        Path(file).parent.mkdir(parents=True, exist_ok=True)
    store = store_at(where, EngineOptions.of(engine))
    store.open()
    try:
        users = FirstUsers(store)
        users.check()
        yield users
    finally:
        store.close()
