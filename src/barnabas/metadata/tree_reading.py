"""Makes a cluster's image out of what a store holds; `repository.py` does the reading."""

from collections.abc import Collection, Iterator, Mapping

from barnabas.machines.controller.image import BrokerImage, ConfigResource, QuotaEntity, TopicImage
from barnabas.metadata import tree
from barnabas.metadata.store import Node

Nodes = Mapping[str, Node]


def read_brokers(nodes: Nodes) -> dict[int, BrokerImage]:
    found = {int(name): node for name, node in _below(nodes, tree.BROKER_IDS)}
    return {each: tree.decode_broker(each, found[each].data, found[each].created) for each in sorted(found)}


def read_known_brokers(nodes: Nodes) -> dict[int, BrokerImage]:
    """What the controllers so far have written of brokers, also of those that are away."""
    found = {int(name): node.data for name, node in _below(nodes, tree.KNOWN_BROKERS)}
    return {each: tree.decode_known_broker(each, found[each]) for each in sorted(found)}


def read_topics(nodes: Nodes, marked: Collection[str]) -> dict[str, TopicImage]:
    """`marked` are the topics on their way out."""
    return {
        name: _read_states(tree.decode_topic(name, node.data), nodes)
        for name, node in sorted(_below(nodes, tree.TOPICS))
        if name not in marked
    }


def read_configs(nodes: Nodes) -> dict[ConfigResource, dict[str, str]]:
    configs = {}
    for resource_type, folder in tree.config_folders():
        for name, node in sorted(_below(nodes, folder)):
            config = tree.decode_config(node.data)
            if config:
                configs[tree.config_resource(resource_type, name)] = config
    return configs


def read_quotas(nodes: Nodes) -> dict[QuotaEntity, dict[str, float]]:
    return {tree.quota_entity(name): tree.decode_quotas(node.data) for name, node in sorted(_below(nodes, tree.QUOTAS))}


def versions_of(nodes: Nodes) -> dict[str, int]:
    """Those that a write has to know; a state's version is in the image."""
    return {path: node.version for path, node in nodes.items() if not path.endswith("/state")}


def _below(nodes: Nodes, folder: str) -> Iterator[tuple[str, Node]]:
    """The nodes directly below, by name."""
    start = len(folder) + 1
    for path, node in nodes.items():
        if path.startswith(folder) and path[start - 1 : start] == "/" and "/" not in path[start:]:
            yield path[start:], node


def _read_states(topic: TopicImage, nodes: Nodes) -> TopicImage:
    partitions = []
    for partition in topic.partitions:
        node = nodes.get(tree.state_path(topic.name, partition.partition))
        partitions.append(partition if node is None else tree.decode_state(partition, node.data, node.version))
    return topic._replace(partitions=tuple(partitions))
