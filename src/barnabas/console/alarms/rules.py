"""The file of alarms: rules and channels, read once. All its faults are reported together.

[[alarm]]
name = "billing is late"
kind = "time-lag"
match = "billing*"
above = 60            # fires above it,
clear = 30            # ends at or below it
for = 30              # seconds that it lasts before anybody is told

[[channel]]
kind = "webhook"
url = "http://alerts.example/hook"
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

KINDS = {
    "lag": "records that a group is behind",
    "time-lag": "seconds that a group is behind",
    "lag-not-falling": "seconds for which the lag of a group has not fallen",
    "no-traffic": "seconds without a new record in a topic",
    "consumer-gone": "seconds that a group with lag has had no member",
    "out-of-sync": "partitions of a topic with a replica that is not in sync",
    "offline": "partitions of a topic without a leader",
    "disk": "percent of a log directory that is used",
    "unreachable": "seconds without an answer from the cluster",
}
CHANNEL_KEYS = {
    "webhook": {"url"},
    "dingtalk": {"url", "secret"},
    "wecom": {"url"},
    "feishu": {"url", "secret"},
    "mail": {"host", "port", "from", "to", "user", "password", "tls"},
}
REQUIRED = {"mail": {"host", "from", "to"}}


class AlarmFileError(Exception):
    """What is wrong with the file, one line per fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Fires for every group, topic, broker or cluster whose value stays above the limit."""

    name: str
    kind: str
    match: str = "*"
    above: float = 0.0
    clear: float | None = None
    for_seconds: float = 0.0

    @property
    def clear_at(self) -> float:
        return self.above if self.clear is None else self.clear


@dataclass(frozen=True, slots=True)
class ChannelSettings:
    kind: str
    values: Mapping[str, Any]


DEFAULT_RULES = (
    Rule(name="cluster does not respond", kind="unreachable", above=15),
    Rule(name="partitions offline", kind="offline", for_seconds=10),
    Rule(name="replicas out of sync", kind="out-of-sync", for_seconds=60),
    Rule(name="disk nearly full", kind="disk", above=90, clear=88),
    Rule(name="lag does not fall", kind="lag-not-falling", above=600),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmSettings:
    rules: tuple[Rule, ...] = DEFAULT_RULES
    channels: tuple[ChannelSettings, ...] = ()


def read_alarm_file(path: Path) -> AlarmSettings:
    """Raises AlarmFileError, with everything that is wrong. Without rules of its own it has the default ones."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise AlarmFileError(f"{path}: {error}") from error
    faults = [f"unknown: {key}" for key in content.keys() - {"alarm", "channel"}]
    rules = [_rule(each, f"alarm {at + 1}", faults) for at, each in enumerate(_tables(content, "alarm", faults))]
    channels = [
        _channel(each, f"channel {at + 1}", faults) for at, each in enumerate(_tables(content, "channel", faults))
    ]
    names = [rule.name for rule in rules]
    faults += [f"two alarms are called {name!r}" for name in sorted({each for each in names if names.count(each) > 1})]
    if faults:
        raise AlarmFileError("\n".join(f"{path}: {fault}" for fault in faults))
    return AlarmSettings(rules=tuple(rules) or DEFAULT_RULES, channels=tuple(channels))


def _tables(content: dict[str, Any], name: str, faults: list[str]) -> list[dict[str, Any]]:
    found = content.get(name, [])
    if isinstance(found, list) and all(isinstance(each, dict) for each in found):
        return found
    faults.append(f"{name}: expected [[{name}]]")
    return []


def _rule(table: dict[str, Any], where: str, faults: list[str]) -> Rule:
    kind, name = table.get("kind"), table.get("name", table.get("kind"))
    if kind not in KINDS:
        faults.append(f"{where}: kind is one of {', '.join(KINDS)}")
    for key in ("name", "match"):
        if key in table and not (isinstance(table[key], str) and table[key]):
            faults.append(f"{where}: {key} is a text")
    numbers: dict[str, Any] = {}
    for key in ("above", "clear", "for"):
        value = table.get(key, None if key == "clear" else 0)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or value < 0):
            faults.append(f"{where}: {key} is a number of at least 0")
            value = 0
        numbers[key] = value
    if numbers["clear"] is not None and numbers["clear"] > numbers["above"]:
        faults.append(f"{where}: clear is higher than above")
    faults += [f"{where}: unknown: {key}" for key in table.keys() - {"name", "kind", "match", "above", "clear", "for"}]
    return Rule(
        name=str(name),
        kind=str(kind),
        match=str(table.get("match", "*")),
        above=float(numbers["above"]),
        clear=None if numbers["clear"] is None else float(numbers["clear"]),
        for_seconds=float(numbers["for"]),
    )


def _channel(table: dict[str, Any], where: str, faults: list[str]) -> ChannelSettings:
    kind = str(table.get("kind"))
    if kind not in CHANNEL_KEYS:
        faults.append(f"{where}: kind is one of {', '.join(CHANNEL_KEYS)}")
        return ChannelSettings(kind, {})
    values = {key: value for key, value in table.items() if key != "kind"}
    faults += [f"{where}: unknown: {key}" for key in values.keys() - CHANNEL_KEYS[kind]]
    faults += [f"{where}: {key} is missing" for key in sorted(REQUIRED.get(kind, {"url"}) - values.keys())]
    url = values.get("url", "http://")
    if not (isinstance(url, str) and url.startswith(("http://", "https://"))):
        faults.append(f"{where}: url begins with http:// or https://")
    if values.get("tls", "starttls") not in ("none", "starttls", "tls"):
        faults.append(f"{where}: tls is one of none, starttls, tls")
    to = values.get("to", ["x"])
    if not (isinstance(to, list) and to and all(isinstance(each, str) for each in to)):
        faults.append(f"{where}: to is a list of addresses")
    return ChannelSettings(kind, values)
