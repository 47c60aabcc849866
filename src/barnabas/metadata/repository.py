"""Reads the cluster's image from a store and writes the controller's records to it, each write conditional.

Called by `server/cluster.py` in a thread, one call at a time. Every write checks the controller epoch under which this
broker was elected, so that a controller which has been replaced can write nothing, and the version of each node it
changes. A change larger than the store takes at once begins with the node that makes it visible as a whole (the topic's
assignment, the mark of its deletion); whoever loads the tree after a crash in between completes it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from barnabas.machines.controller.image import (
    NO_CONTROLLER,
    BrokerImage,
    ClusterImage,
    ConfigResource,
    PartitionImage,
    TopicImage,
)
from barnabas.machines.controller.records import (
    BrokerChanged,
    BrokerRemoved,
    ConfigSet,
    FoldersAdopted,
    PartitionsAdded,
    PartitionsChanged,
    ProducerIdsAllocated,
    Record,
    TopicCreated,
    TopicRemoved,
)
from barnabas.metadata import tree
from barnabas.metadata.store import (
    BadVersionError,
    Check,
    Create,
    Delete,
    MetadataStore,
    MetadataStoreError,
    NodeExistsError,
    NoNodeError,
    Operation,
    Set,
    ensure_path,
)
from barnabas.types import NodeId, TopicPartition

_NEVER_ELECTED = -2
"""A version that no node has: whoever was not elected can write nothing."""


class ControllerMovedError(MetadataStoreError):
    """Another broker has become controller; nothing was written."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """The image, and the partitions last written before their leader's present registration."""

    image: ClusterImage
    stale: tuple[TopicPartition, ...]


class MetadataRepository:
    def __init__(self, store: MetadataStore) -> None:
        self.store = store
        self._controller_epoch = 0
        self._controller_epoch_version = _NEVER_ELECTED
        self._versions: dict[str, int] = {}

    def prepare(self, cluster_id: str) -> str:
        """Make what a new store lacks; returns the id the cluster has, which is the one given if it had none."""
        for path in tree.PERSISTENT:
            ensure_path(self.store, path)
        try:
            self.store.create(tree.CLUSTER_ID, tree.encode_cluster_id(cluster_id))
        except NodeExistsError:
            pass
        node = self.store.get(tree.CLUSTER_ID)
        if node is None:
            raise MetadataStoreError(f"{tree.CLUSTER_ID} disappeared")
        return tree.decode_cluster_id(node.data)

    def register_broker(self, broker: BrokerImage, now_ms: int) -> None:
        """Raises NodeExistsError while another session holds the id."""
        self.store.create(tree.broker_path(broker.node_id), tree.encode_broker(broker, now_ms), ephemeral=True)

    def is_registered(self, broker_id: NodeId) -> bool:
        node = self.store.get(tree.broker_path(broker_id))
        return node is not None and node.owner == self.store.session_id

    def try_become_controller(self, broker_id: NodeId, now_ms: int) -> int | None:
        """Stand for election; returns the controller epoch won, or None if there is a controller."""
        ensure_path(self.store, tree.CONTROLLER_EPOCH)
        node = self.store.get(tree.CONTROLLER_EPOCH)
        if node is None:
            raise NoNodeError(tree.CONTROLLER_EPOCH)
        epoch = int(node.data or b"0") + 1
        try:
            self.store.multi(
                [
                    Create(tree.CONTROLLER, tree.encode_controller(broker_id, now_ms), ephemeral=True),
                    Set(tree.CONTROLLER_EPOCH, str(epoch).encode(), node.version),
                ]
            )
        except (NodeExistsError, BadVersionError):
            return None
        self._controller_epoch, self._controller_epoch_version = epoch, node.version + 1
        return epoch

    def resign(self) -> None:
        """Give the controller node back, so that another election can happen at once."""
        node = self.store.get(tree.CONTROLLER)
        if node is not None and node.owner == self.store.session_id:
            self.store.delete(tree.CONTROLLER)

    def load_brokers(self) -> tuple[BrokerImage, ...]:
        ids = sorted(int(name) for name in self.store.children(tree.BROKER_IDS))
        nodes = self.store.get_many([tree.broker_path(each) for each in ids])
        return tuple(
            tree.decode_broker(each, node.data, node.created) for each, node in zip(ids, nodes) if node is not None
        )

    def load_controller(self) -> tuple[int, int]:
        controller, epoch = self.store.get_many([tree.CONTROLLER, tree.CONTROLLER_EPOCH])
        return (
            NO_CONTROLLER if controller is None else tree.decode_controller(controller.data),
            0 if epoch is None else int(epoch.data or b"0"),
        )

    def load(self, cluster_id: str) -> Loaded:
        self._versions = {}
        brokers = {broker.node_id: broker for broker in self.load_brokers()}
        topics, stale = self._load_topics(brokers)
        controller_id, controller_epoch = self.load_controller()
        producer_ids = self._read(tree.PRODUCER_IDS)
        fenced = self._load_known_brokers(absent_from=brokers)
        image = ClusterImage(
            cluster_id=cluster_id,
            controller_id=controller_id,
            controller_epoch=controller_epoch,
            brokers=brokers,
            fenced_brokers=fenced,
            topics={topic.name: topic for topic in topics},
            topic_names={topic.topic_id: topic.name for topic in topics},
            configs=self._load_configs(),
            next_producer_id=0 if producer_ids is None else tree.decode_next_producer_id(producer_ids),
            folders_adopted=self._read(tree.FOLDERS_ADOPTED) is not None,
        )
        return Loaded(image, stale)

    def write(self, records: Sequence[Record], image: ClusterImage) -> None:
        """Write records decided on `image`, the state before them. Raises ConflictError or ControllerMovedError."""
        self._commit_in_parts([operation for record in records for operation in self._operations(record, image)])

    def complete_deletions(self) -> None:
        """Finish what a crash interrupted: topics that are marked as deleted but still have nodes."""
        for name in self.store.children(tree.DELETE_TOPICS):
            partitions = [int(each) for each in self.store.children(f"{tree.topic_path(name)}/partitions")]
            self._commit_in_parts([*self._removal(name, partitions), Delete(f"{tree.DELETE_TOPICS}/{name}")])

    def _commit_in_parts(self, operations: Sequence[Operation]) -> None:
        limit = self.store.multi_limit - 1
        for start in range(0, len(operations), limit):
            self._commit(operations[start : start + limit])

    def _commit(self, operations: Sequence[Operation]) -> None:
        fence = Check(tree.CONTROLLER_EPOCH, self._controller_epoch_version)
        try:
            self.store.multi([fence, *operations])
        except (BadVersionError, NoNodeError) as error:
            if error.path == tree.CONTROLLER_EPOCH:
                raise ControllerMovedError(f"controller epoch {self._controller_epoch} is over") from error
            raise
        for operation in operations:
            if isinstance(operation, Set) and operation.path in self._versions:
                self._versions[operation.path] += 1
            elif isinstance(operation, Create) and "/partitions" not in operation.path:
                self._versions[operation.path] = 0
            elif isinstance(operation, Delete):
                self._versions.pop(operation.path, None)

    def _operations(self, record: Record, image: ClusterImage) -> Iterator[Operation]:
        match record:
            case TopicCreated(topic, config):
                path = tree.topic_path(topic.name)
                yield self._put(tree.config_path(ConfigResource.topic(topic.name)), tree.encode_config(config))
                yield Create(path, tree.encode_topic(topic.topic_id, topic.partitions))
                yield Create(f"{path}/partitions")
                yield from self._new_states(topic.name, topic.partitions)
            case TopicRemoved(name, _):
                mark = f"{tree.DELETE_TOPICS}/{name}"
                yield Create(mark)
                yield from self._removal(name, [each.partition for each in image.topics[name].partitions])
                yield Delete(mark)
            case PartitionsAdded(name, partitions):
                topic = image.topics[name]
                yield self._put(tree.topic_path(name), tree.encode_topic(topic.topic_id, topic.partitions + partitions))
                yield from self._new_states(name, partitions)
            case PartitionsChanged(name, partitions):
                yield from self._reassigned(image.topics[name], partitions)
                for each in partitions:
                    if each.partition_epoch == 0:
                        # Its topic's creation was cut short: the folder may be there or not.
                        path = tree.state_path(name, each.partition)
                        ensure_path(self.store, path.removesuffix("/state"))
                        yield Create(path, tree.encode_state(each, self._controller_epoch))
                    else:
                        data = tree.encode_state(each, self._controller_epoch)
                        yield Set(tree.state_path(name, each.partition), data, each.partition_epoch - 1)
            case ConfigSet(resource, config):
                yield self._put(tree.config_path(resource), tree.encode_config(config))
            case ProducerIdsAllocated(broker_id, first, length):
                yield self._put(tree.PRODUCER_IDS, tree.encode_producer_ids(broker_id, first, length))
            case FoldersAdopted():
                yield self._put(tree.FOLDERS_ADOPTED, b"")
            case BrokerChanged(broker):
                yield self._put(tree.known_broker_path(broker.node_id), tree.encode_known_broker(broker))
            case BrokerRemoved(broker_id):
                yield Delete(tree.known_broker_path(broker_id))

    def _reassigned(self, topic: TopicImage, changed: Sequence[PartitionImage]) -> Iterator[Operation]:
        """The topic's node, if replicas change with the states."""
        if any(tree.assignment_of(each) != tree.assignment_of(topic.partitions[each.partition]) for each in changed):
            partitions = list(topic.partitions)
            for each in changed:
                partitions[each.partition] = each
            yield self._put(tree.topic_path(topic.name), tree.encode_topic(topic.topic_id, partitions))

    def _new_states(self, topic: str, partitions: Sequence[PartitionImage]) -> Iterator[Operation]:
        for each in partitions:
            path = tree.state_path(topic, each.partition)
            yield Create(path.removesuffix("/state"))
            yield Create(path, tree.encode_state(each, self._controller_epoch))

    def _put(self, path: str, data: bytes) -> Operation:
        version = self._versions.get(path)
        return Create(path, data) if version is None else Set(path, data, version)

    def _removal(self, topic: str, partitions: Sequence[int]) -> Iterator[Operation]:
        """Children first; the mark of deletion hides the topic from whoever loads the tree meanwhile."""
        path = tree.topic_path(topic)
        states = [tree.state_path(topic, each) for each in partitions]
        folders = [state.removesuffix("/state") for state in states]
        config = tree.config_path(ConfigResource.topic(topic))
        paths = [*states, *folders, f"{path}/partitions", path, config]
        for each, node in zip(paths, self.store.get_many(paths)):
            if node is not None:
                yield Delete(each, node.version)

    def _read(self, path: str) -> bytes | None:
        node = self.store.get(path)
        if node is None:
            return None
        self._versions[path] = node.version
        return node.data

    def _load_topics(self, brokers: dict[int, BrokerImage]) -> tuple[list[TopicImage], tuple[TopicPartition, ...]]:
        marked = self.store.children(tree.DELETE_TOPICS)
        names = [name for name in self.store.children(tree.TOPICS) if name not in marked]
        topics: list[TopicImage] = []
        stale: list[TopicPartition] = []
        for name, node in zip(names, self.store.get_many([tree.topic_path(name) for name in names])):
            if node is not None:
                self._versions[tree.topic_path(name)] = node.version
                topics.append(self._load_states(tree.decode_topic(name, node.data), brokers, stale))
        return topics, tuple(stale)

    def _load_known_brokers(self, absent_from: Mapping[int, BrokerImage]) -> dict[int, BrokerImage]:
        fenced: dict[int, BrokerImage] = {}
        ids = sorted(int(each) for each in self.store.children(tree.KNOWN_BROKERS))
        for each in ids:
            data = self._read(tree.known_broker_path(each))
            if data is not None and each not in absent_from:
                fenced[each] = tree.decode_known_broker(each, data)._replace(is_fenced=True)
        return fenced

    def _load_states(
        self, topic: TopicImage, brokers: dict[int, BrokerImage], stale: list[TopicPartition]
    ) -> TopicImage:
        partitions = []
        paths = [tree.state_path(topic.name, each.partition) for each in topic.partitions]
        for partition, node in zip(topic.partitions, self.store.get_many(paths)):
            if node is not None:
                partition = tree.decode_state(partition, node.data, node.version)
                leader = brokers.get(partition.leader)
                if leader is not None and leader.epoch > node.modified:
                    stale.append(TopicPartition(topic.name, partition.partition))
            partitions.append(partition)
        return topic._replace(partitions=tuple(partitions))

    def _load_configs(self) -> dict[ConfigResource, dict[str, str]]:
        configs = {}
        for resource_type, folder in tree.config_folders():
            names = self.store.children(folder)
            paths = [f"{folder}/{name}" for name in names]
            for name, path, node in zip(names, paths, self.store.get_many(paths)):
                if node is None:
                    continue
                self._versions[path] = node.version
                config = tree.decode_config(node.data)
                if config:
                    configs[tree.config_resource(resource_type, name)] = config
        return configs
