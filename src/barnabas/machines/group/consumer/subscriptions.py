"""Subscriptions by regular expression: which topics each stands for now.

An expression is resolved when the first member brings it, and all of a group's again when topics came or went, but not
more often than every ten seconds: a cluster where topics are made one after the other would do little else. The answer
is a record of the group, gone with the last member that uses the expression.
"""

from collections.abc import Iterable

from barnabas.machines.controller.image import ClusterImage
from barnabas.machines.coordinator import Now
from barnabas.machines.group.consumer import records
from barnabas.machines.group.consumer.group import ConsumerGroup
from barnabas.machines.group.consumer.regex import RegexError, compile_regex
from barnabas.machines.group.outcome import Outcome

REFRESH_MIN_INTERVAL_MS = 10_000


class Subscriptions:
    __slots__ = ()

    def are_out_of_date(self, group: ConsumerGroup, image: ClusterImage, now: Now) -> bool:
        if not group.regexes or group.seen_names is image.topic_names:
            return False
        last_ms = group.regexes_resolved_ms
        return last_ms is None or now.monotonic_ms - last_ms >= REFRESH_MIN_INTERVAL_MS

    def resolve(
        self, group: ConsumerGroup, used: list[str], image: ClusterImage, outcome: Outcome
    ) -> dict[str, tuple[str, ...]]:
        """These expressions with their topics; what is new of it goes into records. The group's others are removed."""
        refresh = self.are_out_of_date(group, image, outcome.now)
        resolved = {}
        for regex in used:
            known = group.regexes.get(regex)
            topics = known
            if topics is None or refresh:
                topics = _matching(regex, image.topics)
            if topics != known:
                outcome.records.append(records.regex_record(group.group_id, regex, topics, outcome.now.wall_ms))
            resolved[regex] = topics
        outcome.records += [
            records.regex_tombstone(group.group_id, each) for each in group.regexes if each not in resolved
        ]
        if refresh or (resolved and not group.regexes):
            group.seen_names = image.topic_names
            group.regexes_resolved_ms = outcome.now.monotonic_ms
        return resolved


def _matching(regex: str, names: Iterable[str]) -> tuple[str, ...]:
    """None at all for an expression that takes too long: it holds up every group of this broker."""
    try:
        compiled = compile_regex(regex)
        return tuple(name for name in sorted(names) if compiled.matches(name))
    except RegexError:
        return ()
