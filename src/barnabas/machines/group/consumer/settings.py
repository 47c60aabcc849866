"""What consumer groups take from the broker's settings, and what a group's own settings change of it."""

from collections.abc import Mapping
from dataclasses import dataclass

from barnabas.config.broker import BrokerConfig
from barnabas.machines.assignors.broker import BROKER_ASSIGNORS

SESSION_TIMEOUT = "consumer.session.timeout.ms"
HEARTBEAT_INTERVAL = "consumer.heartbeat.interval.ms"
CLASS_NAMES = {
    "org.apache.kafka.coordinator.group.assignor.UniformAssignor": "uniform",
    "org.apache.kafka.coordinator.group.assignor.RangeAssignor": "range",
}


@dataclass(frozen=True, slots=True)
class ConsumerGroupSettings:
    session_timeout_ms: int = 45_000
    min_session_timeout_ms: int = 45_000
    max_session_timeout_ms: int = 60_000
    heartbeat_interval_ms: int = 5000
    min_heartbeat_interval_ms: int = 5000
    max_heartbeat_interval_ms: int = 15_000
    max_size: int = 2**31 - 1
    assignors: tuple[str, ...] = ("uniform", "range")
    """The first is that of a group whose members ask for none."""
    upgrade_enabled: bool = True
    downgrade_enabled: bool = True

    @classmethod
    def of(cls, config: BrokerConfig) -> "ConsumerGroupSettings":
        policy = config.group_consumer_migration_policy.upper()
        names = [CLASS_NAMES.get(name, name) for name in config.group_consumer_assignors]
        return cls(
            session_timeout_ms=config.group_consumer_session_timeout_ms,
            min_session_timeout_ms=config.group_consumer_min_session_timeout_ms,
            max_session_timeout_ms=config.group_consumer_max_session_timeout_ms,
            heartbeat_interval_ms=config.group_consumer_heartbeat_interval_ms,
            min_heartbeat_interval_ms=config.group_consumer_min_heartbeat_interval_ms,
            max_heartbeat_interval_ms=config.group_consumer_max_heartbeat_interval_ms,
            max_size=config.group_consumer_max_size,
            assignors=tuple(name for name in names if name in BROKER_ASSIGNORS) or ("uniform",),
            upgrade_enabled=policy in ("UPGRADE", "BIDIRECTIONAL"),
            downgrade_enabled=policy in ("DOWNGRADE", "BIDIRECTIONAL"),
        )

    def session_timeout_of(self, overrides: Mapping[str, str]) -> int:
        """A value set while the broker's bounds were others is moved into them."""
        value = int(overrides.get(SESSION_TIMEOUT, self.session_timeout_ms))
        return min(max(value, self.min_session_timeout_ms), self.max_session_timeout_ms)

    def heartbeat_interval_of(self, overrides: Mapping[str, str]) -> int:
        value = int(overrides.get(HEARTBEAT_INTERVAL, self.heartbeat_interval_ms))
        return min(max(value, self.min_heartbeat_interval_ms), self.max_heartbeat_interval_ms)
