"""Several brokers of one cluster in the test's process: they share the metadata in memory, each has a thread.

    with Cluster() as cluster:
        cluster.create_topic("orders", partitions=3)
        cluster.bootstrap                     # "127.0.0.1:PORT,...", for any Kafka client
        cluster.kill(cluster.leader("orders", 0))

pytest users get it as the fixture `barnabas_cluster`.
"""

import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final

from barnabas.metadata.image import ClusterImage
from barnabas.metadata.stores.memory import MemoryTree
from barnabas.testing.broker import Broker
from barnabas.testing.security import Security
from barnabas.testing.topics import all_records, create_topic

if TYPE_CHECKING:
    from barnabas.client.consumer import ConsumerRecord

PATIENCE_SECONDS: Final = 30.0
"""How long a call waits for the cluster to get there: a leader, a topic that every broker knows."""


class Cluster:
    """`settings` are for every broker; `data_dir` keeps the logs, in a folder for each broker.

    `listeners` and `users` are those of `Broker`, the same at every broker. Brokers reach each other on PLAINTEXT if it
    is one of them, or else on the first one. Broker n of `brokers` has the node id n. They have Kafka's defaults, but
    for `group.initial.rebalance.delay.ms` (0).
    """

    def __init__(
        self,
        brokers: int = 3,
        settings: Mapping[str, object] | None = None,
        *,
        listeners: Sequence[str] | None = None,
        users: Mapping[str, str] | None = None,
        data_dir: str | Path | None = None,
    ) -> None:
        if brokers < 1:
            raise ValueError("a cluster has at least one broker")
        self._is_temporary = data_dir is None
        self._directory = Path(data_dir or Path(tempfile.gettempdir(), f"barnabas-{uuid.uuid4().hex}"))
        tree = MemoryTree()
        self._security: Security | None = None
        if listeners is not None or users is not None:
            self._security = Security(["SASL_SSL"] if listeners is None else listeners, users)
        self.brokers = tuple(
            Broker(
                {**(settings or {}), "node.id": number},
                data_dir=self._directory / str(number),
                tree=tree,
                security=self._security,
            )
            for number in range(brokers)
        )
        self._cuts: set[frozenset[int]] = set()

    @property
    def bootstrap(self) -> str:
        """The addresses of all brokers that run, separated by commas."""
        return ",".join(broker.bootstrap for broker in self._running())

    @property
    def controller(self) -> int:
        """The node id of the controller, as soon as there is one that runs."""
        return self._wait_for(lambda image: self._among_running(image.controller_id))

    def client_options(
        self, user: str | None = None, *, mechanism: str = "SCRAM-SHA-512", listener: str | None = None
    ) -> dict[str, str]:
        """As `Broker.client_options`."""
        return self.brokers[0].client_options(user, mechanism=mechanism, listener=listener)

    def start(self) -> "Cluster":
        """Starts all brokers; returns when each of them knows the others."""
        with ThreadPoolExecutor(len(self.brokers)) as starting:
            started = [starting.submit(broker.start) for broker in self.brokers]
        try:
            for each in started:
                each.result()
        except BaseException:
            self.stop()
            raise
        self._wait_until_everybody(lambda image: len(image.brokers) == len(self.brokers) and image.controller_id >= 0)
        return self

    def stop(self) -> None:
        """Stops every broker cleanly, and removes the logs unless they are in a data_dir."""
        self.heal()
        for broker in self.brokers:
            broker.stop()
        if self._is_temporary:
            shutil.rmtree(self._directory, ignore_errors=True)
        if self._security is not None:
            self._security.close()

    def kill(self, broker: int) -> None:
        """As by kill -9: nothing is finished or flushed, and its port refuses connections until `restart`."""
        self.brokers[broker].kill()

    def restart(self, broker: int) -> None:
        """Starts a broker that was killed, or stops it cleanly and starts it again. It has the port that it had.

        Returns once every other broker knows that it is back.
        """
        if self.brokers[broker].is_running:
            self.brokers[broker].stop()
        self.brokers[broker].start()
        self._wait_until_everybody(lambda image: broker in image.brokers)

    def partition(self, one: int, other: int) -> None:
        """Cuts two brokers off from each other, but from nobody else, until `heal`."""
        for number in (one, other):
            self.brokers[number]  # an IndexError for a broker that is not there
        self._cuts.add(frozenset((one, other)))
        self._apply_cuts()

    def heal(self) -> None:
        """Ends every partition."""
        self._cuts.clear()
        self._apply_cuts()

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        replication_factor: int | None = None,
        config: Mapping[str, object] | None = None,
    ) -> None:
        """On as many brokers as there are, unless `replication_factor` says otherwise.

        Returns once every broker knows it; raises `TopicExistsError` if there is one of the name.
        """
        replicas = min(3, len(self.brokers)) if replication_factor is None else replication_factor
        create_topic(self.bootstrap, name, partitions, replicas, config, self.client_options())
        self._wait_until_everybody(lambda image: name in image.topics)

    def leader(self, topic: str, partition: int) -> int:
        """The node id of the partition's leader, as soon as it has one that runs: after a kill, the new one."""

        def find(image: ClusterImage) -> int | None:
            found = image.partition(topic, partition)
            return None if found is None else self._among_running(found.leader)

        return self._wait_for(find)

    def records(self, topic: str, *, committed: bool = False) -> "list[ConsumerRecord]":
        """All that the topic has at this moment, partition by partition, each in the order of its offsets.

        `committed`: without records of transactions that are open or aborted.
        """
        return all_records(self.bootstrap, topic, committed=committed, options=self.client_options())

    def clear_faults(self) -> None:
        """No more requests fail on purpose, at any broker."""
        for broker in self._running():
            broker.clear_faults()

    def __enter__(self) -> "Cluster":
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def _running(self) -> list[Broker]:
        running = [broker for broker in self.brokers if broker.is_running]
        if not running:
            raise RuntimeError("no broker runs: use the cluster as a context manager, or call start()")
        return running

    def _among_running(self, node_id: int) -> int | None:
        return node_id if 0 <= node_id < len(self.brokers) and self.brokers[node_id].is_running else None

    def _apply_cuts(self) -> None:
        for number, broker in enumerate(self.brokers):
            others = [next(iter(cut - {number})) for cut in self._cuts if number in cut]
            broker.cut_off(self.brokers[each] for each in others)

    def _wait_until_everybody(self, condition: Callable[[ClusterImage], bool]) -> None:
        ends = time.monotonic() + PATIENCE_SECONDS
        waits = [broker.when_image(condition) for broker in self._running()]
        for each in waits:
            each.result(max(0.0, ends - time.monotonic()))

    def _wait_for(self, find: Callable[[ClusterImage], int | None]) -> int:
        """The response of the first broker whose image has one."""
        response: Future[int] = Future()

        def look(image: ClusterImage) -> bool:
            found = find(image)
            if found is not None and not response.done():
                response.set_result(found)
            return response.done()

        for broker in self._running():
            broker.when_image(look)
        return response.result(PATIENCE_SECONDS)
