"""What DescribeConfigs returns for a topic, broker or group: values, their sources and synonyms.

Called by the handler; CreateTopics uses the topic entries for its response. Pure: the layers are passed in. Values
of passwords and of names with an unknown type are never returned.
"""

from collections.abc import Iterator, Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import NamedTuple

from barnabas.config.broker import LISTENER_PREFIX, BrokerConfig, listener_setting
from barnabas.config.client_metrics import ClientMetricsConfig
from barnabas.config.dynamic import effective_config, is_dynamic
from barnabas.config.group import GroupConfig
from barnabas.config.quotas import BrokerQuotas
from barnabas.config.setting import Setting
from barnabas.config.table import SettingsTable
from barnabas.config.topic import TopicConfig

NOTHING: Mapping[str, str] = MappingProxyType({})


class ConfigSource(IntEnum):
    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class ConfigSynonym(NamedTuple):
    name: str
    value: str | None
    source: ConfigSource


class ConfigEntry(NamedTuple):
    name: str
    value: str | None
    source: ConfigSource
    sensitive: bool
    read_only: bool
    synonyms: tuple[ConfigSynonym, ...]
    type_code: int
    documentation: str | None

    @property
    def is_default(self) -> bool:
        return self.source is ConfigSource.DEFAULT


SYNONYM_GROUPS = (
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
)
SYNONYMS = {name: group for group in SYNONYM_GROUPS for name in group} | {
    # One direction only: the scheduler's interval is the default of the other.
    "log.flush.interval.ms": ("log.flush.interval.ms", "log.flush.scheduler.interval.ms")
}


class BrokerLayers(NamedTuple):
    """A broker's settings: as started or as they are now, the cluster's default, its own."""

    config: BrokerConfig
    default: Mapping[str, str] = NOTHING
    own: Mapping[str, str] = NOTHING

    def effective(self) -> BrokerConfig:
        return effective_config(self.config, self.default, self.own)

    def synonyms(self, name: str) -> "tuple[ConfigSynonym, ...]":
        return _broker_synonyms(self, name)

    @property
    def static(self) -> BrokerConfig:
        return self.config.static

    def static_text(self, name: str) -> str | None:
        """The value at startup if it was set, by text or in code."""
        setting = BrokerConfig.settings.get(name)
        if setting is not None:
            value = getattr(self.static, setting.field)
            if value != setting.default:
                return self.static.given.get(name) or setting.text(value)
        return self.static.given.get(name)


class CachedLayers(BrokerLayers):
    """The same layers for many resources of one request: derived values are computed once."""

    def effective(self) -> BrokerConfig:
        cache = vars(self)
        if "_effective" not in cache:
            cache["_effective"] = super().effective()
        effective: BrokerConfig = cache["_effective"]
        return effective

    def synonyms(self, name: str) -> "tuple[ConfigSynonym, ...]":
        cache = vars(self).setdefault("_synonyms", {})
        if name not in cache:
            cache[name] = super().synonyms(name)
        found: tuple[ConfigSynonym, ...] = cache[name]
        return found


def describe_topic(layers: BrokerLayers, overrides: Mapping[str, str]) -> list[ConfigEntry]:
    config = TopicConfig.resolve(overrides, layers.effective())
    entries = []
    for setting in _shown(TopicConfig.settings, overrides):
        value = _value(setting, config, overrides)
        synonyms = layers.synonyms(setting.synonyms[0].name) if setting.synonyms else ()
        if setting.name in overrides:
            synonyms = (ConfigSynonym(setting.name, value, ConfigSource.TOPIC), *synonyms)
        entries.append(_entry(setting, value, synonyms, read_only=False))
    return entries


def describe_broker(layers: BrokerLayers) -> list[ConfigEntry]:
    config = layers.effective()
    given = {**layers.static.given, **layers.default, **layers.own}
    entries = []
    for setting in _shown(BrokerConfig.settings, given):
        value = setting.text(getattr(config, setting.field))
        entries.append(_entry(setting, value, layers.synonyms(setting.name), read_only=not is_dynamic(setting.name)))
    unknown = sorted(given.keys() - BrokerConfig.settings.keys())
    return entries + [_unknown_entry(name, given[name], _broker_synonyms(layers, name)) for name in unknown]


def describe_broker_default(layers: BrokerLayers) -> list[ConfigEntry]:
    """The cluster's default: only what was set there."""
    entries = []
    for name, text in sorted(layers.default.items()):
        synonyms = tuple(
            synonym for synonym in layers.synonyms(name) if synonym.source is ConfigSource.DYNAMIC_DEFAULT_BROKER
        )
        setting = BrokerConfig.settings.get(name)
        if setting is None:
            entries.append(_unknown_entry(name, text, synonyms))
        else:
            entries.append(_entry(setting, text, synonyms, read_only=not is_dynamic(name)))
    return entries


def describe_group(layers: BrokerLayers, overrides: Mapping[str, str]) -> list[ConfigEntry]:
    config = GroupConfig.resolve(overrides, layers.effective())
    entries = []
    for setting in GroupConfig.settings.values():
        value = _value(setting, config, overrides)
        source = ConfigSource.GROUP if setting.name in overrides else ConfigSource.DEFAULT
        entries.append(_entry(setting, value, (ConfigSynonym(setting.name, value, source),), read_only=False))
    return entries


def describe_client_metrics(overrides: Mapping[str, str]) -> list[ConfigEntry]:
    config = ClientMetricsConfig.resolve(overrides)
    entries = []
    for setting in ClientMetricsConfig.settings.values():
        source = ConfigSource.CLIENT_METRICS if setting.name in overrides else ConfigSource.DEFAULT
        value = _value(setting, config, overrides)
        entries.append(_entry(setting, value, (ConfigSynonym(setting.name, value, source),), read_only=False))
    return entries


def _shown(settings: Mapping[str, Setting], given: Mapping[str, str]) -> Iterator[Setting]:
    return (setting for setting in settings.values() if not setting.internal or setting.name in given)


def _value(setting: Setting, config: SettingsTable, overrides: Mapping[str, str]) -> str | None:
    if setting.name in overrides:
        return setting.text(setting.parse(overrides[setting.name]))
    return setting.text(getattr(config, setting.field))


def _broker_synonyms(layers: BrokerLayers, name: str) -> tuple[ConfigSynonym, ...]:
    """Every value of the setting and its synonyms in the layers, the effective one first.

    As in Kafka the list begins with the name itself: a value that only a synonym sets (log.retention.hours for
    retention.ms) is not listed, although it is effective.
    """
    match = LISTENER_PREFIX.fullmatch(name)
    names = (name, match[1]) if match else SYNONYMS.get(name, (name,))
    found: list[ConfigSynonym] = []
    for source, texts in (
        (ConfigSource.DYNAMIC_BROKER, layers.own.get),
        (ConfigSource.DYNAMIC_DEFAULT_BROKER, layers.default.get),
        (ConfigSource.STATIC_BROKER, layers.static_text),
        (ConfigSource.DEFAULT, _default_text),
    ):
        for synonym in names:
            text = texts(synonym)
            if text is not None:
                found.append(ConfigSynonym(synonym, None if _sensitive(synonym) else text, source))
    while found and found[0].name != name:
        del found[0]
    return tuple(found)


def _default_text(name: str) -> str | None:
    setting = BrokerConfig.settings.get(name)
    return None if setting is None else setting.text(setting.default)


def _sensitive(name: str) -> bool:
    base = listener_setting(name)
    setting = _known(name) if base is None else BrokerConfig.settings.get(base)
    return setting is None or setting.sensitive


def _known(name: str) -> Setting | None:
    return BrokerConfig.settings.get(name) or BrokerQuotas.settings.get(name)


def _entry(setting: Setting, value: str | None, synonyms: tuple[ConfigSynonym, ...], read_only: bool) -> ConfigEntry:
    return ConfigEntry(
        name=setting.name,
        value=None if setting.sensitive else value,
        source=synonyms[0].source if synonyms else ConfigSource.DEFAULT,
        sensitive=setting.sensitive,
        read_only=read_only,
        synonyms=synonyms,
        type_code=setting.kind,
        documentation=_documentation(setting),
    )


def _documentation(setting: Setting) -> str:
    return f"{setting.doc} No effect here: {setting.no_effect}." if setting.no_effect else setting.doc


def _unknown_entry(name: str, text: str, synonyms: tuple[ConfigSynonym, ...]) -> ConfigEntry:
    """A setting of a plugin or of one listener, or one that is not for the broker's file; hidden if it is not known."""
    plain_name = listener_setting(name)
    base = _known(name) if plain_name is None else BrokerConfig.settings.get(plain_name)
    return ConfigEntry(
        name=name,
        value=None if _sensitive(name) else text,
        source=synonyms[0].source if synonyms else ConfigSource.DEFAULT,
        sensitive=_sensitive(name),
        read_only=True,
        synonyms=synonyms,
        type_code=base.kind if base is not None else 0,
        documentation=_documentation(base) if base is not None else None,
    )
