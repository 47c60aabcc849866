"""`kafka-configs.sh` for what has settings by name: topics, brokers and their loggers, groups, client metrics."""

from __future__ import annotations

from barnabas.cli.kafka.configs import BROKERS, GROUPS, LOGGERS, METRICS, TOPICS, Change, Entity
from barnabas.cli.kafka.consumer_groups import consumer_groups
from barnabas.cli.kafka.flags import WrongUse
from barnabas.client.admin import Admin
from barnabas.client.admin.types import ConfigEntry, ConfigResource, ConfigResourceType, ConfigSource
from barnabas.errors import ErrorCode, KafkaError

TYPES = {
    TOPICS: (ConfigResourceType.TOPIC, ConfigSource.DYNAMIC_TOPIC_CONFIG),
    BROKERS: (ConfigResourceType.BROKER, ConfigSource.DYNAMIC_BROKER_CONFIG),
    LOGGERS: (ConfigResourceType.BROKER_LOGGER, None),
    METRICS: (ConfigResourceType.CLIENT_METRICS, ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG),
    GROUPS: (ConfigResourceType.GROUP, ConfigSource.DYNAMIC_GROUP_CONFIG),
}


def describe(admin: Admin, entity: Entity, *, describe_all: bool) -> None:
    kind, name = entity
    names = _all_names(admin, kind) if name is None else [name]
    if name and name not in _all_names(admin, kind):
        print(f"The {kind[:-1]} '{name}' doesn't exist and doesn't have dynamic config.")
        return
    for each in names:
        if each:
            print(f"{'All' if describe_all else 'Dynamic'} configs for {kind[:-1]} {each} are:")
        else:
            print(f"Default configs for {kind} in the cluster are:")
        for entry in _entries(admin, Entity(kind, each), describe_all=describe_all):
            print(_line(entry))


def alter(admin: Admin, entity: Entity, change: Change) -> None:
    there = [entry.name for entry in _entries(admin, entity, describe_all=False)]
    if entity.type == LOGGERS:
        unknown = [name for name in (*change.delete, *change.add) if name not in there]
        if unknown:
            raise WrongUse(f"Invalid broker logger(s): {','.join(unknown)}")
    missing = [name for name in change.delete if name not in there]
    if missing:
        raise WrongUse(f"Invalid config(s): {','.join(missing)}")
    admin.alter_config(_resource(entity), change.add, delete=change.delete)


def _all_names(admin: Admin, kind: str) -> list[str]:
    """All there are; for brokers the default of all of them ("") too."""
    if kind == TOPICS:
        return list(admin.list_topics(include_internal=True))
    if kind in (BROKERS, LOGGERS):
        return [*(str(broker.node.id) for broker in admin.describe_cluster().brokers), ""]
    with_settings = _with_settings(admin, TYPES[kind][0])
    return sorted({*with_settings, *(consumer_groups(admin) if kind == GROUPS else ())})


def _with_settings(admin: Admin, kind: ConfigResourceType) -> list[str]:
    try:
        return [resource.name for resource in admin.list_config_resources([kind])]
    except KafkaError as error:
        if error.code is ErrorCode.UNSUPPORTED_VERSION:  # a broker older than Kafka 4.1: groups can be listed otherwise
            return []
        raise


def _resource(entity: Entity) -> ConfigResource:
    return ConfigResource(TYPES[entity.type][0], entity.name or "")


def _entries(admin: Admin, entity: Entity, *, describe_all: bool) -> list[ConfigEntry]:
    source = TYPES[entity.type][1]
    if entity.type == BROKERS and not entity.name:
        source = ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    entries = admin.describe_config(_resource(entity), include_synonyms=True).values()
    shown = (entry for entry in entries if describe_all or source is None or entry.source is source)
    return sorted(shown, key=lambda entry: entry.name)


def _line(entry: ConfigEntry) -> str:
    synonyms = ", ".join(f"{each.source.name}:{each.name}={_text(each.value)}" for each in entry.synonyms)
    sensitive = str(entry.is_sensitive).lower()
    return f"  {entry.name}={_text(entry.value)} sensitive={sensitive} synonyms={{{synonyms}}}"


def _text(value: str | None) -> str:
    return "null" if value is None else value
