"""Settings of subscriptions to the metrics of clients (KIP-714), as in Kafka 4.1: resources of type client-metrics.

`ClientMatch` says which clients a subscription is for. Read by DescribeConfigs and by the rules for changing them.
"""

import re
from collections.abc import Mapping

from barnabas.config.checks import Check, between
from barnabas.config.faults import ConfigFaults, read_values, unknown_name
from barnabas.config.setting import int32, string_list
from barnabas.config.table import SettingsTable, settings_table

ATTRIBUTES = (
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)
LONGEST_VALUE = 255
"""What a client says of itself and is longer matches nothing: a pattern may take long with it."""


class ClientMatch:
    """All patterns must match the whole of the client's attributes; without patterns it is every client."""

    def __init__(self, texts: tuple[str, ...]) -> None:
        """Raises ValueError."""
        self._patterns: dict[str, re.Pattern[str]] = {}
        for text in texts:
            name, equals, pattern = (part.strip() for part in text.partition("="))
            if not equals or name not in ATTRIBUTES:
                raise ValueError(f"{text!r} is not ATTRIBUTE=REGEX")
            try:
                self._patterns[name] = re.compile(pattern)
            except (re.error, OverflowError, RecursionError) as error:
                raise ValueError(f"{pattern!r} is no regular expression: {error}") from None

    def matches(self, attributes: Mapping[str, str]) -> bool:
        return all(
            len(value := attributes[name]) <= LONGEST_VALUE and pattern.fullmatch(value) is not None
            for name, pattern in self._patterns.items()
        )


def _is_match(texts: tuple[str, ...]) -> bool:
    try:
        ClientMatch(texts)
    except ValueError:
        return False
    return True


@settings_table
class ClientMetricsConfig(SettingsTable):
    interval_ms: int = int32(300_000, "How often the clients push.", between(100, 3_600_000))
    match: tuple[str, ...] = string_list(
        (),
        "Which clients: ATTRIBUTE=REGEX, all of which must match; empty: every client.",
        Check(f"a list of ATTRIBUTE=REGEX, with attributes of {', '.join(ATTRIBUTES)}", _is_match),
    )
    metrics: tuple[str, ...] = string_list(
        (), "Prefixes of the names of the metrics that the clients push; `*` for all of them."
    )

    @classmethod
    def resolve(cls, overrides: Mapping[str, str]) -> "ClientMetricsConfig":
        """Raises ConfigFaults with every fault."""
        values, faults = read_values(cls.settings, overrides)
        faults += [
            unknown_name(name, cls.settings, "client metrics configuration")
            for name in overrides
            if name not in cls.settings
        ]
        if faults:
            raise ConfigFaults(faults)
        return cls(**values)
