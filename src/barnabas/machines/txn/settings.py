"""What a transaction shard takes from the broker's settings."""

from dataclasses import dataclass

from barnabas.config.broker import BrokerConfig


@dataclass(frozen=True, slots=True)
class TransactionSettings:
    max_timeout_ms: int = 900_000
    id_expiration_ms: int = 604_800_000
    expiry_check_interval_ms: int = 3_600_000

    @classmethod
    def of(cls, config: BrokerConfig) -> "TransactionSettings":
        return cls(
            max_timeout_ms=config.transaction_max_timeout_ms,
            id_expiration_ms=config.transactional_id_expiration_ms,
            expiry_check_interval_ms=config.transaction_remove_expired_transaction_cleanup_interval_ms,
        )
