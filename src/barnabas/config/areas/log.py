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
        None, "Class that may refuse a change of settings.", importance=LOW, no_effect=NO_PLUGINS
    )
    auto_create_topics_enable: bool = boolean(
        True, "Whether a metadata request for an unknown topic creates it.", importance=HIGH
    )
    compression_gzip_level: int = int32(
        -1,
        "Level when the broker compresses with gzip; -1 is gzip's own default.",
        either(between(1, 9), -1),
        update=CLUSTER_WIDE,
    )
    compression_lz4_level: int = int32(
        9, "Level when the broker compresses with lz4.", between(1, 17), update=CLUSTER_WIDE
    )
    compression_type: str = string(
        "producer",
        "Compression of stored batches where a topic does not say; producer keeps them as sent.",
        one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"),
        importance=HIGH,
        update=CLUSTER_WIDE,
    )
    compression_zstd_level: int = int32(
        3, "Level when the broker compresses with zstd.", between(-131_072, 22), update=CLUSTER_WIDE
    )
    create_topic_policy_class_name: str | None = class_name(
        None, "Class that may refuse the creation of a topic.", importance=LOW, no_effect=NO_PLUGINS
    )
    default_replication_factor: int = int32(1, "Replicas of a topic that is created without saying how many.")
    delete_topic_enable: bool = boolean(True, "Whether topics may be deleted.", importance=HIGH)
    log_cleaner_backoff_ms: int = int64(
        15_000, "Pause of the cleaner when there is nothing to compact.", at_least(0), update=CLUSTER_WIDE
    )
    log_cleaner_dedupe_buffer_size: int = int64(
        134_217_728, "Memory for the keys of one compaction, over all cleaner threads.", update=CLUSTER_WIDE
    )
    log_cleaner_delete_retention_ms: int = int64(
        86_400_000,
        "How long a compacted topic keeps tombstones, where a topic does not say.",
        at_least(0),
        update=CLUSTER_WIDE,
    )
    log_cleaner_enable: bool = boolean(True, "Whether topics are compacted at all.")
    log_cleaner_io_buffer_load_factor: float = double(
        0.9, "How full the cleaner's table of keys may get.", update=CLUSTER_WIDE
    )
    log_cleaner_io_buffer_size: int = int32(
        524_288,
        "Memory for reading and writing in compaction, over all cleaner threads.",
        at_least(0),
        update=CLUSTER_WIDE,
        no_effect=OWN_READS,
    )
    log_cleaner_io_max_bytes_per_second: float = double(
        DOUBLE_MAX, "Bytes per second that compaction may read and write.", update=CLUSTER_WIDE
    )
    log_cleaner_max_compaction_lag_ms: int = int64(
        INT64_MAX,
        "Longest time that a record may stay uncompacted, where a topic does not say.",
        at_least(1),
        update=CLUSTER_WIDE,
    )
    log_cleaner_min_cleanable_ratio: float = double(
        0.5,
        "Uncompacted share at which a log is compacted, where a topic does not say.",
        between(0, 1),
        update=CLUSTER_WIDE,
    )
    log_cleaner_min_compaction_lag_ms: int = int64(
        0,
        "Shortest time that a record stays uncompacted, where a topic does not say.",
        at_least(0),
        update=CLUSTER_WIDE,
    )
    log_cleaner_threads: int = int32(1, "Threads that compact.", at_least(0), update=CLUSTER_WIDE)
    log_cleanup_policy: tuple[str, ...] = string_list(
        ("delete",),
        "What happens to old segments (delete, compact), where a topic does not say.",
        each_of("compact", "delete"),
        update=CLUSTER_WIDE,
    )
    log_dir_failure_timeout_ms: int = int64(
        30_000,
        "Time in which a failed log directory must be reported before the broker stops.",
        at_least(1),
        importance=LOW,
        no_effect=NO_QUORUM,
    )
    log_dirs: str | None = string(None, "Folders of the logs, separated by commas.", importance=HIGH)
    log_dir: str = string("/tmp/kafka-logs", "Folder of the logs, where log.dirs is not given.", importance=HIGH)
    log_flush_interval_messages: int = int64(
        INT64_MAX,
        "Records after which a log is flushed, where a topic does not say.",
        at_least(1),
        importance=HIGH,
        update=CLUSTER_WIDE,
    )
    log_flush_interval_ms: int | None = int64(
        None,
        "Longest time that records stay unflushed, where a topic does not say.",
        importance=HIGH,
        update=CLUSTER_WIDE,
    )
    log_flush_offset_checkpoint_interval_ms: int = int32(
        60_000, "How often the recovery point is written.", at_least(0), importance=HIGH
    )
    log_flush_scheduler_interval_ms: int = int64(
        INT64_MAX, "How often to look for logs that must be flushed.", importance=HIGH
    )
    log_flush_start_offset_checkpoint_interval_ms: int = int32(
        60_000, "How often the log start offsets are written.", at_least(0), importance=HIGH
    )
    log_index_interval_bytes: int = int32(
        4096,
        "Bytes between two entries of the offset index, where a topic does not say.",
        at_least(0),
        update=CLUSTER_WIDE,
    )
    log_index_size_max_bytes: int = int32(
        10_485_760, "Largest size of an index, where a topic does not say.", at_least(4), update=CLUSTER_WIDE
    )
    log_initial_task_delay_ms: int = int64(
        30_000,
        "Delay before the periodic work on logs begins.",
        at_least(0),
        importance=LOW,
        internal=True,
        no_effect=OWN_PACE,
    )
    log_local_retention_bytes: int = int64(
        -2,
        "Bytes kept on local disk; -2 follows log.retention.bytes.",
        at_least(-2),
        update=CLUSTER_WIDE,
        no_effect=NO_TIERS,
    )
    log_local_retention_ms: int = int64(
        -2,
        "Time kept on local disk; -2 follows log.retention.ms.",
        at_least(-2),
        update=CLUSTER_WIDE,
        no_effect=NO_TIERS,
    )
    log_message_timestamp_after_max_ms: int = int64(
        3_600_000,
        "How far ahead of the clock a CreateTime may be, where a topic does not say.",
        at_least(0),
        update=CLUSTER_WIDE,
    )
    log_message_timestamp_before_max_ms: int = int64(
        INT64_MAX,
        "How far behind the clock a CreateTime may be, where a topic does not say.",
        at_least(0),
        update=CLUSTER_WIDE,
    )
    log_message_timestamp_type: str = string(
        "CreateTime",
        "Whose time a record carries (CreateTime, LogAppendTime), where a topic does not say.",
        one_of("CreateTime", "LogAppendTime"),
        update=CLUSTER_WIDE,
    )
    log_preallocate: bool = boolean(
        False,
        "Whether a new segment's file gets its full size at once, where a topic does not say.",
        update=CLUSTER_WIDE,
    )
    log_retention_bytes: int = int64(
        -1, "Bytes a partition may hold, where a topic does not say.", importance=HIGH, update=CLUSTER_WIDE
    )
    log_retention_check_interval_ms: int = int64(300_000, "How often to look for segments to delete.", at_least(1))
    log_retention_hours: int = int32(
        168, "Age in hours at which segments are deleted; -1 is no limit.", importance=HIGH
    )
    log_retention_minutes: int | None = int32(
        None, "Age in minutes at which segments are deleted; goes before log.retention.hours.", importance=HIGH
    )
    log_retention_ms: int | None = int64(
        None,
        "Age at which segments are deleted, where a topic does not say; goes before minutes and hours.",
        importance=HIGH,
        update=CLUSTER_WIDE,
    )
    log_roll_hours: int = int32(168, "Age in hours at which a new segment is begun.", at_least(1), importance=HIGH)
    log_roll_jitter_hours: int = int32(
        0, "Random part in hours taken off log.roll.hours.", at_least(0), importance=HIGH
    )
    log_roll_jitter_ms: int | None = int64(
        None, "Random part taken off log.roll.ms, where a topic does not say.", importance=HIGH, update=CLUSTER_WIDE
    )
    log_roll_ms: int | None = int64(
        None,
        "Age at which a new segment is begun, where a topic does not say; goes before log.roll.hours.",
        importance=HIGH,
        update=CLUSTER_WIDE,
    )
    log_segment_bytes: int = int32(
        1_073_741_824,
        "Size at which a new segment is begun, where a topic does not say.",
        at_least(1_048_576),
        importance=HIGH,
        update=CLUSTER_WIDE,
    )
    log_segment_delete_delay_ms: int = int64(
        60_000,
        "How long a removed segment stays on disk, where a topic does not say.",
        at_least(0),
        importance=HIGH,
        update=CLUSTER_WIDE,
    )
    message_max_bytes: int = int32(
        1_048_588,
        "Largest record batch that is accepted, where a topic does not say.",
        at_least(0),
        importance=HIGH,
        update=CLUSTER_WIDE,
    )
    min_insync_replicas: int = int32(
        1,
        "Replicas that must be in sync for acks=all, where a topic does not say.",
        at_least(1),
        importance=HIGH,
        update=CLUSTER_WIDE,
    )
    num_partitions: int = int32(1, "Partitions of a topic that is created without saying how many.", at_least(1))
    num_recovery_threads_per_data_dir: int = int32(
        2,
        "Threads per log directory that recover logs at start and flush them at stop.",
        at_least(1),
        importance=HIGH,
        update=CLUSTER_WIDE,
    )
