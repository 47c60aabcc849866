"""The metadata engines of the chaos, and what befalls them: real ensembles of three, or one SQLite file.

`EngineUnderTest` is what the chaos sees: where the metadata is, and faults by name. While an engine is away its
brokers must go on serving.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from engine_ensemble import EngineEnsemble, Home
from etcd_ensemble import EtcdEnsemble, why_no_etcd
from namespaces import Namespaces
from zookeeper_ensemble import ZooKeeperEnsemble, why_no_zookeeper

ENGINES = ("sqlite", "etcd", "zookeeper")
ENGINE_NUMBERS = (4, 5, 6)
"""Of the namespaces, after those of the brokers."""
SQLITE_FILE = "metadata.sqlite"


def why_no_engine(name: str) -> str | None:
    return {"sqlite": lambda: None, "etcd": why_no_etcd, "zookeeper": why_no_zookeeper}[name]()


class EngineUnderTest:
    def __init__(self, location: str) -> None:
        self.location = location
        self.numbers: tuple[int, ...] = ()
        """Its namespaces, if brokers can be cut off from it."""
        self.faults: dict[str, Callable[[], Awaitable[None]]] = {"engine slow": self._slow}
        self.chance = random.Random()

    @asynccontextmanager
    async def away(self) -> AsyncIterator[None]:
        """Nobody can write to it meanwhile."""
        await asyncio.to_thread(self._stop)
        try:
            yield
        finally:
            await asyncio.to_thread(self._start)

    def _stop(self) -> None:
        raise NotImplementedError

    def _start(self) -> None:
        raise NotImplementedError

    def _hold_up(self) -> None:
        """For a moment, each time it is slow."""
        raise NotImplementedError

    def _let_go(self) -> None:
        raise NotImplementedError

    async def _slow(self) -> None:
        for _ in range(self.chance.randint(5, 20)):
            self._hold_up()
            await asyncio.sleep(self.chance.uniform(0.1, 0.4))
            self._let_go()
            await asyncio.sleep(0.05)


class SqliteUnderTest(EngineUnderTest):
    """One file on this host: somebody holds its lock for writing."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"sqlite:{path}")
        self._path = path
        self._connection: sqlite3.Connection | None = None

    def _stop(self) -> None:
        self._connection = sqlite3.connect(self._path, 30, isolation_level=None, check_same_thread=False)
        self._connection.execute("BEGIN IMMEDIATE")

    def _start(self) -> None:
        assert self._connection is not None
        self._connection.execute("ROLLBACK")
        self._connection.close()

    _hold_up, _let_go = _stop, _start


class EnsembleUnderTest(EngineUnderTest):
    def __init__(self, ensemble: EngineEnsemble, numbers: tuple[int, ...]) -> None:  # type: ignore[type-arg]
        super().__init__(ensemble.location("/chaos"))
        self._ensemble = ensemble
        self.numbers = numbers
        self.faults |= {"engine node killed": self._kill_node, "engine leader frozen": self._freeze_leader}

    def _stop(self) -> None:
        self._ensemble.kill()

    def _start(self) -> None:
        self._ensemble.start()

    def _hold_up(self) -> None:
        for node in self._ensemble.nodes:
            node.freeze()

    def _let_go(self) -> None:
        for node in self._ensemble.nodes:
            node.thaw()

    async def _kill_node(self) -> None:
        node = self.chance.choice(self._ensemble.nodes)
        await asyncio.to_thread(node.kill)
        await asyncio.sleep(self.chance.uniform(1, 4))
        node.start()
        await asyncio.to_thread(node.wait_until_serving)

    async def _freeze_leader(self) -> None:
        leader = await asyncio.to_thread(self._ensemble.leader)
        leader.freeze()
        await asyncio.sleep(self.chance.uniform(1, 4))
        leader.thaw()


@contextmanager
def engine_under_test(name: str, directory: Path, namespaces: Namespaces | None) -> Iterator[EngineUnderTest]:
    """An ensemble has the namespaces that come after those of the brokers, if there are any."""
    directory.mkdir(parents=True, exist_ok=True)
    if name == "sqlite":
        yield SqliteUnderTest(directory / SQLITE_FILE)
        return
    homes = None
    if namespaces is not None:
        homes = [Home(namespaces.address(each), namespaces.command(each)) for each in ENGINE_NUMBERS]
    numbers = ENGINE_NUMBERS if namespaces is not None else ()
    with contextlib.ExitStack() as stack:
        if name == "etcd":
            yield EnsembleUnderTest(stack.enter_context(EtcdEnsemble(directory, homes=homes)), numbers)
        else:
            yield EnsembleUnderTest(stack.enter_context(ZooKeeperEnsemble(directory, homes=homes)), numbers)
