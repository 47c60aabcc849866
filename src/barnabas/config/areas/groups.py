"""Groups and committed offsets: consumer, streams and share groups, and the coordinators' own topics."""

from barnabas.config.areas.effect import AT_ONCE, NO_SHARE, NO_STREAMS, ON_CHANGE, ONE_LOOP
from barnabas.config.checks import at_least, between, one_of_any_case, some_of
from barnabas.config.setting import HIGH, INT32_MAX, LOW, boolean, int16, int32, int64, string, string_list
from barnabas.config.table import SettingsTable, settings_area


@settings_area
class GroupsSettings(SettingsTable):
    __slots__ = ()

    group_consumer_assignors: tuple[str, ...] = string_list(
        ("uniform", "range"), "Server-side assignors for consumer groups; the first is the default."
    )
    group_consumer_heartbeat_interval_ms: int = int32(
        5000, "Heartbeat interval of consumer group members.", at_least(1)
    )
    group_consumer_max_heartbeat_interval_ms: int = int32(
        15_000, "Maximum heartbeat interval that a consumer group may set.", at_least(1)
    )
    group_consumer_max_session_timeout_ms: int = int32(
        60_000, "Maximum session timeout that a consumer group may set.", at_least(1)
    )
    group_consumer_max_size: int = int32(INT32_MAX, "Maximum number of members of a consumer group.", at_least(1))
    group_consumer_migration_policy: str = string(
        "bidirectional",
        "Allowed migrations between the classic and the consumer group protocol.",
        one_of_any_case("DISABLED", "DOWNGRADE", "UPGRADE", "BIDIRECTIONAL"),
    )
    group_consumer_min_heartbeat_interval_ms: int = int32(
        5000, "Minimum heartbeat interval that a consumer group may set.", at_least(1)
    )
    group_consumer_min_session_timeout_ms: int = int32(
        45_000, "Minimum session timeout that a consumer group may set.", at_least(1)
    )
    group_consumer_regex_refresh_interval_ms: int = int32(
        600_000,
        "How often subscriptions by regular expression are resolved again.",
        at_least(10_000),
        internal=True,
        no_effect=ON_CHANGE,
    )
    group_consumer_session_timeout_ms: int = int32(
        45_000, "Time without a heartbeat after which a consumer group member is removed.", at_least(1)
    )
    group_coordinator_append_linger_ms: int = int32(
        5, "How long the coordinator collects records into one batch.", at_least(0), no_effect=AT_ONCE
    )
    group_coordinator_rebalance_protocols: tuple[str, ...] = string_list(
        ("classic", "consumer", "streams"),
        "Enabled group protocols.",
        some_of("consumer", "classic", "share", "streams"),
    )
    group_coordinator_threads: int = int32(
        4, "Number of threads of the group coordinator.", at_least(1), importance=HIGH, no_effect=ONE_LOOP
    )
    group_initial_rebalance_delay_ms: int = int32(
        3000, "How long an empty classic group waits for more members before its first rebalance."
    )
    group_max_session_timeout_ms: int = int32(1_800_000, "Maximum session timeout of a classic group member.")
    group_max_size: int = int32(INT32_MAX, "Maximum number of members of a classic group.", at_least(1))
    group_min_session_timeout_ms: int = int32(6000, "Minimum session timeout of a classic group member.")
    group_share_assignors: tuple[str, ...] = string_list(("simple",), "Assignors for share groups.", no_effect=NO_SHARE)
    group_share_delivery_count_limit: int = int32(
        5, "Maximum number of delivery attempts of a record.", between(2, 10), no_effect=NO_SHARE
    )
    group_share_enable: bool = boolean(False, "Whether share groups are enabled.", internal=True, no_effect=NO_SHARE)
    group_share_heartbeat_interval_ms: int = int32(
        5000, "Heartbeat interval of share group members.", at_least(1), no_effect=NO_SHARE
    )
    group_share_max_heartbeat_interval_ms: int = int32(
        15_000, "Maximum heartbeat interval that a share group may set.", at_least(1), no_effect=NO_SHARE
    )
    group_share_max_record_lock_duration_ms: int = int32(
        60_000, "Maximum time for which a member may lock a record.", between(30_000, 3_600_000), no_effect=NO_SHARE
    )
    group_share_max_session_timeout_ms: int = int32(
        60_000, "Maximum session timeout that a share group may set.", at_least(1), no_effect=NO_SHARE
    )
    group_share_max_share_sessions: int = int32(
        2000, "Maximum number of cached share sessions.", at_least(1), no_effect=NO_SHARE
    )
    group_share_max_size: int = int32(
        200, "Maximum number of members of a share group.", between(1, 1000), no_effect=NO_SHARE
    )
    group_share_min_heartbeat_interval_ms: int = int32(
        5000, "Minimum heartbeat interval that a share group may set.", at_least(1), no_effect=NO_SHARE
    )
    group_share_min_record_lock_duration_ms: int = int32(
        15_000, "Minimum time for which a member may lock a record.", between(1000, 30_000), no_effect=NO_SHARE
    )
    group_share_min_session_timeout_ms: int = int32(
        45_000, "Minimum session timeout that a share group may set.", at_least(1), no_effect=NO_SHARE
    )
    group_share_partition_max_record_locks: int = int32(
        2000, "Maximum number of locked records per partition.", between(100, 10_000), no_effect=NO_SHARE
    )
    group_share_persister_class_name: str = string(
        "org.apache.kafka.server.share.persister.DefaultStatePersister",
        "Class that stores the state of share groups.",
        internal=True,
        no_effect=NO_SHARE,
    )
    group_share_record_lock_duration_ms: int = int32(
        30_000, "How long a member locks a record that it received.", between(1000, 3_600_000), no_effect=NO_SHARE
    )
    group_share_session_timeout_ms: int = int32(
        45_000, "Time without a heartbeat after which a share group member is removed.", at_least(1), no_effect=NO_SHARE
    )
    group_streams_heartbeat_interval_ms: int = int32(
        5000, "Heartbeat interval of streams group members.", at_least(1), no_effect=NO_STREAMS
    )
    group_streams_max_heartbeat_interval_ms: int = int32(
        15_000, "Maximum heartbeat interval that a streams group may set.", at_least(1), no_effect=NO_STREAMS
    )
    group_streams_max_session_timeout_ms: int = int32(
        60_000, "Maximum session timeout that a streams group may set.", at_least(1), no_effect=NO_STREAMS
    )
    group_streams_max_size: int = int32(
        INT32_MAX, "Maximum number of members of a streams group.", at_least(1), no_effect=NO_STREAMS
    )
    group_streams_max_standby_replicas: int = int32(
        2, "Maximum number of standby replicas that a streams group may set.", at_least(0), no_effect=NO_STREAMS
    )
    group_streams_min_heartbeat_interval_ms: int = int32(
        5000, "Minimum heartbeat interval that a streams group may set.", at_least(1), no_effect=NO_STREAMS
    )
    group_streams_min_session_timeout_ms: int = int32(
        45_000, "Minimum session timeout that a streams group may set.", at_least(1), no_effect=NO_STREAMS
    )
    group_streams_num_standby_replicas: int = int32(
        0, "Number of standby replicas per task.", at_least(0), no_effect=NO_STREAMS
    )
    group_streams_session_timeout_ms: int = int32(
        45_000,
        "Time without a heartbeat after which a streams group member is removed.",
        at_least(1),
        no_effect=NO_STREAMS,
    )
    offset_metadata_max_bytes: int = int32(4096, "Maximum size of the metadata of a committed offset.", importance=HIGH)
    offsets_commit_timeout_ms: int = int32(
        5000, "Maximum wait for an offset commit to be replicated.", at_least(1), importance=HIGH
    )
    offsets_load_buffer_size: int = int32(
        5_242_880,
        "Number of bytes read at once when the coordinator loads its state.",
        at_least(1),
        importance=HIGH,
    )
    offsets_retention_check_interval_ms: int = int64(
        600_000, "Interval between checks for expired offsets.", at_least(1), importance=HIGH
    )
    offsets_retention_minutes: int = int32(
        10_080,
        "How long the offsets of a group without members are kept.",
        at_least(1),
        importance=HIGH,
    )
    offsets_topic_compression_codec: int = int32(
        0, "Compression of the offsets topic, by Kafka's codec number.", importance=HIGH
    )
    offsets_topic_num_partitions: int = int32(
        50, "Number of partitions of the offsets topic.", at_least(1), importance=HIGH
    )
    offsets_topic_replication_factor: int = int16(
        3, "Replication factor of the offsets topic.", at_least(1), importance=HIGH
    )
    offsets_topic_segment_bytes: int = int32(
        104_857_600, "Segment size of the offsets topic.", at_least(1), importance=HIGH
    )
    share_coordinator_append_linger_ms: int = int32(
        5, "How long the share coordinator collects records into one batch.", at_least(0), no_effect=NO_SHARE
    )
    share_coordinator_cold_partition_snapshot_interval_ms: int = int32(
        300_000,
        "How often inactive share partitions are written to the log.",
        at_least(1),
        importance=LOW,
        internal=True,
        no_effect=NO_SHARE,
    )
    share_coordinator_load_buffer_size: int = int32(
        5_242_880,
        "Number of bytes read at once when the share coordinator loads its state.",
        at_least(1),
        importance=HIGH,
        no_effect=NO_SHARE,
    )
    share_coordinator_snapshot_update_records_per_snapshot: int = int32(
        500, "Number of updates between two snapshots of a share partition.", at_least(0), no_effect=NO_SHARE
    )
    share_coordinator_state_topic_compression_codec: int = int32(
        0, "Compression of the share state topic, by Kafka's codec number.", importance=HIGH, no_effect=NO_SHARE
    )
    share_coordinator_state_topic_min_isr: int = int16(
        2, "min.insync.replicas of the share state topic.", at_least(1), importance=HIGH, no_effect=NO_SHARE
    )
    share_coordinator_state_topic_num_partitions: int = int32(
        50, "Number of partitions of the share state topic.", at_least(1), importance=HIGH, no_effect=NO_SHARE
    )
    share_coordinator_state_topic_prune_interval_ms: int = int32(
        300_000,
        "How often the share state topic is pruned.",
        at_least(1),
        importance=LOW,
        internal=True,
        no_effect=NO_SHARE,
    )
    share_coordinator_state_topic_replication_factor: int = int16(
        3, "Replication factor of the share state topic.", at_least(1), importance=HIGH, no_effect=NO_SHARE
    )
    share_coordinator_state_topic_segment_bytes: int = int32(
        104_857_600, "Segment size of the share state topic.", at_least(1), importance=HIGH, no_effect=NO_SHARE
    )
    share_coordinator_threads: int = int32(
        1, "Number of threads of the share coordinator.", at_least(1), no_effect=NO_SHARE
    )
    share_coordinator_write_timeout_ms: int = int32(
        5000, "Maximum wait for a write of the share coordinator.", at_least(1), importance=HIGH, no_effect=NO_SHARE
    )
    share_fetch_purgatory_purge_interval_requests: int = int32(
        1000, "Number of requests after which the share fetch purgatory is purged.", no_effect=NO_SHARE
    )
