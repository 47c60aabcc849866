"""Every broker setting of Kafka 4.1, checked one by one and against each other.

`BrokerConfig.parse` takes the contents of a server.properties and raises `ConfigFaults` with all faults at once.
Called to start a broker; the server, storage and DescribeConfigs read the result. It opens and resolves nothing.
"""

import dataclasses
import re
from collections.abc import Mapping
from types import MappingProxyType

from barnabas.config.areas.controller import ControllerSettings
from barnabas.config.areas.effect import NO_PLUGINS, NO_TIERS, ONE_LISTENER, ONE_MECHANISM
from barnabas.config.areas.groups import GroupsSettings
from barnabas.config.areas.log import LogSettings
from barnabas.config.areas.metrics import MetricsSettings
from barnabas.config.areas.network import NetworkSettings
from barnabas.config.areas.remote import RemoteSettings
from barnabas.config.areas.replication import ReplicationSettings
from barnabas.config.areas.sasl import SaslSettings
from barnabas.config.areas.ssl import SslSettings
from barnabas.config.areas.transactions import TransactionsSettings
from barnabas.config.authorization import AuthorizationConfig, read_authorization_config
from barnabas.config.faults import ConfigFaults, bad_value, read_values, unknown_name
from barnabas.config.listeners import (
    MQTT_PROTOCOLS,
    Listener,
    parse_connection_overrides,
    parse_listeners,
    parse_protocol_map,
)
from barnabas.config.metadata_engine import MetadataEngineConfig, read_engine_config
from barnabas.config.monitoring import MonitoringConfig, read_monitoring_config
from barnabas.config.mqtt import ALLOW_ANONYMOUS, MqttConfig, read_mqtt_config
from barnabas.config.table import settings_table

LISTENER_PREFIX = re.compile(r"listener\.name\.[^.]+\.(.+)")
MECHANISM_PREFIX = re.compile(r"(?:plain|scram-sha-256|scram-sha-512|oauthbearer|gssapi)\.(.+)")
"""After that of a listener, in front of the settings of one SASL mechanism."""
PER_LISTENER = re.compile(
    r"ssl\..+|sasl\..+|connections\.max\.reauth\.ms|max\.connections|max\.connection\.creation\.rate"
)
"""The settings that take effect for one listener."""
PER_MECHANISM = frozenset(["connections.max.reauth.ms"])
"""Those of them that every SASL mechanism can have for itself."""
PLUGIN_PREFIXES = {
    "rsm.config.": NO_TIERS,
    "rlmm.config.": NO_TIERS,
    "config.providers": NO_PLUGINS,
    "metrics.context.": NO_PLUGINS,
    "metrics.jmx.": NO_PLUGINS,
}


@settings_table
class BrokerConfig(
    NetworkSettings,
    LogSettings,
    ReplicationSettings,
    TransactionsSettings,
    GroupsSettings,
    SaslSettings,
    SslSettings,
    ControllerSettings,
    MetricsSettings,
    RemoteSettings,
):
    given: Mapping[str, str] = MappingProxyType({})
    """The settings as they were given, which distinguishes a static value from a default in DescribeConfigs."""
    started_with: "BrokerConfig | None" = None
    """The settings at startup, if they were changed at run time (see `dynamic`)."""
    metadata_engine: MetadataEngineConfig = MetadataEngineConfig()
    listener_overrides: Mapping[str, str] = MappingProxyType({})
    """The settings for one listener, by their whole names (`listener.name.NAME.SETTING`)."""
    monitoring: MonitoringConfig = MonitoringConfig()
    authorization: AuthorizationConfig = AuthorizationConfig()
    mqtt: MqttConfig = MqttConfig()

    @classmethod
    def parse(cls, given: Mapping[str, str]) -> "BrokerConfig":
        """Raises ConfigFaults."""
        # Imported here because the rules import this class.
        from barnabas.config.rules import broker_rules

        values, faults = read_values(cls.settings, given)
        faults += [fault for name, text in given.items() for fault in _extra_faults(name, text)]
        engine, engine_faults = read_engine_config(given)
        faults += engine_faults
        monitoring, monitoring_faults = read_monitoring_config(given)
        faults += monitoring_faults
        authorization, authorization_faults = read_authorization_config(given)
        faults += authorization_faults
        mqtt, mqtt_faults = read_mqtt_config(given)
        faults += mqtt_faults
        if "broker.id" in given and "node.id" not in given and values.get("broker_id", -1) >= 0:
            values["node_id"] = values["broker_id"]
        config = cls(
            **values,
            given=dict(given),
            metadata_engine=engine,
            monitoring=monitoring,
            mqtt=mqtt,
            listener_overrides=listener_overrides(given),
            authorization=authorization,
        )
        faults += broker_rules(config)
        if faults:
            raise ConfigFaults(faults)
        return config.replace(broker_id=config.node_id)

    @property
    def static(self) -> "BrokerConfig":
        return self if self.started_with is None else self.started_with

    @property
    def log_directories(self) -> tuple[str, ...]:
        text = self.log_dirs if self.log_dirs is not None else self.log_dir
        return tuple(part for part in (item.strip() for item in text.split(",")) if part)

    @property
    def protocols(self) -> dict[str, str]:
        """Security protocol by listener name."""
        protocols = parse_protocol_map(self.listener_security_protocol_map)
        if "listener.security.protocol.map" not in self.given:
            # Kafka treats controller listeners without a mapping as PLAINTEXT as long as the map is the default.
            for name in self.controller_names:
                protocols.setdefault(name, "PLAINTEXT")
        for protocol in MQTT_PROTOCOLS:
            protocols.setdefault(protocol, protocol)
        return protocols

    @property
    def controller_names(self) -> tuple[str, ...]:
        return tuple(name.strip().upper() for name in (self.controller_listener_names or "").split(",") if name.strip())

    def bound_listeners(self) -> tuple[Listener, ...]:
        """The addresses to listen on, without those of KRaft controllers, which are not served."""
        found = parse_listeners(self.listeners, self.protocols)
        return tuple(listener for listener in found if listener.name not in self.controller_names)

    def published_listeners(self) -> tuple[Listener, ...]:
        """The addresses published to clients; the server fills in an empty host or port 0 once it is bound.

        Without those for MQTT: its clients know nothing of other brokers.
        """
        found = self.bound_listeners()
        if self.advertised_listeners is not None and self.advertised_listeners.strip():
            found = parse_listeners(self.advertised_listeners, self.protocols)
        return tuple(
            each for each in found if each.name not in self.controller_names and each.protocol not in MQTT_PROTOCOLS
        )

    @property
    def inter_broker_listener(self) -> str:
        """Without a setting the first listener serves, if none has the name of Kafka's default."""
        if self.inter_broker_listener_name:
            return self.inter_broker_listener_name.upper()
        if "security.inter.broker.protocol" not in self.given:
            names = [listener.name for listener in self.published_listeners()]
            if names and self.security_inter_broker_protocol not in names:
                return names[0]
        return self.security_inter_broker_protocol

    @property
    def names_inter_broker_listener(self) -> bool:
        """Whether the settings say which listener brokers use among themselves."""
        return bool(self.inter_broker_listener_name) or "security.inter.broker.protocol" in self.given

    def for_listener(self, name: str, mechanism: str | None = None) -> "BrokerConfig":
        """The settings as they hold for one listener, and for one SASL mechanism on it."""
        prefix = f"listener.name.{name.lower()}."
        found = {key[len(prefix) :]: text for key, text in self.listener_overrides.items() if key.startswith(prefix)}
        given = {key: text for key, text in found.items() if MECHANISM_PREFIX.fullmatch(key) is None}
        if mechanism is not None:
            prefix = f"{mechanism.lower()}."
            given |= {key[len(prefix) :]: text for key, text in found.items() if key.startswith(prefix)}
        values, _ = read_values(
            type(self).settings, {key: text for key, text in given.items() if _is_per_listener(key)}
        )
        return self.replace(**values, given={**self.given, **given}) if values else self

    def listener_limit(self, listener: str, name: str) -> int | None:
        """What is set for one listener and does not fall back to the broker's own setting."""
        text = self.listener_overrides.get(f"listener.name.{listener.lower()}.{name}")
        return None if text is None else int(text)

    def connection_overrides(self) -> dict[str, int]:
        return parse_connection_overrides(self.max_connections_per_ip_overrides)


def _extra_faults(name: str, text: str) -> list[str]:
    """Faults of names that are not plain settings: after a listener prefix the rest is checked; plugin names pass."""
    settings = BrokerConfig.settings
    own = {
        **MetadataEngineConfig.settings,
        **MonitoringConfig.settings,
        **AuthorizationConfig.settings,
        **MqttConfig.settings,
    }
    if name in settings or name in own or name.startswith(tuple(PLUGIN_PREFIXES)):
        return []
    match = LISTENER_PREFIX.fullmatch(name)
    if match is None:
        return [unknown_name(name, (*settings, *own))]
    setting = MqttConfig.settings[ALLOW_ANONYMOUS] if match[1] == ALLOW_ANONYMOUS else None
    setting = setting or settings.get(_without_mechanism(match[1]))
    try:
        if setting is not None:
            setting.parse(text)
    except ValueError as fault:
        return [bad_value(dataclasses.replace(setting, name=name), text, fault)] if setting else []
    return []


def listener_overrides(given: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): text for name, text in given.items() if LISTENER_PREFIX.fullmatch(name)}


def _without_mechanism(name: str) -> str:
    match = MECHANISM_PREFIX.fullmatch(name)
    return match[1] if match else name


def _is_per_listener(name: str) -> bool:
    return PER_LISTENER.fullmatch(name) is not None


def listener_setting(name: str) -> str | None:
    """The setting behind `listener.name.NAME.` and the prefix of a mechanism, if there is one."""
    match = LISTENER_PREFIX.fullmatch(name)
    return None if match is None else _without_mechanism(match[1])


def no_effect(given: Mapping[str, str]) -> list[str]:
    """`name: reason` for each of the given settings that has no effect, sorted by name."""
    found = []
    for name in sorted(given):
        setting = BrokerConfig.settings.get(name) or MetadataEngineConfig.settings.get(name)
        reason = setting.no_effect if setting is not None else ""
        if setting is None:
            plugin = next((why for prefix, why in PLUGIN_PREFIXES.items() if name.startswith(prefix)), "")
            base = listener_setting(name)
            reason = plugin if base is None else _no_effect_for_listener(name, base)
        if reason:
            found.append(f"{name}: {reason}")
    return found


def _no_effect_for_listener(whole_name: str, name: str) -> str:
    if name == ALLOW_ANONYMOUS:
        return ""
    setting = BrokerConfig.settings.get(name)
    match = LISTENER_PREFIX.fullmatch(whole_name)
    if (
        match is not None
        and match[1] != name
        and not match[1].startswith(("plain.", "oauthbearer."))
        and name not in PER_MECHANISM
        and not (name == "sasl.jaas.config" and match[1].startswith("scram-"))
    ):
        return ONE_MECHANISM
    if setting is not None and _is_per_listener(name):
        return setting.no_effect
    return ONE_LISTENER
