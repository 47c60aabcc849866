"""Settings of single groups in Kafka 4.1, over the broker's group.* defaults.

Values are limited by the broker's settings. Read by DescribeConfigs and by the rules for changing them.
"""

import re
from collections.abc import Mapping
from typing import Any

from barnabas.config.areas.effect import NO_SHARE, NO_STREAMS
from barnabas.config.broker import BrokerConfig
from barnabas.config.checks import Check, at_least, one_of
from barnabas.config.faults import ConfigFaults, read_values, unknown_name
from barnabas.config.setting import Synonym, int32, string
from barnabas.config.table import SettingsTable, settings_table

_DURATION = re.compile(r"by_duration:P(?=.)([0-9]+D)?(T(?=.)([0-9]+H)?([0-9]+M)?([0-9]+(\.[0-9]+)?S)?)?", re.ASCII)
OFFSET_RESET = Check(
    "earliest, latest or by_duration:PnDTnHnMn.nS",
    lambda value: value in ("earliest", "latest") or _DURATION.fullmatch(value) is not None,
)


@settings_table
class GroupConfig(SettingsTable):
    consumer_heartbeat_interval_ms: int = int32(
        5000,
        "Heartbeat interval of the members.",
        at_least(1),
        synonyms=(Synonym("group.consumer.heartbeat.interval.ms"),),
    )
    consumer_session_timeout_ms: int = int32(
        45_000,
        "Time without a heartbeat after which a member is removed.",
        at_least(1),
        synonyms=(Synonym("group.consumer.session.timeout.ms"),),
    )
    share_auto_offset_reset: str = string(
        "latest", "Where a share group starts to read.", OFFSET_RESET, no_effect=NO_SHARE
    )
    share_heartbeat_interval_ms: int = int32(
        5000,
        "Heartbeat interval of the members.",
        at_least(1),
        synonyms=(Synonym("group.share.heartbeat.interval.ms"),),
        no_effect=NO_SHARE,
    )
    share_isolation_level: str = string(
        "read_uncommitted",
        "Whether records of aborted transactions are delivered.",
        one_of("read_committed", "read_uncommitted"),
        no_effect=NO_SHARE,
    )
    share_record_lock_duration_ms: int = int32(
        30_000,
        "How long a member locks a record that it received.",
        at_least(1000),
        synonyms=(Synonym("group.share.record.lock.duration.ms"),),
        no_effect=NO_SHARE,
    )
    share_session_timeout_ms: int = int32(
        45_000,
        "Time without a heartbeat after which a member is removed.",
        at_least(1),
        synonyms=(Synonym("group.share.session.timeout.ms"),),
        no_effect=NO_SHARE,
    )
    streams_heartbeat_interval_ms: int = int32(
        5000,
        "Heartbeat interval of the members.",
        at_least(1),
        synonyms=(Synonym("group.streams.heartbeat.interval.ms"),),
        no_effect=NO_STREAMS,
    )
    streams_num_standby_replicas: int = int32(
        0,
        "Number of standby replicas per task.",
        at_least(0),
        synonyms=(Synonym("group.streams.num.standby.replicas"),),
        no_effect=NO_STREAMS,
    )
    streams_session_timeout_ms: int = int32(
        45_000,
        "Time without a heartbeat after which a member is removed.",
        at_least(1),
        synonyms=(Synonym("group.streams.session.timeout.ms"),),
        no_effect=NO_STREAMS,
    )

    @classmethod
    def resolve(cls, overrides: Mapping[str, str], broker: BrokerConfig) -> "GroupConfig":
        """The effective settings of a group; raises ConfigFaults with every fault of the overrides."""
        values, faults = read_values(cls.settings, overrides)
        faults += [unknown_name(name, cls.settings, "group setting") for name in overrides if name not in cls.settings]
        inherited: dict[str, Any] = {
            setting.field: getattr(broker, synonym.name.replace(".", "_"))
            for setting in cls.settings.values()
            for synonym in setting.synonyms
        }
        config = cls(**{**inherited, **values})
        faults += _out_of_bounds(config, broker)
        if faults:
            raise ConfigFaults(faults)
        return config


def _out_of_bounds(config: GroupConfig, broker: BrokerConfig) -> list[str]:
    faults = []
    for kind, what in (
        ("consumer", "heartbeat.interval.ms"),
        ("consumer", "session.timeout.ms"),
        ("share", "heartbeat.interval.ms"),
        ("share", "session.timeout.ms"),
        ("share", "record.lock.duration.ms"),
        ("streams", "heartbeat.interval.ms"),
        ("streams", "session.timeout.ms"),
    ):
        field = what.replace(".", "_")
        value = getattr(config, f"{kind}_{field}")
        low, high = getattr(broker, f"group_{kind}_min_{field}"), getattr(broker, f"group_{kind}_max_{field}")
        if not low <= value <= high:
            faults.append(f"{kind}.{what} must be between {low} and {high}, as group.{kind}.min|max.{what} say")
    if config.streams_num_standby_replicas > broker.group_streams_max_standby_replicas:
        faults.append("streams.num.standby.replicas must not be more than group.streams.max.standby.replicas")
    return faults
