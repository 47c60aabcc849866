"""Topics of the source as they should be in the target: names, partitions, settings."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from barnabas.client.admin import Admin
from barnabas.client.admin.types import ConfigChange, ConfigResource, ConfigSource
from barnabas.errors import ErrorCode, KafkaError

# What belongs to one cluster: replicas of its brokers, and what its own brokers are asked to hold back.
NOT_COPIED = frozenset(
    {
        "leader.replication.throttled.replicas",
        "follower.replication.throttled.replicas",
        "min.insync.replicas",
        "unclean.leader.election.enable",
    }
)


class MirroredTopic(NamedTuple):
    source: str
    target: str
    partitions: int


class TopicRules(NamedTuple):
    """Which topics are copied, and under which names."""

    pattern: re.Pattern[str]
    prefix: str
    replication_factor: int | None

    def target_of(self, topic: str) -> str:
        return self.prefix + topic

    def takes(self, topic: str) -> bool:
        # With a prefix, what came from the other side is not sent back there.
        is_copy = bool(self.prefix) and topic.startswith(self.prefix)
        return not is_copy and self.pattern.fullmatch(topic) is not None


def synchronize_topics(source: Admin, target: Admin, rules: TopicRules) -> list[MirroredTopic]:
    """Make what the target lacks, and bring partitions and settings up to date."""
    wanted = {name: topic for name, topic in source.list_topics().items() if rules.takes(name)}
    there = target.list_topics()
    settings = _settings(source, list(wanted))
    for name, topic in wanted.items():
        copy = rules.target_of(name)
        if copy not in there:
            factor = rules.replication_factor
            target.create_topic(copy, topic.partitions, factor, config=settings[name], if_not_exists=True)
        elif there[copy].partitions < topic.partitions:
            _add_partitions(target, copy, topic.partitions)
    existing = {rules.target_of(name): name for name in wanted if rules.target_of(name) in there}
    _update_settings(target, {copy: settings[name] for copy, name in existing.items()})
    return [MirroredTopic(name, rules.target_of(name), topic.partitions) for name, topic in wanted.items()]


def _settings(admin: Admin, topics: list[str]) -> dict[str, dict[str, str]]:
    """What was set for each topic itself, in so far as it makes sense elsewhere."""
    if not topics:
        return {}
    described = admin.describe_configs([ConfigResource.topic(name) for name in topics])
    return {
        name: {
            entry.name: entry.value
            for entry in described[ConfigResource.topic(name)].values()
            if entry.source is ConfigSource.DYNAMIC_TOPIC_CONFIG and entry.value is not None
            if entry.name not in NOT_COPIED
        }
        for name in topics
    }


def _update_settings(admin: Admin, wanted: Mapping[str, Mapping[str, str]]) -> None:
    now = _settings(admin, list(wanted))
    changes = {
        ConfigResource.topic(topic): ConfigChange(
            set={key: value for key, value in settings.items() if now[topic].get(key) != value},
            delete=tuple(key for key in now[topic] if key not in settings),
        )
        for topic, settings in wanted.items()
        if now[topic] != settings
    }
    if changes:
        admin.alter_configs(changes)


def _add_partitions(admin: Admin, topic: str, total: int) -> None:
    try:
        admin.add_partitions(topic, total)
    except KafkaError as error:
        if error.code is not ErrorCode.INVALID_PARTITIONS:  # somebody else was quicker
            raise
