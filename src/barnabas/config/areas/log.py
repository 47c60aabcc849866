"""The logs of this broker and the defaults that topics inherit."""

from barnabas.config.areas.effect import NO_PLUGINS, NO_QUORUM, NO_TIERS, OWN_PACE, OWN_READS
from barnabas.config.checks import at_least, between, each_of, either, one_of
from barnabas.config.setting import (
    CLUSTER_WIDE,
    DOUBLE_MAX,
    HIGH,
    INT64_MAX,
    LOW,
    boolean,
    class_name,
    double,
    int32,
    int64,
    string,
    string_list,
)
from barnabas.config.table import SettingsTable, settings_area


@settings_area
class LogSettings(SettingsTable):
    __slots__ = ()

    alter_config_policy_class_name: str | None = class_name(
        None, "Policy class that may reject configuration changes.", importance=LOW, no_effect=NO_PLUGINS
    )
    auto_create_topics_enable: bool = boolean(
        True, "Whether a metadata request for an unknown topic creates it.", importance=HIGH
    )
    compression_gzip_level: int = int32(
        -1,
        "Compression level for gzip; -1 is gzip's default.",
        either(between(1, 9), -1),
        update=CLUSTER_WIDE,
    )
    compression_lz4_level: int = int32(9, "Compression level for lz4.", between(1, 17), update=CLUSTER_WIDE)
    compression_type: str = string(
        "producer",
        "Compression of stored batches; producer keeps the producer's codec. Topics can override it.",
        one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        importance=HIGH,
        update=CLUSTER_WIDE,
    )
    compression_zstd_level: int = int32(3, "Compression level for zstd.", between(-131_072, 22), update=CLUSTER_WIDE)
    create_topic_policy_class_name: str | None = class_name(
        None, "Policy class that may reject new topics.", importance=LOW, no_effect=NO_PLUGINS
    )
    default_replication_factor: int = int32(1, "Replication factor of a topic that is created without one.")
    delete_topic_enable: bool = boolean(True, "Whether topics may be deleted.", importance=HIGH)
    log_cleaner_backoff_ms: int = int64(
        15_000, "How long the cleaner sleeps when there is nothing to compact.", at_least(0), update=CLUSTER_WIDE
    )
    log_cleaner_dedupe_buffer_size: int = int64(
        134_217_728, "Total memory for deduplication, across all cleaner threads.", update=CLUSTER_WIDE
    )
    log_cleaner_delete_retention_ms: int = int64(
        86_400_000,
        "How long a compacted topic keeps tombstones. Topics can override it.",
        at_least(0),
        update=CLUSTER_WIDE,
    )
    log_cleaner_enable: bool = boolean(True, "Whether log compaction is enabled.")
    log_cleaner_io_buffer_load_factor: float = double(
        0.9, "Load factor of the cleaner's deduplication buffer.", update=CLUSTER_WIDE
    )
    log_cleaner_io_buffer_size: int = int32(
        524_288,
        "Total memory for I/O buffers, across all cleaner threads.",
        at_least(0),
        update=CLUSTER_WIDE,
        no_effect=OWN_READS,
    )
    log_cleaner_io_max_bytes_per_second: float = double(
        DOUBLE_MAX, "Maximum I/O rate of the cleaner, in bytes per second.", update=CLUSTER_WIDE
    )
    log_cleaner_max_compaction_lag_ms: int = int64(
        INT64_MAX,
        "Maximum time that a record remains uncompacted. Topics can override it.",
        at_least(1),
        update=CLUSTER_WIDE,
    )
    log_cleaner_min_cleanable_ratio: float = double(
        0.5,
        "Minimum ratio of uncompacted to total log for a compaction. Topics can override it.",
        between(0, 1),
        update=CLUSTER_WIDE,
    )
    log_cleaner_min_compaction_lag_ms: int = int64(
        0,
        "Minimum time that a record remains uncompacted. Topics can override it.",
        at_least(0),
        update=CLUSTER_WIDE,
    )
    log_cleaner_threads: int = int32(1, "Number of cleaner threads.", at_least(0), update=CLUSTER_WIDE)
    log_cleanup_policy: tuple[str, ...] = string_list(
        ("delete",),
        "Cleanup policy for old segments: delete, compact or both. Topics can override it.",
        each_of("compact", "delete"),
        update=CLUSTER_WIDE,
    )
    log_dir_failure_timeout_ms: int = int64(
        30_000,
        "The broker stops if it cannot report a failed log directory within this time.",
        at_least(1),
        importance=LOW,
        no_effect=NO_QUORUM,
    )
    log_dirs: str | None = string(None, "Log directories, separated by commas.", importance=HIGH)
    log_dir: str = string("/tmp/kafka-logs", "Log directory, used if log.dirs is not set.", importance=HIGH)
    log_flush_interval_messages: int = int64(
        INT64_MAX,
        "Number of records after which a log is flushed. Topics can override it.",
        at_least(1),
        importance=HIGH,
        update=CLUSTER_WIDE,
    )
    log_flush_interval_ms: int | None = int64(
        None,
        "Maximum time before a record is flushed to disk. Topics can override it.",
        importance=HIGH,
        update=CLUSTER_WIDE,
    )
    log_flush_offset_checkpoint_interval_ms: int = int32(
        60_000, "How often the recovery point checkpoint is written.", at_least(0), importance=HIGH
    )
    log_flush_scheduler_interval_ms: int = int64(
        INT64_MAX, "Interval between checks for logs to flush.", importance=HIGH
    )
    log_flush_start_offset_checkpoint_interval_ms: int = int32(
        60_000, "How often the log start offset checkpoint is written.", at_least(0), importance=HIGH
    )
    log_index_interval_bytes: int = int32(
        4096,
        "Bytes between two entries of the offset index. Topics can override it.",
        at_least(0),
        update=CLUSTER_WIDE,
    )
    log_index_size_max_bytes: int = int32(
        10_485_760, "Maximum size of an index file. Topics can override it.", at_least(4), update=CLUSTER_WIDE
    )
    log_initial_task_delay_ms: int = int64(
        30_000,
        "Delay before periodic log tasks start.",
        at_least(0),
        importance=LOW,
        internal=True,
        no_effect=OWN_PACE,
    )
    log_local_retention_bytes: int = int64(
        -2,
        "Bytes kept on local disk; -2 uses log.retention.bytes.",
        at_least(-2),
        update=CLUSTER_WIDE,
        no_effect=NO_TIERS,
    )
    log_local_retention_ms: int = int64(
        -2,
        "Time kept on local disk; -2 uses log.retention.ms.",
        at_least(-2),
        update=CLUSTER_WIDE,
        no_effect=NO_TIERS,
    )
    log_message_timestamp_after_max_ms: int = int64(
        3_600_000,
        "How far a CreateTime may be ahead of the broker's clock. Topics can override it.",
        at_least(0),
        update=CLUSTER_WIDE,
    )
    log_message_timestamp_before_max_ms: int = int64(
        INT64_MAX,
        "How far a CreateTime may be behind the broker's clock. Topics can override it.",
        at_least(0),
        update=CLUSTER_WIDE,
    )
    log_message_timestamp_type: str = string(
        "CreateTime",
        "Timestamp type of records: CreateTime or LogAppendTime. Topics can override it.",
        one_of("CreateTime", "LogAppendTime"),
        update=CLUSTER_WIDE,
    )
    log_preallocate: bool = boolean(
        False,
        "Whether the file of a new segment is preallocated. Topics can override it.",
        update=CLUSTER_WIDE,
    )
    log_retention_bytes: int = int64(
        -1,
        "Maximum size of a partition before old segments are deleted. Topics can override it.",
        importance=HIGH,
        update=CLUSTER_WIDE,
    )
    log_retention_check_interval_ms: int = int64(
        300_000, "Interval between checks for segments to delete.", at_least(1)
    )
    log_retention_hours: int = int32(168, "Retention time in hours; -1 is no limit.", importance=HIGH)
    log_retention_minutes: int | None = int32(
        None, "Retention time in minutes; overrides log.retention.hours.", importance=HIGH
    )
    log_retention_ms: int | None = int64(
        None,
        "Retention time; overrides log.retention.minutes and log.retention.hours. Topics can override it.",
        importance=HIGH,
        update=CLUSTER_WIDE,
    )
    log_roll_hours: int = int32(168, "Age in hours at which a new segment is rolled.", at_least(1), importance=HIGH)
    log_roll_jitter_hours: int = int32(
        0, "Maximum random jitter in hours, subtracted from log.roll.hours.", at_least(0), importance=HIGH
    )
    log_roll_jitter_ms: int | None = int64(
        None,
        "Maximum random jitter, subtracted from log.roll.ms. Topics can override it.",
        importance=HIGH,
        update=CLUSTER_WIDE,
    )
    log_roll_ms: int | None = int64(
        None,
        "Age at which a new segment is rolled; overrides log. Topics can override it.roll.hours.",
        importance=HIGH,
        update=CLUSTER_WIDE,
    )
    log_segment_bytes: int = int32(
        1_073_741_824,
        "Size at which a new segment is rolled. Topics can override it.",
        at_least(1_048_576),
        importance=HIGH,
        update=CLUSTER_WIDE,
    )
    log_segment_delete_delay_ms: int = int64(
        60_000,
        "How long a deleted segment stays on disk. Topics can override it.",
        at_least(0),
        importance=HIGH,
        update=CLUSTER_WIDE,
    )
    message_max_bytes: int = int32(
        1_048_588,
        "Maximum size of a record batch. Topics can override it.",
        at_least(0),
        importance=HIGH,
        update=CLUSTER_WIDE,
    )
    min_insync_replicas: int = int32(
        1,
        "Minimum number of in-sync replicas for acks=all. Topics can override it.",
        at_least(1),
        importance=HIGH,
        update=CLUSTER_WIDE,
    )
    num_partitions: int = int32(1, "Number of partitions of a topic that is created without one.", at_least(1))
    num_recovery_threads_per_data_dir: int = int32(
        2,
        "Number of threads per log directory for recovery at startup and flushing at shutdown.",
        at_least(1),
        importance=HIGH,
        update=CLUSTER_WIDE,
    )
