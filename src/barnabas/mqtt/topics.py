"""Topic names and topic filters of MQTT: which are valid, and which filter matches which name."""

from typing import Final

from barnabas.mqtt.reason_codes import MqttError, ReasonCode

MAX_LEVELS: Final = 128
"""A bound of ours, so that matching is never long work."""
MAX_NAME_BYTES: Final = 0xFFFF
SHARED: Final = "$share/"


def check_topic_name(name: str) -> None:
    if not name:
        raise MqttError(ReasonCode.TOPIC_NAME_INVALID, "the topic name is empty")
    if "+" in name or "#" in name:
        raise MqttError(ReasonCode.TOPIC_NAME_INVALID, f"the topic name {name!r} has a wildcard")
    if name.count("/") >= MAX_LEVELS:
        raise MqttError(ReasonCode.TOPIC_NAME_INVALID, f"a topic name may have {MAX_LEVELS} levels")


def name_of(data: bytes) -> str | None:
    """The topic name that clients of Kafka have written; None if no packet could carry it."""
    if len(data) > MAX_NAME_BYTES:
        return None
    try:
        name = data.decode()
        check_topic_name(name)
    except (UnicodeDecodeError, MqttError):
        return None
    return None if "\0" in name else name


def fault_of_filter(text: str) -> str | None:
    """Why this is no topic filter, or None if it is one. Shared subscriptions are split first (`split_shared`)."""
    if not text:
        return "the topic filter is empty"
    levels = text.split("/")
    if len(levels) > MAX_LEVELS:
        return f"a topic filter may have {MAX_LEVELS} levels"
    for index, level in enumerate(levels):
        if "#" in level and (level != "#" or index != len(levels) - 1):
            return "# must be the last level of a topic filter, alone in it"
        if "+" in level and level != "+":
            return "+ must be alone in a level of a topic filter"
    return None


def split_shared(text: str) -> tuple[str | None, str]:
    """(share name, filter) of `$share/name/filter`; no name for an ordinary filter, an empty one if it is invalid."""
    if not text.startswith(SHARED):
        return None, text
    name, slash, rest = text[len(SHARED) :].partition("/")
    if not slash or "+" in name or "#" in name:
        return "", rest
    return name, rest


class TopicFilter:
    __slots__ = ("_exact", "_levels", "_rest", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        levels = text.split("/")
        self._rest = levels[-1] == "#"
        self._levels = levels[:-1] if self._rest else levels
        self._exact = not self._rest and "+" not in levels

    @property
    def has_wildcards(self) -> bool:
        return not self._exact

    def matches(self, name: str) -> bool:
        if self._exact:
            return name == self.text
        if name[:1] == "$" and self.text[:1] in ("+", "#"):
            return False  # topics of servers are not for filters that begin with a wildcard
        levels = name.split("/")
        wanted = self._levels
        if len(levels) < len(wanted) or (len(levels) > len(wanted) and not self._rest):
            return False
        return all(want in ("+", level) for want, level in zip(wanted, levels, strict=False))
