"""What a consumer has subscribed to: topics by name, by a regular expression of its own, or one of the coordinator's.

A Python pattern is matched here, against all topics of the cluster, and must match the whole name, as Kafka's does. A
`SubscriptionPattern` is evaluated by the coordinator; its topics are not known here.
"""

import re
from dataclasses import dataclass, replace

from barnabas.client.consumer.group.actions import TopicView
from barnabas.client.consumer.offsets import SubscriptionPattern


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a member has subscribed to."""

    topics: frozenset[str] = frozenset()
    pattern: re.Pattern[str] | None = None
    remote_pattern: str | None = None
    is_resolved: bool = True
    """False until the pattern has been matched against the cluster's topics once."""

    @classmethod
    def of(
        cls, topics: frozenset[str] | None, pattern: "re.Pattern[str] | SubscriptionPattern | None"
    ) -> "Subscription | None":
        """None means: to nothing."""
        if isinstance(pattern, SubscriptionPattern):
            return cls(remote_pattern=pattern.pattern)
        if pattern is not None:
            return cls(pattern=pattern, is_resolved=False)
        return cls(topics) if topics else None

    def resolve(self, view: TopicView, *, exclude_internal: bool) -> "Subscription":
        if self.pattern is None:
            return self
        match = self.pattern.fullmatch
        matching = frozenset(
            topic
            for topic in view.partition_counts
            if match(topic) and not (exclude_internal and topic in view.internal)
        )
        return replace(self, topics=matching, is_resolved=True)

    def includes(self, topic: str) -> bool:
        if self.remote_pattern is not None:
            return True
        return topic in self.topics or (self.pattern is not None and self.pattern.fullmatch(topic) is not None)

    def __str__(self) -> str:
        if self.remote_pattern is not None:
            return f"topics matching {self.remote_pattern!r} (by the coordinator)"
        if self.pattern is not None:
            return f"topics matching {self.pattern.pattern!r}"
        return ", ".join(sorted(self.topics))
