"""What must hold in a simulated cluster at every moment, and what must once it is at rest.

At every look: one leader for each epoch of a partition, one controller for each controller epoch, a high watermark that
never goes back within an epoch, log start <= last stable <= high watermark <= log end. At rest: every broker has the
same image, and the replicas of a partition are equal byte for byte below the high watermark.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from barnabas.server.hosted_partition import HostedPartition
from simulation.broker import SimulatedBroker
from simulation.cluster import SimulatedCluster

LOOK_S = 0.1


class ClusterInvariants:
    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster
        self._leaders: dict[tuple[object, ...], int] = {}
        self._controllers: dict[int, int] = {}
        self._high_watermarks: dict[tuple[object, ...], int] = {}
        self.faults: list[str] = []

    async def watch(self) -> None:
        while True:
            self.look()
            await asyncio.sleep(LOOK_S)

    def look(self) -> None:
        for broker in self._cluster.brokers.values():
            if not broker.alive:
                continue
            image = broker.broker.cluster.image
            if image.controller_id >= 0:
                self._note_one(self._controllers, image.controller_epoch, image.controller_id, "controller epoch")
            for hosted in list(broker.broker.replicas):
                self._look_at(broker, hosted)

    def _look_at(self, broker: SimulatedBroker, hosted: HostedPartition) -> None:
        state, log = hosted.state, hosted.log
        name = f"{broker.name} {hosted.topic}-{hosted.partition}"
        start, high_watermark, end = log.log_start_offset, log.high_watermark, log.log_end_offset
        if not start <= log.last_stable_offset <= high_watermark <= end:
            self._fault(f"{name}: start {start}, stable {log.last_stable_offset}, high {high_watermark}, end {end}")
        if state.is_leader:
            epoch = (hosted.topic_id, hosted.partition, state.leader_epoch)
            self._note_one(self._leaders, epoch, broker.number, f"epoch of {hosted.topic}-{hosted.partition}")
            key = (broker.node, *epoch)
            if high_watermark < self._high_watermarks.get(key, 0):
                self._fault(f"{name}: high watermark went back from {self._high_watermarks[key]} to {high_watermark}")
            self._high_watermarks[key] = high_watermark

    def _note_one(self, claims: dict, key: object, number: int, what: str) -> None:  # type: ignore[type-arg]
        if claims.setdefault(key, number) != number:
            self._fault(f"{what} {key}: brokers {claims[key]} and {number}")

    def _fault(self, text: str) -> None:
        if text not in self.faults:
            self.faults.append(text)

    def check_at_rest(self) -> list[str]:
        """Once every broker runs and every replica is in sync."""
        self.look()
        faults = list(self.faults)
        images = [broker.broker.cluster.image for broker in self._cluster.brokers.values()]
        expected = self._cluster.image()
        for broker, image in zip(self._cluster.brokers.values(), images, strict=True):
            for topic, partition in expected.all_partitions():
                seen = image.partition(topic.name, partition.partition)
                if seen != partition:
                    faults.append(f"{broker.name} has {topic.name} {seen}, the engine {partition}")
        for topic, partition in expected.all_partitions():
            if set(partition.in_sync_replicas) != set(partition.replicas):
                faults.append(f"{topic.name}-{partition.partition} is not in sync: {partition}")
                continue
            faults += self._differing(topic.name, partition.partition, partition.replicas)
        return faults

    def _differing(self, topic: str, partition: int, replicas: tuple[int, ...]) -> list[str]:
        hosted = [self._hosted(number, topic, partition) for number in replicas]
        ends = {each.log.log_end_offset for each in hosted}
        watermarks = {each.log.high_watermark for each in hosted}
        contents = {_content(Path(each.log.directory)) for each in hosted}
        if len(contents) == 1 and len(ends) == 1:
            return []
        return [
            f"the replicas of {topic}-{partition} differ: {len(contents)} contents, ends {ends}, high {watermarks},"
            f" epochs {[each.state.leader_epoch for each in hosted]}"
        ]

    def _hosted(self, number: int, topic: str, partition: int) -> HostedPartition:
        replicas = self._cluster.brokers[number].broker.replicas
        return next(each for each in replicas if (each.topic, each.partition) == (topic, partition))


def _content(directory: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(directory.glob("*.log")))
