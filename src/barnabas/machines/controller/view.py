"""What a decision reads: the image, its index, and the settings that elections depend on. Made for one decision.

`change_all` turns a list of partitions into the records of their next states.
"""

from collections.abc import Callable, Container, Iterable

from barnabas.machines.controller.commands import ConfigRules
from barnabas.machines.controller.election import Election, Surroundings
from barnabas.machines.controller.image import CLUSTER_DEFAULT, ClusterImage, ConfigResource, PartitionImage
from barnabas.machines.controller.partition_change import change
from barnabas.machines.controller.partition_index import PartitionIndex
from barnabas.machines.controller.records import PartitionsChanged
from barnabas.types import TopicPartition

MIN_ISR = "min.insync.replicas"
UNCLEAN_ELECTION = "unclean.leader.election.enable"


class View:
    def __init__(self, image: ClusterImage, index: PartitionIndex, rules: ConfigRules) -> None:
        self.image = image
        self.index = index
        self._rules = rules
        self._of_topic: dict[str, tuple[int, bool]] = {}
        self._defaults: dict[str, str] = {}
        self._stopping = {each: None for each, broker in image.brokers.items() if broker.in_controlled_shutdown}

    @property
    def active(self) -> dict[int, None]:
        """Brokers that may lead and get replicas."""
        return {each: None for each in self.image.brokers if each not in self._stopping}

    def min_isr(self, topic: str) -> int:
        return self._settings(topic)[0]

    def unclean_allowed(self, topic: str) -> bool:
        return self._settings(topic)[1]

    def around(self, topic: str, active: Container[int], election: Election = Election.OFFLINE) -> Surroundings:
        """An election because of an absent leader is unclean where the topic allows it."""
        min_isr, unclean = self._settings(topic)
        if unclean and election is Election.OFFLINE:
            election = Election.UNCLEAN
        return Surroundings(active, self._stopping, min_isr, election)

    def change_all(
        self,
        partitions: Iterable[TopicPartition],
        active: Container[int],
        *,
        leaving: Container[int] = (),
        lost_records: Container[int] = (),
        wiped: Container[int] = (),
        election: Election = Election.OFFLINE,
        needs: Callable[[PartitionImage], bool] | None = None,
    ) -> tuple[PartitionsChanged, ...]:
        """The next states of partitions; each is visited once, in the order given."""
        changed: list[tuple[str, PartitionImage]] = []
        around_topic: dict[str, Surroundings] = {}
        for topic, number in dict.fromkeys(partitions):
            partition = self.image.topics[topic].partitions[number]
            if needs is not None and not needs(partition):
                continue
            around = around_topic.get(topic)
            if around is None:
                around = around_topic[topic] = self.around(topic, active, election)._replace(
                    leaving=leaving, lost_records=lost_records, wiped=wiped
                )
            now = change(partition, around)
            if now is not None:
                changed.append((topic, now))
        return by_topic(changed)

    def _settings(self, topic: str) -> tuple[int, bool]:
        found = self._of_topic.get(topic)
        if found is None:
            resource = ConfigResource.topic(topic)
            min_isr, unclean = self._setting(resource, MIN_ISR, "1"), self._setting(resource, UNCLEAN_ELECTION, "false")
            found = self._of_topic[topic] = int(min_isr), unclean.strip().lower() == "true"
        return found

    def _setting(self, resource: ConfigResource, name: str, default: str) -> str:
        own = self.image.config(resource).get(name)
        if own is not None:
            return own
        if name not in self._defaults:
            # The same for every topic, and not cheap to find out.
            inherited = self.image.config(CLUSTER_DEFAULT).get(name)
            if inherited is None and name != MIN_ISR:
                inherited = self._rules.default(resource, name)
            # Not this broker's own min.insync.replicas: a leader whose file has a smaller one commits with fewer
            # replicas, and a replica that the larger one makes eligible would lack those records (KIP-966).
            self._defaults[name] = inherited or default
        return self._defaults[name]


def by_topic(changed: Iterable[tuple[str, PartitionImage]]) -> tuple[PartitionsChanged, ...]:
    grouped: dict[str, list[PartitionImage]] = {}
    for topic, partition in changed:
        grouped.setdefault(topic, []).append(partition)
    return tuple(PartitionsChanged(topic, tuple(partitions)) for topic, partitions in grouped.items())
