"""Settings of Barnabas for monitoring. Kafka has none of them, so DescribeConfigs does not list them."""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from barnabas.config.checks import Check
from barnabas.config.faults import read_values
from barnabas.config.setting import string
from barnabas.config.table import SettingsTable, settings_table

ADDRESS: Final = re.compile(r"(?:\[([0-9a-fA-F:.%]+)\]|([0-9a-zA-Z._\-]+)):([0-9]{1,5})(\+?)", re.ASCII)


class MetricsAddress(NamedTuple):
    host: str
    port: int
    or_next: bool
    """Whether one of the next ports will do, if that one is taken."""


def parse_metrics_address(text: str) -> MetricsAddress | None:
    """None for an empty text: no metrics are served. Raises ValueError."""
    if not text.strip():
        return None
    match = ADDRESS.fullmatch(text.strip())
    if match is None or int(match[3]) > 65535:
        raise ValueError("must be HOST:PORT, HOST:PORT+ (that port or one of the next), or empty")
    return MetricsAddress(match[1] or match[2], int(match[3]), bool(match[4]))


def _is_address(text: str) -> bool:
    try:
        parse_metrics_address(text)
    except ValueError:
        return False
    return True


@settings_table
class MonitoringConfig(SettingsTable):
    metrics_listener: str = string(
        "",
        "Where /metrics and /health are served by HTTP, without a login; empty: nowhere. `barnabas server` sets"
        " 127.0.0.1:9404+ unless it is given.",
        Check("HOST:PORT, HOST:PORT+ (that port or one of the next), or empty", _is_address),
    )

    @property
    def address(self) -> MetricsAddress | None:
        return parse_metrics_address(self.metrics_listener)


def read_monitoring_config(given: Mapping[str, str]) -> tuple[MonitoringConfig, list[str]]:
    """What is given of these settings, and their faults."""
    values, faults = read_values(MonitoringConfig.settings, given)
    return MonitoringConfig(**values), faults
