"""Makes a cluster's image out of what a store holds; `repository.py` does the reading."""

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from barnabas.machines.controller.image import BrokerImage, ConfigResource, TopicImage
from barnabas.metadata import tree
from barnabas.metadata.store import Node
from barnabas.types import TopicPartition

Nodes = Mapping[str, Node]


class Topics(NamedTuple):
    topics: dict[str, TopicImage]
    stale: tuple[TopicPartition, ...]
    """Partitions last written before their leader's present registration."""


def read_brokers(nodes: Nodes) -> dict[int, BrokerImage]:
    found = {int(name): node for name, node in _below(nodes, tree.BROKER_IDS)}
    return {each: tree.decode_broker(each, found[each].data, found[each].created) for each in sorted(found)}


def read_absent_brokers(nodes: Nodes, present: Collection[int]) -> dict[int, BrokerImage]:
    """Those that are known, but not registered."""
    found = {int(name): node.data for name, node in _below(nodes, tree.KNOWN_BROKERS)}
    return {
        each: tree.decode_known_broker(each, found[each])._replace(is_fenced=True)
        for each in sorted(found)
        if each not in present
    }


def read_topics(nodes: Nodes, brokers: Mapping[int, BrokerImage], marked: Collection[str]) -> Topics:
    """`marked` are the topics on their way out."""
    topics: dict[str, TopicImage] = {}
    stale: list[TopicPartition] = []
    for name, node in sorted(_below(nodes, tree.TOPICS)):
        if name not in marked:
            topics[name] = _read_states(tree.decode_topic(name, node.data), nodes, brokers, stale)
    return Topics(topics, tuple(stale))


def read_configs(nodes: Nodes) -> dict[ConfigResource, dict[str, str]]:
    configs = {}
    for resource_type, folder in tree.config_folders():
        for name, node in sorted(_below(nodes, folder)):
            config = tree.decode_config(node.data)
            if config:
                configs[tree.config_resource(resource_type, name)] = config
    return configs


def versions_of(nodes: Nodes) -> dict[str, int]:
    """Those that a write has to know; a state's version is in the image."""
    return {path: node.version for path, node in nodes.items() if not path.endswith("/state")}


def _below(nodes: Nodes, folder: str) -> Iterator[tuple[str, Node]]:
    """The nodes directly below, by name."""
    start = len(folder) + 1
    for path, node in nodes.items():
        if path.startswith(folder) and path[start - 1 : start] == "/" and "/" not in path[start:]:
            yield path[start:], node


def _read_states(
    topic: TopicImage, nodes: Nodes, brokers: Mapping[int, BrokerImage], stale: list[TopicPartition]
) -> TopicImage:
    partitions = []
    for partition in topic.partitions:
        node = nodes.get(tree.state_path(topic.name, partition.partition))
        if node is not None:
            partition = tree.decode_state(partition, node.data, node.version)
            leader = brokers.get(partition.leader)
            if leader is not None and leader.epoch > node.modified:
                stale.append(TopicPartition(topic.name, partition.partition))
        partitions.append(partition)
    return topic._replace(partitions=tuple(partitions))
