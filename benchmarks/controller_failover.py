"""How long a cluster's controller takes with many partitions: elections after a broker's death, and taking over.

    python -m benchmarks.controller_failover [--partitions 10000] [--topics 100] [--store memory|sqlite]

Members of a cluster without logs and network, on one store. Broker 3 leads every partition and dies: until the
controller has written the new leaders, and until a follower has them in its image. Then the controller dies: until the
next one has taken over and carries out a request. The second figure is CPU time, of all members together.
"""

import argparse
import asyncio
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random

from barnabas.machines.controller.commands import NewTopic
from barnabas.metadata.image import BrokerEndpoint, ClusterImage, ConfigResource
from barnabas.metadata.store import MetadataStore
from barnabas.metadata.stores.memory import MemoryStore, MemoryTree
from barnabas.metadata.stores.sqlite import SqliteStore
from barnabas.server.cluster_membership import ClusterMembership
from barnabas.server.controller_client import ControllerClient
from barnabas.types import NodeId

TIMEOUT_MS = 60_000


class AnyConfig:
    def check(self, resource: ConfigResource, config: Mapping[str, str]) -> None:
        pass

    def is_list(self, resource: ConfigResource, name: str) -> bool:
        return False

    def default(self, resource: ConfigResource, name: str) -> str | None:
        return None


async def measure(
    make_store: Callable[[], MetadataStore], partitions: int, topics: int
) -> dict[str, tuple[float, float]]:
    members = [ClusterMembership(make_store(), broker_id=NodeId(each), rules=AnyConfig()) for each in (1, 2, 3)]
    for member in members:
        await member.start([BrokerEndpoint("PLAINTEXT", "localhost", 9092 + member.broker_id)])
    controller, follower, victim = members
    figures: dict[str, tuple[float, float]] = {}
    random, begun = Random(1), _now()
    for number in range(topics):
        assignments = tuple((each, (3, *random.sample((1, 2), 2))) for each in range(partitions // topics))
        [result] = await ControllerClient(controller).create_topics([NewTopic(f"t{number}", assignments=assignments)])
        assert not result.error, result
    figures["create all topics"] = _since(begun)
    await follower.wait_until(lambda image: len(image.topics) == topics, TIMEOUT_MS)

    begun = _now()
    await victim.stop()
    await controller.wait_until(_nothing_led_by(3), TIMEOUT_MS)
    figures["death of the leader of all -> written"] = _since(begun)
    await follower.wait_until(_nothing_led_by(3), TIMEOUT_MS)
    figures["... -> in a follower's image"] = _since(begun)

    begun = _now()
    await controller.stop()
    await follower.wait_until(lambda image: image.controller_id == 2, TIMEOUT_MS)
    await ControllerClient(follower).create_topics([NewTopic("served", 1, 1)])
    figures["death of the controller -> the next one serves"] = _since(begun)
    await follower.stop()
    return figures


def _now() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


def _since(begun: tuple[float, float]) -> tuple[float, float]:
    wall, processor = _now()
    return wall - begun[0], processor - begun[1]


def _nothing_led_by(broker_id: int) -> Callable[[ClusterImage], bool]:
    return lambda image: (
        broker_id not in image.brokers and all(partition.leader != broker_id for _, partition in image.all_partitions())
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--topics", type=int, default=100)
    parser.add_argument("--store", choices=("memory", "sqlite"), action="append")
    arguments = parser.parse_args()
    for kind in arguments.store or ("memory", "sqlite"):
        with tempfile.TemporaryDirectory() as directory:
            tree, path = MemoryTree(), Path(directory, "metadata.sqlite")
            make = (lambda: MemoryStore(tree)) if kind == "memory" else (lambda: SqliteStore(path))  # noqa: B023
            figures = asyncio.run(measure(make, arguments.partitions, arguments.topics))
        print(f"{kind}, {arguments.partitions} partitions in {arguments.topics} topics")
        for what, (wall, processor) in figures.items():
            print(f"  {what:<48} {wall:8.3f} s {processor:8.3f} s")


if __name__ == "__main__":
    main()
