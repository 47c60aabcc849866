"""Adopts topics whose folders were found on a broker's disks: Kafka wrote them, or their metadata store was lost.

A function over an image; `machine.py` calls it once in the life of a metadata store. The broker that found the folders
becomes the only replica, with leader epochs and producer ids above any in the folders. A setting that is not valid here
is skipped and reported; an invalid setting must never cause records to be deleted.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from barnabas.clock import Random
from barnabas.errors import KafkaError
from barnabas.machines.controller.acl_changes import added_acls
from barnabas.machines.controller.commands import AdoptedTopic, Adoption, AdoptTopics, ConfigRules, ScramChange
from barnabas.machines.controller.configs import check_exists
from barnabas.machines.controller.image import ClusterImage, ConfigResource, PartitionImage, TopicImage
from barnabas.machines.controller.records import (
    ConfigSet,
    FoldersAdopted,
    ProducerIdsAllocated,
    Record,
    TokenSet,
    TopicCreated,
)
from barnabas.machines.controller.topic_name import CLUSTER_METADATA_TOPIC, fault_of_topic_name
from barnabas.machines.controller.topics import new_topic_id
from barnabas.types import NO_TOPIC_ID

KEEP_EVERYTHING: Final[Mapping[str, str]] = {"retention.ms": "-1", "retention.bytes": "-1"}
"""For a topic whose retention settings could not be read."""


def decide_adopt(
    image: ClusterImage, command: AdoptTopics, rules: ConfigRules, random: Random
) -> tuple[tuple[Record, ...], Adoption]:
    if image.folders_adopted:
        return (), Adoption()
    records: list[Record] = []
    topics: list[TopicImage] = []
    faults: list[str] = []
    for found in command.topics:
        fault = _fault_of(image, found)
        if fault is not None:
            faults.append(f"topic {found.name}: {fault}")
            continue
        topic = _adopted(found, command.broker_id, image, random)
        topics.append(topic)
        records.append(TopicCreated(topic, _topic_config(found, rules, faults)))
    for resource, config in command.configs:
        try:
            check_exists(image, resource)
        except KafkaError as error:
            faults.append(f"settings of {_shown(resource)}: {error.message}")
            continue
        valid = _valid(resource, config, rules, faults)
        if valid:
            records.append(ConfigSet(resource, valid))
    if command.next_producer_id > image.next_producer_id:
        length = command.next_producer_id - image.next_producer_id
        records.append(ProducerIdsAllocated(command.broker_id, image.next_producer_id, length))
    acls, results = added_acls(image, command.acls)
    records += acls
    faults += [f"{acl}: {result.message}" for acl, result in zip(command.acls, results) if result.error]
    records += _users(image, command.users)
    records += [TokenSet(token) for token in command.tokens if token.token_id not in image.tokens]
    records.append(FoldersAdopted())
    return tuple(records), Adoption(tuple(topics), tuple(faults))


def _users(image: ClusterImage, found: Iterable[ScramChange]) -> Iterator[ConfigSet]:
    """A credential that is there already was made by somebody who knows of this cluster: it stays."""
    users: dict[str, dict[str, str]] = {}
    for user, mechanism, credential in found:
        if credential is not None:
            users.setdefault(user, {})[mechanism] = credential
    for user, credentials in users.items():
        resource = ConfigResource.user(user)
        yield ConfigSet(resource, {**credentials, **image.config(resource)})


def _fault_of(image: ClusterImage, found: AdoptedTopic) -> str | None:
    if found.name == CLUSTER_METADATA_TOPIC:
        return "it is Kafka's own metadata"
    if found.name in image.topics or found.topic_id in image.topic_names:
        return "the topic already exists"
    return fault_of_topic_name(found.name)


def _adopted(found: AdoptedTopic, broker_id: int, image: ClusterImage, random: Random) -> TopicImage:
    topic_id = new_topic_id(image, random) if found.topic_id == NO_TOPIC_ID else found.topic_id
    replicas = (broker_id,)
    partitions = tuple(
        PartitionImage(number, replicas, replicas, broker_id, leader_epoch, partition_epoch=0)
        for number, leader_epoch in enumerate(found.leader_epochs)
    )
    return TopicImage(found.name, topic_id, partitions)


def _topic_config(found: AdoptedTopic, rules: ConfigRules, faults: list[str]) -> dict[str, str]:
    """The valid settings of a topic; if any is invalid, retention is switched off too."""
    count = len(faults)
    valid = _valid(ConfigResource.topic(found.name), found.config, rules, faults)
    if len(faults) > count:
        valid |= KEEP_EVERYTHING
    return valid


def _valid(
    resource: ConfigResource,
    config: Mapping[str, str],
    rules: ConfigRules,
    faults: list[str],
) -> dict[str, str]:
    """All settings if they are valid together, else each one that is valid on top of the ones before it."""
    try:
        rules.check(resource, config)
        return dict(config)
    except KafkaError:
        pass
    valid: dict[str, str] = {}
    for name in sorted(config):
        try:
            rules.check(resource, {**valid, name: config[name]})
            valid[name] = config[name]
        except KafkaError as error:
            faults.append(f"{name} of {_shown(resource)}: {error.message}")
    return valid


def _shown(resource: ConfigResource) -> str:
    return f"{resource.type.name.lower()} {resource.name or 'default'}"
