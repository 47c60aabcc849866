"""Dynamic settings: which may change while the broker runs, and the resulting configuration.

Three layers, the later overriding: the static settings, the cluster-wide default, the settings of this broker.
The controller calls `ResourceRules` before it writes a change; the server calls `effective_config` after one. Pure.
"""

from collections.abc import Callable, Mapping
from typing import Protocol

from barnabas.config.broker import LISTENER_PREFIX, BrokerConfig, listener_overrides, listener_setting
from barnabas.config.client_metrics import ClientMetricsConfig
from barnabas.config.faults import ConfigFaults, read_values
from barnabas.config.group import GroupConfig
from barnabas.config.quotas import BrokerQuotas
from barnabas.config.rules import broker_rules
from barnabas.config.setting import Kind, Setting, Update
from barnabas.config.topic import TopicConfig, inherited
from barnabas.errors import ErrorCode, KafkaError

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
"""Resource types as the protocol numbers them."""

LISTENER_CLUSTER_WIDE = ("max.connections", "max.connection.creation.rate", "num.network.threads")
LISTENER_ONLY = ("ssl.keystore.", "ssl.truststore.", "ssl.key.password")
"""Kafka changes these for one listener at a time, never for the whole broker."""


class Resource(Protocol):
    @property
    def type(self) -> int: ...

    @property
    def name(self) -> str: ...


def is_dynamic(name: str) -> bool:
    """Whether a broker setting may change at run time. Unknown names may: they belong to plugins."""
    setting = BrokerConfig.settings.get(name)
    return setting is None or setting.update is not Update.READ_ONLY


def effective_config(static: BrokerConfig, default: Mapping[str, str], own: Mapping[str, str]) -> BrokerConfig:
    """The effective settings. Raises ConfigFaults if the layers contradict each other.

    Names that may not change are ignored, as Kafka does for what is in the metadata. Every dynamic setting
    is the first among its synonyms (log.retention.ms before hours), so a layer never has to unset another name.
    """
    changes = {name: text for name, text in {**default, **own}.items() if is_dynamic(name)}
    values, faults = read_values(BrokerConfig.settings, changes)
    overrides = {**static.static.listener_overrides, **listener_overrides(changes)}
    config = static.static.replace(**values, started_with=static.static, listener_overrides=overrides)
    faults += broker_rules(config)
    if faults:
        raise ConfigFaults(faults)
    return config


def check_broker_change(
    static: BrokerConfig, default: Mapping[str, str], own: Mapping[str, str], per_broker: bool
) -> None:
    """Raises ConfigFaults unless this change is allowed; `per_broker` says which layer is being changed."""
    changed = own if per_broker else default
    faults = []
    for name in sorted(changed):
        setting = BrokerConfig.settings.get(name)
        of_listener = LISTENER_PREFIX.fullmatch(name)
        if not is_dynamic(name):
            faults.append(f"{name}: cannot be changed while the broker runs")
        elif name.startswith(LISTENER_ONLY):
            faults.append(f"{name}: can be changed only for one listener, as listener.name.<listener>.{name}")
        elif not per_broker and (
            (setting is not None and setting.update is Update.PER_BROKER)
            or (of_listener is not None and of_listener[1] not in LISTENER_CLUSTER_WIDE)
        ):
            faults.append(f"{name}: can be changed only for a single broker, not as the cluster's default")
    faults += read_values(BrokerQuotas.settings, changed)[1]
    for name, text in changed.items():
        base = listener_setting(name)
        if base is not None:
            faults += read_values(BrokerConfig.settings, {base: text})[1]
    if faults:
        raise ConfigFaults(faults)
    effective_config(static, default, own)


class ResourceRules:
    """Implements `ConfigRules` of machines/controller.

    `layers` returns the current cluster-wide default and this broker's own settings.
    """

    def __init__(self, static: BrokerConfig, layers: Callable[[], tuple[Mapping[str, str], Mapping[str, str]]]) -> None:
        self._static = static
        self._layers = layers

    def check(self, resource: Resource, config: Mapping[str, str]) -> None:
        """Raises KafkaError: INVALID_CONFIG for topics and groups, INVALID_REQUEST for the rest, as Kafka does."""
        code = ErrorCode.INVALID_CONFIG if resource.type in (TOPIC, GROUP) else ErrorCode.INVALID_REQUEST
        default, own = self._layers()
        try:
            if resource.type == TOPIC:
                TopicConfig.resolve(config, effective_config(self._static, default, own))
            elif resource.type == GROUP:
                GroupConfig.resolve(config, self._static)
            elif resource.type == CLIENT_METRICS:
                ClientMetricsConfig.resolve(config)
            elif resource.type != BROKER:
                raise KafkaError(ErrorCode.INVALID_REQUEST, f"resources of type {resource.type} have no settings here")
            elif resource.name:
                check_broker_change(self._static, default, config, per_broker=True)
            else:
                check_broker_change(self._static, config, own, per_broker=False)
        except ConfigFaults as faults:
            raise KafkaError(code, str(faults)) from None

    def is_list(self, resource: Resource, name: str) -> bool:
        setting = self._settings(resource).get(name)
        return setting is not None and setting.kind is Kind.LIST

    def default(self, resource: Resource, name: str) -> str | None:
        """The value that APPEND and SUBTRACT start from when the resource has none of its own."""
        setting = self._settings(resource).get(name)
        if setting is None:
            return None
        if resource.type == TOPIC:
            return setting.text(inherited(setting, effective_config(self._static, *self._layers())))
        return setting.text(getattr(self._static, setting.field) if resource.type == BROKER else setting.default)

    def _settings(self, resource: Resource) -> Mapping[str, Setting]:
        tables = {
            TOPIC: TopicConfig.settings,
            BROKER: BrokerConfig.settings,
            GROUP: GroupConfig.settings,
            CLIENT_METRICS: ClientMetricsConfig.settings,
        }
        return tables.get(resource.type, {})
