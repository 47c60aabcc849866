"""What the controller decides to write: one value a change, applied to the image, put into the store by `metadata`.

`BrokersSeen` is an observation of what brokers wrote themselves; it changes the image only.
"""

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from barnabas.machines.controller.image import BrokerImage, ConfigResource, PartitionImage, TopicImage
from barnabas.types import TopicId


class TopicCreated(NamedTuple):
    topic: TopicImage
    config: Mapping[str, str]


class TopicRemoved(NamedTuple):
    name: str
    topic_id: TopicId


class PartitionsAdded(NamedTuple):
    topic: str
    partitions: tuple[PartitionImage, ...]


class PartitionsChanged(NamedTuple):
    """New states of partitions that exist. Each carries the partition epoch it will have, one above its last."""

    topic: str
    partitions: tuple[PartitionImage, ...]


class ConfigSet(NamedTuple):
    """All settings of a resource as they are from now on; none left removes the entry."""

    resource: ConfigResource
    config: Mapping[str, str]


class ProducerIdsAllocated(NamedTuple):
    broker_id: int
    first: int
    length: int


class FoldersAdopted(NamedTuple):
    """Whatever was in the log directories when the store was new is in the store: never to be looked for again."""


class BrokersSeen(NamedTuple):
    brokers: tuple[BrokerImage, ...]


Record: TypeAlias = (
    TopicCreated
    | TopicRemoved
    | PartitionsAdded
    | PartitionsChanged
    | ConfigSet
    | ProducerIdsAllocated
    | FoldersAdopted
    | BrokersSeen
)
