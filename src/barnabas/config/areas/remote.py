"""Tiered storage, which is not supported: the settings are accepted without effect."""

from barnabas.config.areas.effect import NO_TIERS
from barnabas.config.checks import NOT_EMPTY, at_least, between
from barnabas.config.setting import CLUSTER_WIDE, INT64_MAX, LOW, boolean, double, int32, int64, string
from barnabas.config.table import SettingsTable, settings_area


@settings_area
class RemoteSettings(SettingsTable):
    __slots__ = ()

    remote_fetch_max_wait_ms: int = int32(
        500, "Maximum wait for a read from the remote tier.", at_least(1), update=CLUSTER_WIDE, no_effect=NO_TIERS
    )
    remote_list_offsets_request_timeout_ms: int = int64(
        30_000, "Maximum wait for offsets from the remote tier.", at_least(1), update=CLUSTER_WIDE, no_effect=NO_TIERS
    )
    remote_log_index_file_cache_total_size_bytes: int = int64(
        1_073_741_824,
        "Disk space for the cache of remote indexes.",
        at_least(1),
        importance=LOW,
        update=CLUSTER_WIDE,
        no_effect=NO_TIERS,
    )
    remote_log_manager_copier_thread_pool_size: int = int32(
        10,
        "Number of threads that copy segments to the remote tier.",
        at_least(1),
        update=CLUSTER_WIDE,
        no_effect=NO_TIERS,
    )
    remote_log_manager_copy_max_bytes_per_second: int = int64(
        INT64_MAX,
        "Maximum rate of copies to the remote tier, in bytes per second.",
        at_least(1),
        update=CLUSTER_WIDE,
        no_effect=NO_TIERS,
    )
    remote_log_manager_copy_quota_window_num: int = int32(
        11, "Number of samples kept for the copy quota.", at_least(1), no_effect=NO_TIERS
    )
    remote_log_manager_copy_quota_window_size_seconds: int = int32(
        1, "Time span of each sample.", at_least(1), no_effect=NO_TIERS
    )
    remote_log_manager_expiration_thread_pool_size: int = int32(
        10,
        "Number of threads that delete expired remote segments.",
        at_least(1),
        update=CLUSTER_WIDE,
        no_effect=NO_TIERS,
    )
    remote_log_manager_fetch_max_bytes_per_second: int = int64(
        INT64_MAX,
        "Maximum rate of reads from the remote tier, in bytes per second.",
        at_least(1),
        update=CLUSTER_WIDE,
        no_effect=NO_TIERS,
    )
    remote_log_manager_fetch_quota_window_num: int = int32(
        11, "Number of samples kept for the fetch quota.", at_least(1), no_effect=NO_TIERS
    )
    remote_log_manager_fetch_quota_window_size_seconds: int = int32(
        1, "Time span of each sample.", at_least(1), no_effect=NO_TIERS
    )
    remote_log_manager_task_interval_ms: int = int64(
        30_000, "How often the tasks of the remote tier run.", at_least(1), importance=LOW, no_effect=NO_TIERS
    )
    remote_log_manager_task_retry_backoff_max_ms: int = int64(
        30_000,
        "Maximum delay before a failed task is retried.",
        at_least(1),
        importance=LOW,
        internal=True,
        no_effect=NO_TIERS,
    )
    remote_log_manager_task_retry_backoff_ms: int = int64(
        500,
        "Initial delay before a failed task is retried.",
        at_least(1),
        importance=LOW,
        internal=True,
        no_effect=NO_TIERS,
    )
    remote_log_manager_task_retry_jitter: float = double(
        0.2, "Jitter of the retry delay.", between(0, 0.5), importance=LOW, internal=True, no_effect=NO_TIERS
    )
    remote_log_manager_thread_pool_size: int = int32(
        2, "Number of threads for the tasks of followers.", at_least(1), no_effect=NO_TIERS
    )
    remote_log_metadata_custom_metadata_max_bytes: int = int32(
        128, "Maximum size of custom metadata of a remote segment.", at_least(0), importance=LOW, no_effect=NO_TIERS
    )
    remote_log_metadata_manager_class_name: str = string(
        "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager",
        "Class that manages the metadata of remote segments.",
        NOT_EMPTY,
        no_effect=NO_TIERS,
    )
    remote_log_metadata_manager_class_path: str | None = string(
        None, "Where the metadata class is loaded from.", no_effect=NO_TIERS
    )
    remote_log_metadata_manager_impl_prefix: str = string(
        "rlmm.config.", "Prefix of the settings for the metadata class.", NOT_EMPTY, no_effect=NO_TIERS
    )
    remote_log_metadata_manager_listener_name: str | None = string(
        None, "Listener that the metadata class connects to.", NOT_EMPTY, no_effect=NO_TIERS
    )
    remote_log_reader_max_pending_tasks: int = int32(
        100, "Maximum number of queued remote reads.", at_least(1), no_effect=NO_TIERS
    )
    remote_log_reader_threads: int = int32(
        10, "Number of threads that read from the remote tier.", at_least(1), update=CLUSTER_WIDE, no_effect=NO_TIERS
    )
    remote_log_storage_manager_class_name: str | None = string(
        None, "Class that stores remote segments.", NOT_EMPTY, no_effect=NO_TIERS
    )
    remote_log_storage_manager_class_path: str | None = string(
        None, "Where the storage class is loaded from.", no_effect=NO_TIERS
    )
    remote_log_storage_manager_impl_prefix: str = string(
        "rsm.config.", "Prefix of the settings for the storage class.", NOT_EMPTY, no_effect=NO_TIERS
    )
    remote_log_storage_system_enable: bool = boolean(False, "Whether tiered storage is enabled.", no_effect=NO_TIERS)
