"""Limits of a broker that can be set only while it runs, not in its file (Kafka's dynamic-only settings)."""

from collections.abc import Mapping

from barnabas.config.checks import at_least
from barnabas.config.faults import read_values
from barnabas.config.setting import CLUSTER_WIDE, INT64_MAX, int64
from barnabas.config.table import SettingsTable, settings_table

UNLIMITED = INT64_MAX


@settings_table
class BrokerQuotas(SettingsTable):
    follower_replication_throttled_rate: int = int64(
        UNLIMITED,
        "Bytes per second that the broker fetches at most for replicas in follower.replication.throttled.replicas.",
        at_least(0),
        update=CLUSTER_WIDE,
    )
    leader_replication_throttled_rate: int = int64(
        UNLIMITED,
        "Bytes per second that the broker sends at most for replicas in leader.replication.throttled.replicas.",
        at_least(0),
        update=CLUSTER_WIDE,
    )
    replica_alter_log_dirs_io_max_bytes_per_second: int = int64(
        UNLIMITED,
        "Bytes per second that are moved at most between log directories.",
        at_least(0),
        update=CLUSTER_WIDE,
    )

    @classmethod
    def resolve(cls, default: Mapping[str, str], own: Mapping[str, str]) -> "BrokerQuotas":
        """What is valid among the settings of the cluster's default and of the broker, which overrides it."""
        return cls(**read_values(cls.settings, {**default, **own})[0])
