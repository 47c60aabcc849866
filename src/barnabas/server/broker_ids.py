"""The id of a broker that was given none: kept in its log directories, or a new one from the cluster's metadata store.

The server command calls `with_broker_id` before it makes the broker. As in Kafka with ZooKeeper, generated ids are
above reserved.broker.max.id; meta.properties keeps them, so that a restart finds the same one. Everything here blocks.
"""

from barnabas.config.broker import BrokerConfig
from barnabas.errors import StorageError
from barnabas.metadata.engine_options import EngineOptions
from barnabas.metadata.registry import store_at
from barnabas.metadata.repository import MetadataRepository
from barnabas.metadata.store import MetadataStore, MetadataStoreError
from barnabas.storage.files import Files
from barnabas.storage.meta_properties import CorruptMetaPropertiesError, read_meta_properties
from barnabas.types import NodeId


class NoBrokerIdError(Exception):
    """The id cannot be found out; the text says why."""


def with_broker_id(config: BrokerConfig, location: str | None) -> BrokerConfig:
    """The settings with node.id. Raises NoBrokerIdError, and UnknownStoreError for a location that names no store."""
    try:
        node_id = kept_id(config.log_directories)
        if node_id is None:
            engine = config.metadata_engine
            store = store_at(location or engine.location or "", EngineOptions.of(engine))
            node_id = generate_id(store, engine.reserved_broker_max_id)
    except (StorageError, MetadataStoreError) as error:
        raise NoBrokerIdError(str(error)) from error
    return BrokerConfig.parse({**config.given, "node.id": str(node_id)})


def kept_id(directories: tuple[str, ...]) -> NodeId | None:
    """The node that the directories belong to; None if all are new. Raises StorageError."""
    ids: dict[int, str] = {}
    failure: StorageError | None = None
    for directory in directories:
        try:
            properties = read_meta_properties(Files(), directory)
        except CorruptMetaPropertiesError as error:
            raise StorageError(str(error)) from error
        except OSError as error:
            failure = StorageError(f"log directory {directory}: {error}")
            continue
        if properties is not None:
            ids[properties.node_id] = directory
    if not ids and failure is not None:
        raise failure  # the id may be there, and with a new one this would be another broker
    if len(ids) > 1:
        owners = ", ".join(f"{directory} to node {node_id}" for node_id, directory in ids.items())
        raise StorageError(f"the log directories belong to different nodes: {owners}")
    return NodeId(next(iter(ids))) if ids else None


def generate_id(store: MetadataStore, reserved_max_id: int) -> NodeId:
    store.open()
    try:
        return MetadataRepository(store).generate_broker_id(reserved_max_id)
    finally:
        store.close()
