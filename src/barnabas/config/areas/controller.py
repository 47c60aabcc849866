"""KRaft's controllers and metadata log. The metadata store replaces them here, so none has an effect."""

from barnabas.config.areas.effect import NO_QUORUM
from barnabas.config.checks import at_least
from barnabas.config.setting import HIGH, LOW, int32, int64, string, string_list
from barnabas.config.table import SettingsTable, settings_area


@settings_area
class ControllerSettings(SettingsTable):
    __slots__ = ()

    controller_listener_names: str | None = string(
        None, "Listeners of the controllers.", importance=HIGH, no_effect=NO_QUORUM
    )
    controller_performance_always_log_threshold_ms: int = int64(
        2000,
        "Controller events that take longer than this are always logged.",
        at_least(0),
        internal=True,
        no_effect=NO_QUORUM,
    )
    controller_performance_sample_period_ms: int = int64(
        60_000, "Interval of the controller's performance log.", at_least(100), internal=True, no_effect=NO_QUORUM
    )
    controller_quorum_append_linger_ms: int = int32(
        25, "How long the quorum leader collects records into one batch.", at_least(0), no_effect=NO_QUORUM
    )
    controller_quorum_bootstrap_servers: tuple[str, ...] = string_list(
        (), "Addresses used to find the quorum.", importance=HIGH, no_effect=NO_QUORUM
    )
    controller_quorum_election_backoff_max_ms: int = int32(
        1000, "Maximum delay before a new election.", at_least(0), importance=HIGH, no_effect=NO_QUORUM
    )
    controller_quorum_election_timeout_ms: int = int32(
        1000, "Maximum wait for votes.", at_least(0), importance=HIGH, no_effect=NO_QUORUM
    )
    controller_quorum_fetch_timeout_ms: int = int32(
        2000,
        "Time without contact to the leader before an election.",
        at_least(0),
        importance=HIGH,
        no_effect=NO_QUORUM,
    )
    controller_quorum_request_timeout_ms: int = int32(
        2000, "Timeout of requests inside the quorum.", at_least(0), no_effect=NO_QUORUM
    )
    controller_quorum_retry_backoff_ms: int = int32(
        20, "Delay before a request inside the quorum is retried.", at_least(0), importance=LOW, no_effect=NO_QUORUM
    )
    controller_quorum_voters: tuple[str, ...] = string_list(
        (), "Voters of the quorum as id@host:port.", importance=HIGH, no_effect=NO_QUORUM
    )
    internal_metadata_delete_delay_millis: int = int64(
        60_000, "How long removed metadata files stay on disk.", importance=LOW, internal=True, no_effect=NO_QUORUM
    )
    internal_metadata_log_segment_bytes: int | None = int32(
        None, "Segment size of the metadata log, for tests.", importance=LOW, internal=True, no_effect=NO_QUORUM
    )
    internal_metadata_max_batch_size_in_bytes: int = int32(
        8_388_608, "Maximum batch of the metadata log.", importance=LOW, internal=True, no_effect=NO_QUORUM
    )
    internal_metadata_max_fetch_size_in_bytes: int = int32(
        8_388_608, "Maximum fetch of the metadata log.", importance=LOW, internal=True, no_effect=NO_QUORUM
    )
    metadata_log_dir: str | None = string(None, "Directory of the metadata log.", importance=HIGH, no_effect=NO_QUORUM)
    metadata_log_max_record_bytes_between_snapshots: int = int64(
        20_971_520,
        "Number of bytes in the metadata log after which a snapshot is written.",
        at_least(1),
        importance=HIGH,
        no_effect=NO_QUORUM,
    )
    metadata_log_max_snapshot_interval_ms: int = int64(
        3_600_000, "Time after which a snapshot is written.", at_least(0), importance=HIGH, no_effect=NO_QUORUM
    )
    metadata_log_segment_bytes: int = int32(
        1_073_741_824, "Segment size of the metadata log.", at_least(8_388_608), importance=HIGH, no_effect=NO_QUORUM
    )
    metadata_log_segment_ms: int = int64(
        604_800_000, "Age at which a new segment of the metadata log is rolled.", importance=HIGH, no_effect=NO_QUORUM
    )
    metadata_max_idle_interval_ms: int = int32(
        500, "How often an idle controller writes a record.", at_least(0), importance=LOW, no_effect=NO_QUORUM
    )
    metadata_max_retention_bytes: int = int64(
        104_857_600,
        "Maximum size of the metadata log and snapshots before old ones are deleted.",
        importance=HIGH,
        no_effect=NO_QUORUM,
    )
    metadata_max_retention_ms: int = int64(
        604_800_000, "Time for which metadata log and snapshots are kept.", importance=HIGH, no_effect=NO_QUORUM
    )
