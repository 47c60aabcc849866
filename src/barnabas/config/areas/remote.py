"""Tiered storage, which is not built: every setting is known, none has an effect."""

from barnabas.config.areas.effect import NO_TIERS
from barnabas.config.checks import NOT_EMPTY, at_least, between
from barnabas.config.setting import CLUSTER_WIDE, INT64_MAX, LOW, boolean, double, int32, int64, string
from barnabas.config.table import SettingsTable, settings_area


@settings_area
class RemoteSettings(SettingsTable):
    __slots__ = ()

    remote_fetch_max_wait_ms: int = int32(
        500, "Longest wait for a read from the remote tier.", at_least(1), update=CLUSTER_WIDE, no_effect=NO_TIERS
    )
    remote_list_offsets_request_timeout_ms: int = int64(
        30_000, "Longest wait for offsets from the remote tier.", at_least(1), update=CLUSTER_WIDE, no_effect=NO_TIERS
    )
    remote_log_index_file_cache_total_size_bytes: int = int64(
        1_073_741_824,
        "Disk space for cached remote indexes.",
        at_least(1),
        importance=LOW,
        update=CLUSTER_WIDE,
        no_effect=NO_TIERS,
    )
    remote_log_manager_copier_thread_pool_size: int = int32(
        10, "Threads that copy segments to the remote tier.", at_least(1), update=CLUSTER_WIDE, no_effect=NO_TIERS
    )
    remote_log_manager_copy_max_bytes_per_second: int = int64(
        INT64_MAX,
        "Bytes per second that may be copied to the remote tier.",
        at_least(1),
        update=CLUSTER_WIDE,
        no_effect=NO_TIERS,
    )
    remote_log_manager_copy_quota_window_num: int = int32(
        11, "Samples of the copy quota.", at_least(1), no_effect=NO_TIERS
    )
    remote_log_manager_copy_quota_window_size_seconds: int = int32(
        1, "Length of one such sample.", at_least(1), no_effect=NO_TIERS
    )
    remote_log_manager_expiration_thread_pool_size: int = int32(
        10, "Threads that delete expired remote segments.", at_least(1), update=CLUSTER_WIDE, no_effect=NO_TIERS
    )
    remote_log_manager_fetch_max_bytes_per_second: int = int64(
        INT64_MAX,
        "Bytes per second that may be read from the remote tier.",
        at_least(1),
        update=CLUSTER_WIDE,
        no_effect=NO_TIERS,
    )
    remote_log_manager_fetch_quota_window_num: int = int32(
        11, "Samples of the fetch quota.", at_least(1), no_effect=NO_TIERS
    )
    remote_log_manager_fetch_quota_window_size_seconds: int = int32(
        1, "Length of one such sample.", at_least(1), no_effect=NO_TIERS
    )
    remote_log_manager_task_interval_ms: int = int64(
        30_000, "How often the tasks of the remote tier run.", at_least(1), importance=LOW, no_effect=NO_TIERS
    )
    remote_log_manager_task_retry_backoff_max_ms: int = int64(
        30_000,
        "Longest pause before such a task is repeated.",
        at_least(1),
        importance=LOW,
        internal=True,
        no_effect=NO_TIERS,
    )
    remote_log_manager_task_retry_backoff_ms: int = int64(
        500,
        "First pause before such a task is repeated.",
        at_least(1),
        importance=LOW,
        internal=True,
        no_effect=NO_TIERS,
    )
    remote_log_manager_task_retry_jitter: float = double(
        0.2, "Random share of that pause.", between(0, 0.5), importance=LOW, internal=True, no_effect=NO_TIERS
    )
    remote_log_manager_thread_pool_size: int = int32(
        2, "Threads for the tasks of followers.", at_least(1), no_effect=NO_TIERS
    )
    remote_log_metadata_custom_metadata_max_bytes: int = int32(
        128, "Largest text a remote store may attach to a segment.", at_least(0), importance=LOW, no_effect=NO_TIERS
    )
    remote_log_metadata_manager_class_name: str = string(
        "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager",
        "Class that keeps the metadata of remote segments.",
        NOT_EMPTY,
        no_effect=NO_TIERS,
    )
    remote_log_metadata_manager_class_path: str | None = string(
        None, "Where that class is loaded from.", no_effect=NO_TIERS
    )
    remote_log_metadata_manager_impl_prefix: str = string(
        "rlmm.config.", "Prefix of the settings for that class.", NOT_EMPTY, no_effect=NO_TIERS
    )
    remote_log_metadata_manager_listener_name: str | None = string(
        None, "Listener that class connects to.", NOT_EMPTY, no_effect=NO_TIERS
    )
    remote_log_reader_max_pending_tasks: int = int32(
        100, "Remote reads that may wait.", at_least(1), no_effect=NO_TIERS
    )
    remote_log_reader_threads: int = int32(
        10, "Threads that read from the remote tier.", at_least(1), update=CLUSTER_WIDE, no_effect=NO_TIERS
    )
    remote_log_storage_manager_class_name: str | None = string(
        None, "Class that stores remote segments.", NOT_EMPTY, no_effect=NO_TIERS
    )
    remote_log_storage_manager_class_path: str | None = string(
        None, "Where that class is loaded from.", no_effect=NO_TIERS
    )
    remote_log_storage_manager_impl_prefix: str = string(
        "rsm.config.", "Prefix of the settings for that class.", NOT_EMPTY, no_effect=NO_TIERS
    )
    remote_log_storage_system_enable: bool = boolean(False, "Whether tiered storage is on.", no_effect=NO_TIERS)
