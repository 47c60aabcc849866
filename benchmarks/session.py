"""One run: the two brokers, the number of rounds, and the order of their turns.

Both brokers run the whole time and only one of them is loaded; the other is idle. The first round of every piece
of work warms up (the JVM compiles, caches fill) and is not counted; the order changes from round to round.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path

from barnabas_process import BarnabasProcess
from confluent import make_topic
from confluent_kafka.admin import AdminClient
from kafka_process import KafkaProcess, why_no_kafka
from server_process import ServerProcess

from benchmarks.board import BARNABAS, KAFKA, Board

Starters = dict[str, Callable[[Path], ServerProcess]]
STARTERS: Starters = {KAFKA: KafkaProcess, BARNABAS: BarnabasProcess}


class Contender:
    def __init__(self, name: str, broker: ServerProcess) -> None:
        self.name = name
        self.broker = broker

    @property
    def bootstrap(self) -> str:
        return self.broker.bootstrap

    @cached_property
    def admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})

    def new_topic(self, partitions: int = 1, name: str | None = None) -> str:
        """A topic whose files are removed soon after it is deleted, so that rounds do not fill the disk."""
        name = name or f"bench-{os.urandom(4).hex()}"
        return make_topic(self.admin, name, partitions, {"file.delete.delay.ms": "1000"})

    def delete_topic(self, topic: str) -> None:
        self.admin.delete_topics([topic])[topic].result(60)


class Session:
    def __init__(self, directory: Path, rounds: int, quick: bool, starters: Starters = STARTERS) -> None:
        self.directory = directory
        self.rounds = rounds
        self.quick = quick
        self.board = Board()
        self.extra_tables: dict[str, str] = {}
        """Title -> table, for work whose contenders are not the two brokers."""
        self.starters = starters
        self.names = [name for name in starters if name != KAFKA or not why_no_kafka()]
        self._contenders: list[Contender] = []
        self._stack = ExitStack()

    @property
    def contenders(self) -> list[Contender]:
        """Started on first use, stopped by `stop`."""
        if not self._contenders:
            for name in self.names:
                self._contenders.append(self._stack.enter_context(self.fresh(name, "main")))
        return self._contenders

    def stop(self) -> None:
        self._contenders = []
        self._stack.close()

    @contextmanager
    def fresh(self, name: str, purpose: str) -> Iterator[Contender]:
        """A separate broker with an empty data directory."""
        directory = self.directory / f"{purpose}-{name.split()[-1].lower()}-{os.urandom(2).hex()}"
        with self.starters[name](directory) as broker:
            yield Contender(name, broker)

    def turns(
        self,
        work: Callable[[Contender], dict[str, float]],
        warm_up: int = 1,
        *,
        rounds: int | None = None,
        contenders: list[Contender] | None = None,
    ) -> None:
        """Let each contender do the work in turns; the returned values go to the rows of these titles.

        `rounds`: a limit for slow work; `contenders`: separate brokers.
        """
        contenders = contenders or self.contenders
        for round_number in range(-warm_up, min(self.rounds, rounds or self.rounds)):
            order = contenders if round_number % 2 == 0 else contenders[::-1]
            for contender in order:
                values = work(contender)
                if round_number >= 0:
                    for title, value in values.items():
                        self.board.add(title, contender.name, value)


@contextmanager
def cpu_of(broker: ServerProcess) -> Iterator[Callable[[], float]]:
    """CPU time of the broker inside the block."""
    before = broker.cpu_seconds()
    yield lambda: broker.cpu_seconds() - before
