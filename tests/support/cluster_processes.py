"""Three `barnabas server` processes of one cluster, and the faults that real processes have.

The metadata is in an SQLite file, unless a location says otherwise (an ensemble of etcd or ZooKeeper). With
`namespaces` each broker has a network of its own, and brokers can be cut off from each other.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Self

from faulty_broker import FaultSwitch
from namespaces import Namespaces
from server_process import ServerProcess, free_port

from barnabas import Admin
from barnabas.errors import KafkaError

SOURCES = Path(__file__).resolve().parents[2] / "src"
FAULTY_BROKER = Path(__file__).resolve().with_name("faulty_broker.py")
BROKERS = (1, 2, 3)
PATIENCE_S = 180.0
SETTINGS = {
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "group.initial.rebalance.delay.ms": "0",
}
COORDINATORS = {"group coordinator": "__consumer_offsets", "transaction coordinator": "__transaction_state"}


class ClusterProcesses:
    def __init__(
        self,
        directory: Path,
        *,
        metadata: str | None = None,
        settings: dict[str, str] | None = None,
        namespaces: Namespaces | None = None,
        has_faults: bool = False,
    ) -> None:
        """`has_faults`: the brokers' disks can be set to fail, and their clocks to be wrong, by `switches`."""
        self._directory = directory
        self._metadata = metadata or f"sqlite:{directory / 'metadata.sqlite'}"
        self._settings = SETTINGS | (settings or {})
        self._namespaces = namespaces
        self.switches = (
            {number: FaultSwitch(directory / f"process-{number}" / "faults") for number in BROKERS}
            if has_faults
            else {}
        )
        self.brokers: dict[int, ServerProcess] = {number: self._broker(number) for number in BROKERS}
        self._admin: Admin | None = None
        self.known_topics: set[str] = set()

    @property
    def bootstrap(self) -> str:
        return ",".join(broker.bootstrap for broker in self.brokers.values())

    @property
    def admin(self) -> Admin:
        if self._admin is None:
            self._admin = Admin(self.bootstrap, request_timeout_ms=5000, retry_backoff_ms=50)
        return self._admin

    def data(self, number: int) -> Path:
        return self._directory / f"broker-{number}"

    def start(self) -> Self:
        for broker in self.brokers.values():
            broker.launch()
        for broker in self.brokers.values():
            broker.wait_until_ready()
        self.wait_until(lambda: len(self.admin.describe_cluster().brokers) == len(BROKERS), "three brokers")
        return self

    def stop(self) -> None:
        if self._admin is not None:
            self._admin.close()
            self._admin = None
        for number, broker in self.brokers.items():
            if broker.alive:
                self.thaw(number)
                broker.process.send_signal(signal.SIGTERM)  # type: ignore[union-attr]
        for broker in self.brokers.values():
            broker.stop()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    # --- faults ---

    def kill(self, number: int) -> None:
        self.brokers[number].kill()

    def restart(self, number: int) -> None:
        self.brokers[number].start()

    def wipe(self, number: int) -> None:
        shutil.rmtree(self.data(number))

    def freeze(self, number: int) -> None:
        os.kill(self.brokers[number].pid, signal.SIGSTOP)

    def thaw(self, number: int) -> None:
        os.kill(self.brokers[number].pid, signal.SIGCONT)

    def keep_disk(self, number: int) -> Path:
        """A copy of the disk as it is at this moment."""
        copy = self._directory / f"old-disk-{number}"
        shutil.rmtree(copy, ignore_errors=True)
        self.freeze(number)
        try:
            shutil.copytree(self.data(number), copy)
        finally:
            self.thaw(number)
        return copy

    def put_back_disk(self, number: int, copy: Path) -> None:
        self.wipe(number)
        copy.rename(self.data(number))

    def cut(self, number: int, others: Iterable[int], *, both_ways: bool = True) -> None:
        """A broker from other numbers of the namespaces; clients still reach it."""
        assert self._namespaces is not None
        for other in others:
            self._namespaces.cut(number, other)
            if both_ways:
                self._namespaces.cut(other, number)

    def heal(self, number: int, others: Iterable[int], *, both_ways: bool = True) -> None:
        assert self._namespaces is not None
        for other in others:
            self._namespaces.heal(number, other)
            if both_ways:
                self._namespaces.heal(other, number)

    # --- what is the case ---

    def who_is(self, role: str, topic: str, partition: int = 0) -> int:
        """The broker that has the role, of this partition where it is about one, as soon as one has it."""
        found = -1

        def find() -> bool:
            nonlocal found
            found = self._find(role, topic, partition)
            return found in BROKERS

        self.wait_until(find, role)
        return found

    def _find(self, role: str, topic: str, partition: int) -> int:
        if role == "controller":
            controller = self.admin.describe_cluster().controller
            return -1 if controller is None else controller.id
        described = self.admin.describe_topic(COORDINATORS.get(role, topic)).partitions[partition]
        if role == "follower":
            return next(each for each in described.replicas if each != described.leader)
        return -1 if described.leader is None else described.leader

    def is_in_sync(self) -> bool:
        """Whether every replica of every partition is in sync, as any broker sees it."""
        names = set(self.admin.list_topics(include_internal=True))
        if not names >= self.known_topics:
            return False  # a broker that has just started
        self.known_topics |= names
        for topic in self.admin.describe_topics(names).values():
            if any(each.is_under_replicated or each.leader is None for each in topic.partitions):
                return False
        return True

    def wait_until_in_sync(self, seconds: float = PATIENCE_S) -> float:
        return self.wait_until(self.is_in_sync, "all replicas in sync", seconds)

    def wait_until(self, condition: Callable[[], bool], what: str, seconds: float = PATIENCE_S) -> float:
        """Returns after how many seconds. A request that fails only means: not yet."""
        began = time.monotonic()
        while True:
            try:
                if condition():
                    return time.monotonic() - began
            except KafkaError as error:
                last: object = error
            else:
                last = "not the case"
            if time.monotonic() - began > seconds:
                tails = "\n".join(f"broker {n}:\n{each.output_tail(8)}" for n, each in self.brokers.items())
                raise AssertionError(f"no {what} within {seconds:.0f} s: {last}\n{tails}")
            time.sleep(0.05)

    def _broker(self, number: int) -> ServerProcess:
        port = 9092 if self._namespaces is not None else free_port()
        host = self._namespaces.address(number) if self._namespaces is not None else "127.0.0.1"
        command = self._namespaces.command(number) if self._namespaces is not None else []
        run = [str(FAULTY_BROKER), str(self.switches[number].path)] if self.switches else ["-m", "barnabas"]
        command += [sys.executable, *run, "server", "--listen", f"{host}:{port}"]
        command += ["--data-dir", str(self.data(number)), "--metadata", self._metadata, "--node-id", str(number)]
        for key, value in self._settings.items():
            command += ["--set", f"{key}={value}"]
        environment = os.environ | {
            "PYTHONPATH": f"{SOURCES}{os.pathsep}{FAULTY_BROKER.parent}",
            "PYTHONUNBUFFERED": "1",
        }
        return ServerProcess(command, self._directory / f"process-{number}", host, port, environment)
