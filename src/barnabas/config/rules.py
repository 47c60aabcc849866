"""Rules across several settings. Each yields its faults as messages; nothing is raised here."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from barnabas.config.authorization import AUTHORIZERS
from barnabas.config.faults import Fault
from barnabas.config.listeners import MQTT_PROTOCOLS, check_ports
from barnabas.config.security_rules import security_rules

if TYPE_CHECKING:
    from barnabas.config.broker import BrokerConfig
    from barnabas.config.topic import TopicConfig

MEBIBYTE = 1 << 20


def broker_rules(config: "BrokerConfig") -> list[str]:
    return [*_identity(config), *_listeners(config), *_sockets(config), *_logs(config), *_protection(config)]


def _identity(config: "BrokerConfig") -> Iterator[str]:
    if config.broker_id not in (-1, config.node_id):
        yield f"node.id ({config.node_id}) and broker.id ({config.broker_id}) differ"


def _listeners(config: "BrokerConfig") -> Iterator[str]:
    try:
        bound = config.bound_listeners()
        check_ports(bound)
    except ValueError as fault:
        # A faulty map makes every listener faulty; it is reported once.
        yield Fault("listeners", f"{fault}")
        return
    try:
        published = config.published_listeners()
    except ValueError as fault:
        yield Fault("advertised.listeners", f"{fault}")
        return
    names = [listener.name for listener in bound if listener.protocol not in MQTT_PROTOCOLS]
    if not names:
        yield Fault("listeners", "at least one listener for clients is required")
        return
    for listener in published:
        if listener.name not in names:
            yield Fault("advertised.listeners", f"{listener.name} is not one of listeners ({', '.join(names)})")
        if listener.host in ("0.0.0.0", "::"):
            yield Fault(
                "advertised.listeners", f"clients cannot reach {listener.host}, set an address that they can use"
            )
    published_names = [listener.name for listener in published]
    if config.names_inter_broker_listener and config.inter_broker_listener not in published_names:
        name = "inter.broker.listener.name" if config.inter_broker_listener_name else "security.inter.broker.protocol"
        yield f"{name}: {config.inter_broker_listener} is not advertised"
    if config.inter_broker_listener_name and "security.inter.broker.protocol" in config.given:
        yield "inter.broker.listener.name and security.inter.broker.protocol exclude each other"


def _sockets(config: "BrokerConfig") -> Iterator[str]:
    if 0 < config.queued_max_request_bytes < config.socket_request_max_bytes:
        yield "queued.max.request.bytes must be at least socket.request.max.bytes"
    try:
        overrides = config.connection_overrides()
    except ValueError as fault:
        yield f"max.connections.per.ip.overrides: {fault}"
        return
    if config.max_connections_per_ip == 0 and not overrides:
        yield "max.connections.per.ip may be 0 only with max.connections.per.ip.overrides"
    if 0 <= config.connections_max_idle_ms <= config.connection_failed_authentication_delay_ms:
        yield "connection.failed.authentication.delay.ms must be less than connections.max.idle.ms"


def _logs(config: "BrokerConfig") -> Iterator[str]:
    if not config.log_directories:
        yield "log.dirs: at least one log directory is required"
    if len(set(config.log_directories)) != len(config.log_directories):
        yield "log.dirs: a log directory is listed twice"
    for name, value, low in (
        ("log.roll.ms", config.log_roll_ms, 1),
        ("log.roll.jitter.ms", config.log_roll_jitter_ms, 0),
        ("log.flush.interval.ms", config.log_flush_interval_ms, 0),
    ):
        if value is not None and value < low:
            yield f"{name} must be at least {low}"
    for name, value in (
        ("log.retention.ms", config.log_retention_ms),
        ("log.retention.minutes", config.log_retention_minutes),
        ("log.retention.hours", config.log_retention_hours),
    ):
        if value == 0:
            yield f"{name} must be negative (no limit) or at least 1"
    if config.log_cleaner_dedupe_buffer_size // max(1, config.log_cleaner_threads) <= MEBIBYTE:
        yield "log.cleaner.dedupe.buffer.size must be more than 1 MiB for each of log.cleaner.threads"
    if config.log_cleaner_min_compaction_lag_ms > config.log_cleaner_max_compaction_lag_ms:
        yield "log.cleaner.min.compaction.lag.ms is greater than log.cleaner.max.compaction.lag.ms"
    if not -1 <= config.default_replication_factor <= 32767 or config.default_replication_factor == 0:
        yield "default.replication.factor must be between 1 and 32767"


def _protection(config: "BrokerConfig") -> Iterator[str]:
    """Security settings that are not supported stop the startup, so that data is never left unprotected."""
    yield from security_rules(config)
    if config.authorizer_class_name and config.authorizer_class_name not in AUTHORIZERS:
        yield f"authorizer.class.name: {config.authorizer_class_name} cannot be loaded, so nothing would be protected"


def topic_rules(config: "TopicConfig") -> list[str]:
    return [fault for rule in TOPIC_RULES for fault in rule(config)]


def _compaction_lag(config: "TopicConfig") -> Iterator[str]:
    if config.min_compaction_lag_ms > config.max_compaction_lag_ms:
        yield (
            f"min.compaction.lag.ms ({config.min_compaction_lag_ms}) is greater than"
            f" max.compaction.lag.ms ({config.max_compaction_lag_ms})"
        )


def _tiers(config: "TopicConfig") -> Iterator[str]:
    if config.remote_storage_enable:
        yield "remote.storage.enable: tiered storage is not supported"


TOPIC_RULES: tuple[Callable[["TopicConfig"], Iterator[str]], ...] = (_compaction_lag, _tiers)
