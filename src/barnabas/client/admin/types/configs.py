"""Settings of topics, brokers and groups as the admin client shows and changes them."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from barnabas.client.admin.types.enums import KafkaEnum


class ConfigResourceType(KafkaEnum):
    """What has settings: a topic, a broker, a group, a client's metrics."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigResource(NamedTuple):
    """What settings belong to. The broker of name "" stands for all brokers of the cluster."""

    type: ConfigResourceType
    name: str

    @classmethod
    def topic(cls, name: str) -> "ConfigResource":
        """The settings of a topic."""
        return cls(ConfigResourceType.TOPIC, name)

    @classmethod
    def broker(cls, broker_id: int | None = None) -> "ConfigResource":
        """The settings of one broker, or those that all brokers share."""
        return cls(ConfigResourceType.BROKER, "" if broker_id is None else str(broker_id))

    @classmethod
    def group(cls, group_id: str) -> "ConfigResource":
        """The settings of a group."""
        return cls(ConfigResourceType.GROUP, group_id)

    def __str__(self) -> str:
        word = self.type.name.lower().replace("_", " ")
        return f"{word} {self.name}" if self.name else f"all {word}s"


class ConfigSource(KafkaEnum):
    """Where the value of a setting comes from."""

    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    DYNAMIC_CLIENT_METRICS_CONFIG = 7
    DYNAMIC_GROUP_CONFIG = 8


class ConfigType(KafkaEnum):
    """The type of the value of a setting."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigSynonym:
    """Where a value may come from; the first of the list is the one in force."""

    name: str
    value: str | None = field(repr=False)
    source: ConfigSource


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ConfigEntry:
    """One setting. `value` is None for a secret; one that a broker sends anyway is never shown by repr."""

    name: str
    value: str | None
    source: ConfigSource
    is_read_only: bool = False
    is_sensitive: bool = False
    synonyms: tuple[ConfigSynonym, ...] = ()
    type: ConfigType = ConfigType.UNKNOWN
    documentation: str | None = field(default=None, repr=False)

    @property
    def is_default(self) -> bool:
        """Whether nobody has set it."""
        return self.source is ConfigSource.DEFAULT_CONFIG

    def __repr__(self) -> str:
        value = "<hidden>" if self.is_sensitive else repr(self.value)
        return f"ConfigEntry(name={self.name!r}, value={value}, source={self.source.name})"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigChange:
    """Changes to the settings of one resource; what is not named stays.

    `set` gives values, `delete` goes back to the default, `append` and `subtract` add to and take from lists
    ("cleanup.policy").
    """

    set: Mapping[str, object] = field(default_factory=dict, repr=False)
    delete: Collection[str] = ()
    append: Mapping[str, object] = field(default_factory=dict, repr=False)
    subtract: Mapping[str, object] = field(default_factory=dict, repr=False)


def config_text(value: object) -> str:
    """A value as Kafka writes it: `true`, lists with commas."""
    if value is None:
        raise ValueError("a setting cannot be None: leave it out, or delete it to go back to the default")
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple | set | frozenset):
        return ",".join(config_text(each) for each in value)
    return str(value)
