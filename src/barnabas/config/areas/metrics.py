"""Metrics and quota windows."""

from barnabas.config.areas.effect import NO_JMX
from barnabas.config.checks import at_least
from barnabas.config.setting import CLUSTER_WIDE, LOW, int32, int64, string, string_list
from barnabas.config.table import SettingsTable, settings_area


@settings_area
class MetricsSettings(SettingsTable):
    __slots__ = ()

    alter_log_dirs_replication_quota_window_num: int = int32(
        11,
        "Number of samples kept for the quota on moves between log directories.",
        at_least(1),
        importance=LOW,
    )
    alter_log_dirs_replication_quota_window_size_seconds: int = int32(
        1, "Time span of each sample.", at_least(1), importance=LOW
    )
    controller_quota_window_num: int = int32(
        11,
        "Number of samples kept for the controller mutation quota.",
        at_least(1),
        importance=LOW,
    )
    controller_quota_window_size_seconds: int = int32(1, "Time span of each sample.", at_least(1), importance=LOW)
    kafka_metrics_polling_interval_secs: int = int32(
        10, "How often metrics reporters poll.", at_least(1), importance=LOW, no_effect=NO_JMX
    )
    kafka_metrics_reporters: tuple[str, ...] = string_list(
        (), "Reporter classes of Yammer metrics.", importance=LOW, no_effect=NO_JMX
    )
    metric_reporters: tuple[str, ...] = string_list(
        ("org.apache.kafka.common.metrics.JmxReporter",),
        "Reporter classes of metrics.",
        importance=LOW,
        update=CLUSTER_WIDE,
        no_effect=NO_JMX,
    )
    metrics_num_samples: int = int32(
        2, "Number of samples used to compute metrics.", at_least(1), importance=LOW, no_effect=NO_JMX
    )
    metrics_recording_level: str = string("INFO", "Recording level of metrics.", importance=LOW, no_effect=NO_JMX)
    metrics_sample_window_ms: int = int64(
        30_000, "Time span of each sample.", at_least(1), importance=LOW, no_effect=NO_JMX
    )
    quota_window_num: int = int32(11, "Number of samples kept for the client quotas.", at_least(1), importance=LOW)
    quota_window_size_seconds: int = int32(1, "Time span of each sample.", at_least(1), importance=LOW)
    replication_quota_window_num: int = int32(
        11, "Number of samples kept for the replication quotas.", at_least(1), importance=LOW
    )
    replication_quota_window_size_seconds: int = int32(1, "Time span of each sample.", at_least(1), importance=LOW)
    telemetry_max_bytes: int = int32(
        1_048_576, "Maximum size of a client's telemetry push.", at_least(1), importance=LOW
    )
