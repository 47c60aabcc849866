"""What a group shard takes from the broker's settings."""

from dataclasses import dataclass, field

from barnabas.config.broker import BrokerConfig
from barnabas.machines.group.consumer.settings import ConsumerGroupSettings

NEW_MEMBER_JOIN_TIMEOUT_MS = 300_000
"""How long a JoinGroup of a new member is held. It cannot heartbeat yet: it does not know its id."""


@dataclass(frozen=True, slots=True)
class GroupSettings:
    group_min_session_timeout_ms: int = 6000
    group_max_session_timeout_ms: int = 1_800_000
    group_max_size: int = 2**31 - 1
    group_initial_rebalance_delay_ms: int = 3000
    offset_metadata_max_bytes: int = 4096
    offsets_retention_ms: int = 7 * 24 * 3_600_000
    offsets_retention_check_interval_ms: int = 600_000
    consumer: ConsumerGroupSettings = field(default_factory=ConsumerGroupSettings)

    @classmethod
    def of(cls, config: BrokerConfig) -> "GroupSettings":
        return cls(
            group_min_session_timeout_ms=config.group_min_session_timeout_ms,
            group_max_session_timeout_ms=config.group_max_session_timeout_ms,
            group_max_size=config.group_max_size,
            group_initial_rebalance_delay_ms=config.group_initial_rebalance_delay_ms,
            offset_metadata_max_bytes=config.offset_metadata_max_bytes,
            offsets_retention_ms=config.offsets_retention_minutes * 60_000,
            offsets_retention_check_interval_ms=config.offsets_retention_check_interval_ms,
            consumer=ConsumerGroupSettings.of(config),
        )
