"""Idempotent and transactional producers."""

from barnabas.config.areas.effect import NO_TWO_PHASE, WHEN_DUE
from barnabas.config.checks import at_least
from barnabas.config.setting import CLUSTER_WIDE, HIGH, LOW, boolean, int16, int32
from barnabas.config.table import SettingsTable, settings_area


@settings_area
class TransactionsSettings(SettingsTable):
    __slots__ = ()

    add_partitions_to_txn_retry_backoff_max_ms: int = int32(
        100,
        "Maximum time for which the broker retries adding a partition to a transaction.",
        at_least(0),
        importance=HIGH,
    )
    add_partitions_to_txn_retry_backoff_ms: int = int32(
        20, "Delay between those retries.", at_least(1), importance=HIGH
    )
    producer_id_expiration_check_interval_ms: int = int32(
        600_000, "Interval between checks for expired producer ids.", at_least(1), importance=LOW, internal=True
    )
    producer_id_expiration_ms: int = int32(
        86_400_000,
        "How long the state of an inactive producer id is kept.",
        at_least(1),
        importance=LOW,
        update=CLUSTER_WIDE,
    )
    transaction_abort_timed_out_transaction_cleanup_interval_ms: int = int32(
        10_000,
        "Interval between checks for transactions that timed out.",
        at_least(1),
        importance=LOW,
        no_effect=WHEN_DUE,
    )
    transaction_max_timeout_ms: int = int32(
        900_000,
        "Maximum transaction timeout that a producer may request.",
        at_least(1),
        importance=HIGH,
    )
    transaction_partition_verification_enable: bool = boolean(
        True,
        "Whether to verify that a partition was added to the transaction that writes to it.",
        importance=LOW,
        update=CLUSTER_WIDE,
    )
    transaction_remove_expired_transaction_cleanup_interval_ms: int = int32(
        3_600_000,
        "Interval between checks for expired transactional ids.",
        at_least(1),
        importance=LOW,
    )
    transaction_state_log_load_buffer_size: int = int32(
        5_242_880,
        "Number of bytes read at once when the coordinator loads its state.",
        at_least(1),
        importance=HIGH,
    )
    transaction_state_log_min_isr: int = int32(
        2, "min.insync.replicas of the transaction topic.", at_least(1), importance=HIGH
    )
    transaction_state_log_num_partitions: int = int32(
        50, "Number of partitions of the transaction topic.", at_least(1), importance=HIGH
    )
    transaction_state_log_replication_factor: int = int16(
        3, "Replication factor of the transaction topic.", at_least(1), importance=HIGH
    )
    transaction_state_log_segment_bytes: int = int32(
        104_857_600, "Segment size of the transaction topic.", at_least(1), importance=HIGH
    )
    transaction_two_phase_commit_enable: bool = boolean(
        False, "Whether producers may take part in a two-phase commit.", importance=LOW, no_effect=NO_TWO_PHASE
    )
    transactional_id_expiration_ms: int = int32(
        604_800_000,
        "How long an unused transactional id is kept.",
        at_least(1),
        importance=HIGH,
    )
