"""What goes in and out of one topic on this broker: plain integers that Produce and Fetch add to.

Partitions of a topic share one object, which `TrafficTable` keeps until the topic is gone from this broker. What it
counted until then goes into `rest`, so that the totals of all topics never go back. Topics that are not here are
counted there too: clients can name any number of them.
"""

from collections.abc import Iterator


class TopicTraffic:
    __slots__ = (
        "bytes_in",
        "bytes_out",
        "failed_fetches",
        "failed_produces",
        "fetches",
        "messages_in",
        "produces",
        "replication_bytes_in",
        "replication_bytes_out",
    )

    def __init__(self) -> None:
        self.bytes_in = 0
        self.bytes_out = 0
        self.messages_in = 0
        self.produces = 0
        self.fetches = 0
        self.failed_produces = 0
        self.failed_fetches = 0
        self.replication_bytes_in = 0
        self.replication_bytes_out = 0

    def add(self, other: "TopicTraffic") -> None:
        for name in TopicTraffic.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class TrafficTable:
    __slots__ = ("_topics", "rest")

    def __init__(self) -> None:
        self._topics: dict[str, TopicTraffic] = {}
        self.rest = TopicTraffic()
        """Of topics that are gone or were never here."""

    def open(self, topic: str) -> TopicTraffic:
        """For a partition of the topic that comes to this broker."""
        traffic = self._topics.get(topic)
        if traffic is None:
            traffic = self._topics[topic] = TopicTraffic()
        return traffic

    def of(self, topic: str | bytes) -> TopicTraffic:
        """For what failed: it may be of a topic that is not here, or be named by its id."""
        return self.rest if isinstance(topic, bytes) else self._topics.get(topic, self.rest)

    def close(self, topic: str) -> None:
        """The topic has no partition here any more."""
        traffic = self._topics.pop(topic, None)
        if traffic is not None:
            self.rest.add(traffic)

    def __iter__(self) -> Iterator[tuple[str, TopicTraffic]]:
        return iter(list(self._topics.items()))

    def total(self) -> TopicTraffic:
        total = TopicTraffic()
        total.add(self.rest)
        for traffic in self._topics.values():
            total.add(traffic)
        return total
