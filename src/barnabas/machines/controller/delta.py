"""How one image becomes the next: the builder that applies records, and the delta handed to listeners.

The builder copies a table at the first change to it, so a batch of ten thousand records copies each table once. A delta
is computed from the names that were touched, never by walking the whole cluster, unless two unrelated images are
compared (a broker that reloaded the store).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from barnabas.machines.controller.acls import AclEntry, ResourcePattern
from barnabas.machines.controller.delegation_tokens import DelegationToken
from barnabas.machines.controller.image import (
    BrokerImage,
    ClusterImage,
    ConfigResource,
    PartitionImage,
    QuotaEntity,
    TopicImage,
)
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
from barnabas.types import TopicId


@dataclass(frozen=True, slots=True)
class Delta:
    """What changed between two images.

    `partitions` holds every partition that is new or different, those of new topics included. A topic that was deleted
    and created again is in both `topics_deleted` (old id) and `topics_created` (new id).
    """

    previous: ClusterImage
    image: ClusterImage
    topics_created: tuple[TopicImage, ...] = ()
    topics_deleted: tuple[TopicImage, ...] = ()
    partitions: tuple[tuple[TopicImage, PartitionImage], ...] = ()
    brokers_changed: tuple[int, ...] = ()
    configs_changed: tuple[ConfigResource, ...] = ()
    acls_changed: tuple[ResourcePattern, ...] = ()
    quotas_changed: bool = False
    tokens_changed: tuple[str, ...] = ()
    controller_changed: bool = False

    @property
    def is_empty(self) -> bool:
        return not (
            self.topics_created
            or self.topics_deleted
            or self.partitions
            or self.brokers_changed
            or self.configs_changed
            or self.acls_changed
            or self.quotas_changed
            or self.tokens_changed
            or self.controller_changed
        )

    @classmethod
    def between(
        cls,
        previous: ClusterImage,
        image: ClusterImage,
        topics: Iterable[str] | None = None,
        configs: Iterable[ConfigResource] | None = None,
    ) -> "Delta":
        """Compare two images; `topics` and `configs` name what may differ (everything, if None)."""
        if topics is None:
            topics = dict.fromkeys([*previous.topics, *image.topics])
        if configs is None:
            configs = dict.fromkeys([*previous.configs, *image.configs])
        created: list[TopicImage] = []
        deleted: list[TopicImage] = []
        partitions: list[tuple[TopicImage, PartitionImage]] = []
        for name in topics:
            old, new = previous.topics.get(name), image.topics.get(name)
            if old is new:
                continue
            if old is not None and (new is None or new.topic_id != old.topic_id):
                deleted.append(old)
                old = None
            if new is None:
                continue
            if old is None:
                created.append(new)
            known = () if old is None else old.partitions
            partitions += [
                (new, now) for now in new.partitions if now.partition >= len(known) or known[now.partition] != now
            ]
        return cls(
            previous=previous,
            image=image,
            topics_created=tuple(created),
            topics_deleted=tuple(deleted),
            partitions=tuple(partitions),
            brokers_changed=_brokers_changed(previous, image),
            configs_changed=tuple(each for each in configs if previous.config(each) != image.config(each)),
            acls_changed=_acls_changed(previous, image),
            quotas_changed=(
                previous.client_quotas is not image.client_quotas and previous.client_quotas != image.client_quotas
            ),
            tokens_changed=_tokens_changed(previous, image),
            controller_changed=(previous.controller_id, previous.controller_epoch)
            != (image.controller_id, image.controller_epoch),
        )


def _brokers_changed(previous: ClusterImage, image: ClusterImage) -> tuple[int, ...]:
    if previous.brokers is image.brokers:
        return ()
    ids = sorted(dict.fromkeys([*previous.brokers, *image.brokers]))
    return tuple(each for each in ids if previous.brokers.get(each) != image.brokers.get(each))


def _acls_changed(previous: ClusterImage, image: ClusterImage) -> tuple[ResourcePattern, ...]:
    if previous.acls is image.acls:
        return ()
    patterns = dict.fromkeys([*previous.acls, *image.acls])
    return tuple(each for each in patterns if previous.acls.get(each) != image.acls.get(each))


def _tokens_changed(previous: ClusterImage, image: ClusterImage) -> tuple[str, ...]:
    if previous.tokens is image.tokens:
        return ()
    token_ids = dict.fromkeys([*previous.tokens, *image.tokens])
    return tuple(each for each in token_ids if previous.tokens.get(each) != image.tokens.get(each))


class ImageBuilder:
    """Applies records to a copy of an image, made as late as possible.

    A record holds the values after the change, so it may be applied twice. An image that was read while the controller
    wrote may even be ahead of the entries that are then applied to it: a record about a topic that is gone by then
    changes nothing, and a later entry says what became of it.
    """

    __slots__ = (
        "_acls",
        "_configs",
        "_previous",
        "_tokens",
        "_topic_names",
        "_topics",
        "_touched",
        "_touched_configs",
        "image",
    )

    def __init__(self, image: ClusterImage) -> None:
        self._previous = image
        self.image = image
        self._topics: dict[str, TopicImage] | None = None
        self._topic_names: dict[bytes, str] = {}
        self._acls: dict[ResourcePattern, tuple[AclEntry, ...]] | None = None
        self._configs: dict[ConfigResource, Mapping[str, str]] | None = None
        self._tokens: dict[str, DelegationToken] | None = None
        self._touched: dict[str, None] = {}
        self._touched_configs: dict[ConfigResource, None] = {}

    def apply(self, record: Record) -> None:
        match record:
            case TopicCreated(topic, config):
                self._put_topic(topic)
                self._put_config(ConfigResource.topic(topic.name), dict(config))
            case TopicRemoved(name, topic_id):
                self._remove_topic(name, topic_id)
                self._put_config(ConfigResource.topic(name), {})
            case PartitionsAdded(name, partitions) | PartitionsChanged(name, partitions):
                self._put_partitions(name, partitions)
            case ConfigSet(resource, config):
                self._put_config(resource, dict(config))
            case AclsSet(pattern, entries):
                self._put_acls(pattern, entries)
            case QuotasSet(entity, values):
                self._put_quotas(entity, values)
            case TokenSet(token):
                self._own_tokens()[token.token_id] = token
            case TokenRemoved(token_id):
                self._own_tokens().pop(token_id, None)
            case ProducerIdsAllocated(_, first, length):
                self.image = replace(self.image, next_producer_id=first + length)
            case FoldersAdopted():
                self.image = replace(self.image, folders_adopted=True)
            case BrokerChanged(broker):
                self._put_broker(broker)
            case BrokerRemoved(broker_id):
                self._remove_broker(broker_id)

    def apply_change(self, number: int, records: Iterable[Record]) -> None:
        """One entry of the change log."""
        for record in records:
            self.apply(record)
        self.image = replace(self.image, change_number=number)

    def set_controller(self, controller_id: int, controller_epoch: int) -> None:
        if (controller_id, controller_epoch) != (self.image.controller_id, self.image.controller_epoch):
            self.image = replace(self.image, controller_id=controller_id, controller_epoch=controller_epoch)

    def delta(self) -> Delta:
        return Delta.between(self._previous, self.image, self._touched, self._touched_configs)

    def _own_topics(self) -> dict[str, TopicImage]:
        if self._topics is None:
            self._topics = dict(self.image.topics)
            self._topic_names = dict(self.image.topic_names)
            self.image = replace(self.image, topics=self._topics, topic_names=self._topic_names)
        return self._topics

    def _put_topic(self, topic: TopicImage) -> None:
        topics = self._own_topics()
        before = topics.get(topic.name)
        if before is not None and before.topic_id != topic.topic_id:
            del self._topic_names[before.topic_id]
        topics[topic.name] = topic
        self._topic_names[topic.topic_id] = topic.name
        self._touched[topic.name] = None

    def _remove_topic(self, name: str, topic_id: TopicId) -> None:
        topic = self.image.topics.get(name)
        if topic is not None and topic.topic_id == topic_id:
            del self._own_topics()[name], self._topic_names[topic_id]
            self._touched[name] = None

    def _put_partitions(self, name: str, changed: tuple[PartitionImage, ...]) -> None:
        topic = self.image.topics.get(name)
        if topic is None:
            return
        partitions = list(topic.partitions)
        for partition in changed:
            if partition.partition < len(partitions):
                partitions[partition.partition] = partition
            elif partition.partition == len(partitions):
                partitions.append(partition)
        self._put_topic(topic._replace(partitions=tuple(partitions)))

    def _put_broker(self, broker: BrokerImage) -> None:
        self._remove_broker(broker.node_id)
        if broker.is_fenced:
            fenced = _by_id([*self.image.fenced_brokers.values(), broker])
            self.image = replace(self.image, fenced_brokers=fenced)
        else:
            self.image = replace(self.image, brokers=_by_id([*self.image.brokers.values(), broker]))

    def _remove_broker(self, broker_id: int) -> None:
        brokers, fenced = self.image.brokers, self.image.fenced_brokers
        if broker_id in brokers:
            brokers = {each: broker for each, broker in brokers.items() if each != broker_id}
        if broker_id in fenced:
            fenced = {each: broker for each, broker in fenced.items() if each != broker_id}
        self.image = replace(self.image, brokers=brokers, fenced_brokers=fenced)

    def _put_config(self, resource: ConfigResource, config: dict[str, str]) -> None:
        if self._configs is None:
            self._configs = dict(self.image.configs)
            self.image = replace(self.image, configs=self._configs)
        if config:
            self._configs[resource] = config
        else:
            self._configs.pop(resource, None)
        self._touched_configs[resource] = None

    def _put_acls(self, pattern: ResourcePattern, entries: tuple[AclEntry, ...]) -> None:
        if self._acls is None:
            self._acls = dict(self.image.acls)
            self.image = replace(self.image, acls=self._acls)
        if entries:
            self._acls[pattern] = entries
        else:
            self._acls.pop(pattern, None)

    def _own_tokens(self) -> dict[str, DelegationToken]:
        if self._tokens is None:
            self._tokens = dict(self.image.tokens)
            self.image = replace(self.image, tokens=self._tokens)
        return self._tokens

    def _put_quotas(self, entity: QuotaEntity, values: Mapping[str, float]) -> None:
        quotas = {each: known for each, known in self.image.client_quotas.items() if each != entity}
        if values:
            quotas[entity] = dict(values)
        self.image = replace(self.image, client_quotas=quotas)


def _by_id(brokers: Iterable[BrokerImage]) -> dict[int, BrokerImage]:
    return {broker.node_id: broker for broker in sorted(brokers, key=lambda each: each.node_id)}
