"""What the controller writes: one value per change, applied to the image and stored by `metadata`."""

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from barnabas.machines.controller.acls import AclEntry, ResourcePattern
from barnabas.machines.controller.delegation_tokens import DelegationToken
from barnabas.machines.controller.image import BrokerImage, ConfigResource, PartitionImage, QuotaEntity, TopicImage
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
    """The new settings of a resource; an empty set removes the entry."""

    resource: ConfigResource
    config: Mapping[str, str]

    def __repr__(self) -> str:
        return f"ConfigSet({self.resource}, {', '.join(self.config)})"  # values may be passwords


class AclsSet(NamedTuple):
    """All access rules of a resource pattern; without any the entry is removed."""

    pattern: ResourcePattern
    entries: tuple[AclEntry, ...]


class QuotasSet(NamedTuple):
    """All quotas of an entity; without any the entry is removed."""

    entity: QuotaEntity
    values: Mapping[str, float]


class TokenSet(NamedTuple):
    """A delegation token is there, or expires at another time."""

    token: DelegationToken


class TokenRemoved(NamedTuple):
    token_id: str


class ProducerIdsAllocated(NamedTuple):
    broker_id: int
    first: int
    length: int


class FoldersAdopted(NamedTuple):
    """The contents of the log directories at the time the store was created are adopted. Never repeated."""


class BrokerChanged(NamedTuple):
    """What the controller knows of a broker now: registered, shutting down, or away (`is_fenced`).

    Written to a node of its own, so that a later controller knows it too.
    """

    broker: BrokerImage


class BrokerRemoved(NamedTuple):
    """A broker that is away is forgotten."""

    broker_id: int


Record: TypeAlias = (
    TopicCreated
    | TopicRemoved
    | PartitionsAdded
    | PartitionsChanged
    | ConfigSet
    | AclsSet
    | QuotasSet
    | TokenSet
    | TokenRemoved
    | ProducerIdsAllocated
    | FoldersAdopted
    | BrokerChanged
    | BrokerRemoved
)
