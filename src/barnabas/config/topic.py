"""Every topic setting of Kafka 4.1, and those of delayed messages.

Storage, the produce path and the housekeeping read a topic's settings from a `TopicConfig`. `TopicConfig.resolve`
combines the topic's own settings with the defaults of the broker.
"""

from collections.abc import Mapping
from typing import Any

from barnabas.config.areas.effect import NO_TIERS
from barnabas.config.broker import BrokerConfig
from barnabas.config.checks import THROTTLED_REPLICAS, TOPIC_NAME, at_least, between, each_of, either, one_of
from barnabas.config.faults import ConfigFaults, read_values, unknown_name
from barnabas.config.rules import topic_rules
from barnabas.config.setting import INT64_MAX, Setting, Synonym, boolean, double, int32, int64, string, string_list
from barnabas.config.table import SettingsTable, settings_table

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
WEEK_MS = 7 * 24 * HOUR_MS

COMPRESSION_TYPES = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
TIMESTAMP_TYPES = ("CreateTime", "LogAppendTime")


def named(*names: str | Synonym) -> tuple[Synonym, ...]:
    return tuple(name if isinstance(name, Synonym) else Synonym(name) for name in names)


@settings_table
class TopicConfig(SettingsTable):
    cleanup_policy: tuple[str, ...] = string_list(
        ("delete",),
        "Cleanup policy for old segments: delete by age and size, compact to the last value per key, or both.",
        each_of("compact", "delete"),
        synonyms=named("log.cleanup.policy"),
    )
    compression_gzip_level: int = int32(
        -1,
        "Compression level for gzip; -1 is gzip's default.",
        either(between(1, 9), -1),
        synonyms=named("compression.gzip.level"),
    )
    compression_lz4_level: int = int32(
        9,
        "Compression level for lz4.",
        between(1, 17),
        synonyms=named("compression.lz4.level"),
    )
    compression_type: str = string(
        "producer",
        "Compression of stored batches; producer keeps the producer's codec.",
        one_of(*COMPRESSION_TYPES),
        synonyms=named("compression.type"),
    )
    compression_zstd_level: int = int32(
        3,
        "Compression level for zstd.",
        between(-131072, 22),
        synonyms=named("compression.zstd.level"),
    )
    delay_max_ms: int = int64(
        30 * 24 * HOUR_MS,
        "Longest delay of a record in a topic with delay.target.topic; a record with a longer one is rejected.",
        at_least(1),
    )
    delay_target_topic: str | None = string(
        None,
        "Makes the topic an intake of delayed messages: its records are delivered to this topic when they are due.",
        TOPIC_NAME,
    )
    delete_retention_ms: int = int64(
        24 * HOUR_MS,
        "How long tombstones are kept in a compacted topic, so that a reader from the beginning sees them.",
        at_least(0),
        synonyms=named("log.cleaner.delete.retention.ms"),
    )
    file_delete_delay_ms: int = int64(
        60_000,
        "How long a deleted segment stays on disk under its .deleted name.",
        at_least(0),
        synonyms=named("log.segment.delete.delay.ms"),
    )
    flush_messages: int = int64(
        INT64_MAX,
        "Number of records after which the log is flushed to disk, before they are acknowledged.",
        at_least(1),
        synonyms=named("log.flush.interval.messages"),
    )
    flush_ms: int = int64(
        INT64_MAX,
        "Maximum time before a record is flushed to disk.",
        at_least(0),
        synonyms=named("log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
    )
    follower_replication_throttled_replicas: tuple[str, ...] = string_list(
        (), "Throttled replicas on the follower side, or * for all.", THROTTLED_REPLICAS
    )
    index_interval_bytes: int = int32(
        4096,
        "Bytes of log between two entries of the offset index.",
        at_least(0),
        synonyms=named("log.index.interval.bytes"),
    )
    internal_segment_bytes: int | None = int32(
        None, "Segment size below the minimum of segment.bytes, for tests.", at_least(14), internal=True
    )
    leader_replication_throttled_replicas: tuple[str, ...] = string_list(
        (),
        "Throttled replicas on the leader side, or * for all.",
        THROTTLED_REPLICAS,
    )
    local_retention_bytes: int = int64(
        -2,
        "Bytes kept on local disk; -2 uses retention.bytes.",
        at_least(-2),
        synonyms=named("log.local.retention.bytes"),
        no_effect=NO_TIERS,
    )
    local_retention_ms: int = int64(
        -2,
        "Time kept on local disk; -2 uses retention.ms.",
        at_least(-2),
        synonyms=named("log.local.retention.ms"),
        no_effect=NO_TIERS,
    )
    max_compaction_lag_ms: int = int64(
        INT64_MAX,
        "Maximum time that a record remains uncompacted.",
        at_least(1),
        synonyms=named("log.cleaner.max.compaction.lag.ms"),
    )
    max_message_bytes: int = int32(
        1_048_588,
        "Maximum size of a record batch, after compression.",
        at_least(0),
        synonyms=named("message.max.bytes"),
    )
    message_timestamp_after_max_ms: int = int64(
        HOUR_MS,
        "How far a CreateTime may be ahead of the broker's clock.",
        at_least(0),
        synonyms=named("log.message.timestamp.after.max.ms"),
    )
    message_timestamp_before_max_ms: int = int64(
        INT64_MAX,
        "How far a CreateTime may be behind the broker's clock.",
        at_least(0),
        synonyms=named("log.message.timestamp.before.max.ms"),
    )
    message_timestamp_type: str = string(
        "CreateTime",
        "Timestamp type of records: the producer's time (CreateTime) or the time of the append (LogAppendTime).",
        one_of(*TIMESTAMP_TYPES),
        synonyms=named("log.message.timestamp.type"),
    )
    min_cleanable_dirty_ratio: float = double(
        0.5,
        "Minimum ratio of uncompacted to total log for a compaction.",
        between(0, 1),
        synonyms=named("log.cleaner.min.cleanable.ratio"),
    )
    min_compaction_lag_ms: int = int64(
        0,
        "Minimum time that a record remains uncompacted.",
        at_least(0),
        synonyms=named("log.cleaner.min.compaction.lag.ms"),
    )
    min_insync_replicas: int = int32(
        1,
        "Minimum number of in-sync replicas for acks=all to succeed.",
        at_least(1),
        synonyms=named("min.insync.replicas"),
    )
    preallocate: bool = boolean(
        False,
        "Whether the file of a new segment is preallocated.",
        synonyms=named("log.preallocate"),
    )
    remote_log_copy_disable: bool = boolean(
        False, "Whether tiered data becomes read-only and nothing more is uploaded.", no_effect=NO_TIERS
    )
    remote_log_delete_on_disable: bool = boolean(
        False, "Whether disabling tiered storage deletes the tiered data.", no_effect=NO_TIERS
    )
    remote_storage_enable: bool = boolean(False, "Whether the topic is tiered.", no_effect=NO_TIERS)
    retention_bytes: int = int64(
        -1,
        "Maximum size of a partition before its oldest segments are deleted; negative is no limit.",
        synonyms=named("log.retention.bytes"),
    )
    retention_ms: int = int64(
        WEEK_MS,
        "Retention time after which segments are deleted; -1 is no limit.",
        at_least(-1),
        synonyms=named(
            "log.retention.ms", Synonym("log.retention.minutes", MINUTE_MS), Synonym("log.retention.hours", HOUR_MS)
        ),
    )
    segment_bytes: int = int32(
        1 << 30,
        "Size at which a new segment is rolled.",
        at_least(1 << 20),
        synonyms=named("log.segment.bytes"),
    )
    segment_index_bytes: int = int32(
        10 << 20,
        "Maximum size of a segment's index; a full index rolls a new segment.",
        at_least(4),
        synonyms=named("log.index.size.max.bytes"),
    )
    segment_jitter_ms: int = int64(
        0,
        "Maximum random jitter, subtracted from segment.ms so that segments do not all roll at once.",
        at_least(0),
        synonyms=named("log.roll.jitter.ms", Synonym("log.roll.jitter.hours", HOUR_MS)),
    )
    segment_ms: int = int64(
        WEEK_MS,
        "Age at which a new segment is rolled even if the current one is not full.",
        at_least(1),
        synonyms=named("log.roll.ms", Synonym("log.roll.hours", HOUR_MS)),
    )
    unclean_leader_election_enable: bool = boolean(
        False,
        "Whether a replica outside the ISR may become leader as a last resort; records may be lost.",
        synonyms=named("unclean.leader.election.enable"),
    )

    @classmethod
    def resolve(cls, overrides: Mapping[str, str], broker: BrokerConfig) -> "TopicConfig":
        """The effective settings of a topic; raises ConfigFaults with every fault of the overrides."""
        values, faults = read_values(cls.settings, overrides)
        faults += [unknown_name(name, cls.settings, "topic setting") for name in overrides if name not in cls.settings]
        config = cls(**{**topic_defaults(broker), **values})
        faults += topic_rules(config)
        if faults:
            raise ConfigFaults(faults)
        if config.internal_segment_bytes is not None:
            return config.replace(segment_bytes=config.internal_segment_bytes)
        return config


def topic_defaults(broker: BrokerConfig) -> dict[str, Any]:
    """Field -> value for each topic setting that has a broker default."""
    return {setting.field: inherited(setting, broker) for setting in TopicConfig.settings.values() if setting.synonyms}


def inherited(setting: Setting, broker: BrokerConfig) -> Any:
    """The first of the broker's synonyms that has a value; hours and minutes become milliseconds, negative is -1."""
    for name, factor in setting.synonyms:
        value = getattr(broker, name.replace(".", "_"))
        if value is not None:
            return value if factor == 1 else max(-1, value * factor)
    return setting.default
