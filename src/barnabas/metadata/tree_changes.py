"""Turns the controller's records into changes of the tree, in the smallest pieces that may be written on their own.

After each piece the tree and the change log agree: a topic whose creation is cut short is there with partitions that
have no leader yet, in both. The next controller elects leaders for them. `repository.py` packs pieces into
transactions and writes for each the records of its pieces (`merged`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from barnabas.machines.controller.delta import ImageBuilder
from barnabas.machines.controller.image import ClusterImage, ConfigResource, PartitionImage, TopicImage
from barnabas.machines.controller.records import (
    AclsSet,
    BrokerChanged,
    BrokerRemoved,
    ConfigSet,
    FoldersAdopted,
    PartitionsAdded,
    PartitionsChanged,
    ProducerIdsAllocated,
    QuotasSet,
    Record,
    TokenRemoved,
    TokenSet,
    TopicCreated,
    TopicRemoved,
)
from barnabas.metadata import acl_tree, token_tree, tree
from barnabas.metadata.store import Create, Delete, MetadataStore, Operation, Set

ASSIGNMENTS_AT_ONCE = 50
"""Partitions of a topic whose replicas change in one piece: each piece writes the whole topic's assignment."""


class Change(NamedTuple):
    """Written in one piece. Without a record it changes nothing that a broker would see."""

    record: Record | None
    operations: tuple[Operation, ...]


class TreeChanges:
    def __init__(
        self, store: MetadataStore, versions: Mapping[str, int], image: ClusterImage, controller_epoch: int
    ) -> None:
        """`versions` of the nodes that are not states of partitions; `image` is what the first record changes."""
        self._store = store
        self._versions: dict[str, int | None] = dict(versions)
        self._builder = ImageBuilder(image)
        self._controller_epoch = controller_epoch

    def of(self, records: Iterable[Record]) -> Iterator[Change]:
        for record in records:
            yield from self._changes(record)
            self._builder.apply(record)

    def removal(self, topic: str) -> Iterator[Change]:
        """Of everything that a topic with a mark of deletion has; the mark hides it from whoever loads the tree."""
        for operation in self._nodes_of(topic):
            yield Change(None, (operation,))
        yield Change(None, (Delete(tree.delete_path(topic)),))

    def _changes(self, record: Record) -> Iterator[Change]:
        match record:
            case TopicCreated(topic, config):
                bare = topic._replace(partitions=tuple(_without_state(each) for each in topic.partitions))
                resource = ConfigResource.topic(topic.name)
                assignment = Create(tree.topic_path(topic.name), tree.encode_topic(topic.topic_id, topic.partitions))
                yield Change(TopicCreated(bare, config), (assignment, self._config(resource, config)))
                self._versions[assignment.path] = 0
                yield from self._states(topic.name, topic.partitions)
            case TopicRemoved(name, _):
                yield from self._topic_removed(record, name)
            case PartitionsAdded(name, partitions):
                topic = self._topic(name)
                bare_partitions = tuple(_without_state(each) for each in partitions)
                grown = self._assignment(topic._replace(partitions=topic.partitions + partitions))
                yield Change(PartitionsAdded(name, bare_partitions), (grown,))
                yield from self._states(name, partitions)
            case PartitionsChanged(name, partitions):
                yield from self._partitions_changed(name, partitions)
            case ConfigSet(resource, config):
                yield Change(record, (self._config(resource, config),))
            case AclsSet(pattern, entries):
                path = acl_tree.acl_path(pattern)
                changed = self._put(path, acl_tree.encode_acls(entries)) if entries else self._remove(path)
                yield Change(record, (changed,))
            case QuotasSet(entity, values):
                path = tree.quotas_path(entity)
                changed = self._put(path, tree.encode_quotas(values)) if values else self._remove(path)
                yield Change(record, (changed,))
            case TokenSet(token):
                yield Change(
                    record, (self._put(token_tree.token_path(token.token_id), token_tree.encode_token(token)),)
                )
            case TokenRemoved(token_id):
                yield Change(record, (self._remove(token_tree.token_path(token_id)),))
            case ProducerIdsAllocated(broker_id, first, length):
                data = tree.encode_producer_ids(broker_id, first, length)
                yield Change(record, (self._put(tree.PRODUCER_IDS, data),))
            case FoldersAdopted():
                yield Change(record, (self._put(tree.FOLDERS_ADOPTED, b""),))
            case BrokerChanged(broker):
                data = tree.encode_known_broker(broker)
                yield Change(record, (self._put(tree.known_broker_path(broker.node_id), data),))
            case BrokerRemoved(broker_id):
                yield Change(record, (self._remove(tree.known_broker_path(broker_id)),))

    def _topic(self, name: str) -> TopicImage:
        return self._builder.image.topics[name]

    def _topic_removed(self, record: TopicRemoved, name: str) -> Iterator[Change]:
        nodes = tuple(self._nodes_of(name))
        for node in nodes:
            self._versions[node.path] = None
        if len(nodes) <= self._store.multi_limit // 2:
            yield Change(record, nodes)
            return
        yield Change(record, (Create(tree.delete_path(name)),))
        for node in nodes:
            yield Change(None, (node,))
        yield Change(None, (Delete(tree.delete_path(name)),))

    def _nodes_of(self, topic: str) -> Iterator[Delete]:
        """What is below a node goes first."""
        found = self._store.scan(tree.topic_path(topic)).nodes
        for path in sorted(found, key=lambda each: each.count("/"), reverse=True):
            yield Delete(path, found[path].version)
        config = tree.config_path(ConfigResource.topic(topic))
        node = self._store.get(config)
        if node is not None:
            yield Delete(config, node.version)

    def _partitions_changed(self, name: str, partitions: tuple[PartitionImage, ...]) -> Iterator[Change]:
        topic = self._topic(name)
        before = topic.partitions
        moved = [each for each in partitions if tree.assignment_of(each) != tree.assignment_of(before[each.partition])]
        for start in range(0, len(moved), ASSIGNMENTS_AT_ONCE):
            piece = tuple(moved[start : start + ASSIGNMENTS_AT_ONCE])
            topic = _with_assignments(topic, piece)
            states = tuple(self._state(name, each) for each in piece)
            yield Change(PartitionsChanged(name, piece), (self._assignment(topic), *states))
        if moved:
            indexes = {each.partition for each in moved}
            partitions = tuple(each for each in partitions if each.partition not in indexes)
        yield from self._states(name, partitions)

    def _states(self, topic: str, partitions: Iterable[PartitionImage]) -> Iterator[Change]:
        for each in partitions:
            yield Change(PartitionsChanged(topic, (each,)), (self._state(topic, each),))

    def _state(self, topic: str, partition: PartitionImage) -> Operation:
        path, data = tree.state_path(topic, partition.partition), tree.encode_state(partition, self._controller_epoch)
        epoch = partition.partition_epoch
        return Create(path, data) if epoch == 0 else Set(path, data, epoch - 1)

    def _assignment(self, topic: TopicImage) -> Operation:
        return self._put(tree.topic_path(topic.name), tree.encode_topic(topic.topic_id, topic.partitions))

    def _config(self, resource: ConfigResource, config: Mapping[str, str]) -> Operation:
        return self._put(tree.config_path(resource), tree.encode_config(config))

    def _put(self, path: str, data: bytes) -> Operation:
        version = self._versions.get(path)
        self._versions[path] = 0 if version is None else version + 1
        return Create(path, data) if version is None else Set(path, data, version)

    def _remove(self, path: str) -> Operation:
        version = self._versions.get(path)
        self._versions[path] = None
        return Delete(path) if version is None else Delete(path, version)


def merged(records: Sequence[Record]) -> list[Record]:
    """The same changes in fewer records: partitions of one topic together, with its creation if that is there."""
    found: list[Record] = []
    partitions: list[PartitionImage] = []
    for position, record in enumerate(records):
        if not isinstance(record, PartitionsChanged):
            found.append(record)
            continue
        partitions += record.partitions
        following = records[position + 1] if position + 1 < len(records) else None
        if not isinstance(following, PartitionsChanged) or following.topic != record.topic:
            _add_states(found, record.topic, tuple(partitions))
            partitions = []
    return found


def _add_states(found: list[Record], name: str, states: tuple[PartitionImage, ...]) -> None:
    match found[-1] if found else None:
        case TopicCreated(topic, config) if topic.name == name:
            found[-1] = TopicCreated(topic._replace(partitions=_replaced(topic.partitions, states)), config)
        case PartitionsAdded(topic, partitions) if topic == name:
            found[-1] = PartitionsAdded(name, _replaced(partitions, states))
        case _:
            found.append(PartitionsChanged(name, states))


def _replaced(
    partitions: tuple[PartitionImage, ...], changed: tuple[PartitionImage, ...]
) -> tuple[PartitionImage, ...]:
    by_index = {each.partition: each for each in changed}
    return tuple(by_index.get(each.partition, each) for each in partitions)


def _with_assignments(topic: TopicImage, changed: tuple[PartitionImage, ...]) -> TopicImage:
    return topic._replace(partitions=_replaced(topic.partitions, changed))


def _without_state(partition: PartitionImage) -> PartitionImage:
    """As `tree.decode_topic` reads it before its state is known."""
    return PartitionImage(
        partition.partition,
        partition.replicas,
        (),
        adding_replicas=partition.adding_replicas,
        removing_replicas=partition.removing_replicas,
    )
