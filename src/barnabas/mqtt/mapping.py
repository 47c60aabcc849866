"""From MQTT topics to Kafka's: ordered rules, then a default.

    mqtt.topic.rules = sensors/+/temp -> sensors.temp; site/+/# -> site-{1}

A rule is a topic filter and the name of a topic, in which {1}, {2} ... stand for what the wildcards matched. The first
rule that matches decides. Without one the levels are joined by dots. Characters that Kafka does not allow in a name
become underscores; a name that is too long, or reserved, is refused. Which MQTT topic a record has is in its header, so
that topics mapped to one name stay apart.
"""

import re
from typing import NamedTuple

from barnabas.mqtt.reason_codes import MqttError, ReasonCode
from barnabas.mqtt.topics import TopicFilter, fault_of_filter, name_of

MAX_NAME = 249
NAMES_KEPT = 10_000
MAX_KEPT_BYTES = 1000
_ILLEGAL = re.compile(r"[^a-zA-Z0-9._-]")
_CAPTURE = re.compile(r"\{([0-9]{1,3})\}")


class Rule(NamedTuple):
    filter: TopicFilter
    target: str
    wildcards: tuple[int, ...]
    """Levels of the filter that are wildcards."""

    def name_for(self, topic: str) -> str:
        levels = topic.split("/")
        captures = [
            ".".join(levels[index:])
            if self.filter.text.endswith("#") and index == self.wildcards[-1]
            else levels[index]
            for index in self.wildcards
        ]
        return _CAPTURE.sub(lambda match: captures[int(match[1]) - 1], self.target)


def parse_rules(text: str) -> tuple[Rule, ...]:
    """Raises ValueError with what is wrong."""
    rules = []
    for item in filter(None, (part.strip() for part in text.split(";"))):
        source, arrow, target = (part.strip() for part in item.partition("->"))
        if not arrow or not target:
            raise ValueError(f"{item!r} is not filter -> topic")
        fault = fault_of_filter(source)
        if fault is not None:
            raise ValueError(f"{item!r}: {fault}")
        wildcards = tuple(index for index, level in enumerate(source.split("/")) if level in ("+", "#"))
        for number in _CAPTURE.findall(target):
            if not 1 <= int(number) <= len(wildcards):
                raise ValueError(f"{item!r}: the filter has no wildcard {number}")
        if _ILLEGAL.search(_CAPTURE.sub("", target)):
            raise ValueError(f"{item!r}: a topic's name may have letters, digits, '.', '_' and '-'")
        rules.append(Rule(TopicFilter(source), target, wildcards))
    return tuple(rules)


class Mapping:
    def __init__(self, rules: tuple[Rule, ...] = ()) -> None:
        self._rules = rules
        self._names: dict[tuple[str, bytes], str | None] = {}

    def name_in(self, topic: str, data: bytes) -> str | None:
        """These bytes as an MQTT topic that is mapped to this topic; None if they are none."""
        place = topic, data
        try:
            return self._names[place]
        except KeyError:
            name = name_of(data)
        try:
            if name is not None and self.topic_for(name) != topic:
                name = None
        except MqttError:
            name = None
        if len(data) <= MAX_KEPT_BYTES:
            if len(self._names) >= NAMES_KEPT:
                self._names.clear()
            self._names[place] = name
        return name

    def topic_for(self, name: str) -> str:
        """Raises MqttError if there can be no such topic."""
        for rule in self._rules:
            if rule.filter.matches(name):
                mapped = rule.name_for(name)
                break
        else:
            mapped = name.replace("/", ".")
        mapped = _ILLEGAL.sub("_", mapped)
        if len(mapped) > MAX_NAME or mapped in ("", ".", ".."):
            raise MqttError(ReasonCode.TOPIC_NAME_INVALID, f"{name!r} cannot be mapped to a topic's name")
        if mapped.startswith("__"):
            raise MqttError(ReasonCode.TOPIC_NAME_INVALID, f"{name!r} would be the internal topic {mapped}")
        return mapped

    def may_hold(self, topic: str, text: str) -> bool:
        """Whether the topic may have records of MQTT topics that the filter matches; rather once too often.

        Rules may send any MQTT topic anywhere, so what they could have written is asked of them one by one.
        """
        if topic.startswith("__"):
            return False
        if _filter_expression(text).fullmatch(topic):
            return True
        return any(_target_expression(rule.target).fullmatch(topic) for rule in self._rules)


def _filter_expression(text: str) -> re.Pattern[str]:
    """Names that the default may give to topics that match a filter: a level may itself have dots."""
    parts = []
    for level in text.split("/"):
        parts.append(r"\.?.*" if level in ("+", "#") else re.escape(_ILLEGAL.sub("_", level)))
    expression = r"\.".join(parts)
    if text.endswith("/#"):
        expression = r"\.".join(parts[:-1]) + r"(?:\..*)?"
    return re.compile(expression, re.DOTALL)


def _target_expression(target: str) -> re.Pattern[str]:
    return re.compile(".*".join(re.escape(part) for part in re.split(r"\{[0-9]+\}", target)), re.DOTALL)


def topic_of_record(topic: str, key: bytes | None, name: bytes | None, mapping: Mapping) -> str:
    """The MQTT topic of a record: of its header or its key if that is mapped to the record's topic, or its topic's.

    Any client of Kafka may have written the header: the right to write to one topic is not that to speak for others.
    """
    for data in (name, key):
        if data is not None and (text := mapping.name_in(topic, data)) is not None:
            return text
    return topic.replace(".", "/")
