"""One broker on an event loop of its own, in a background thread: stopped cleanly, or ended as by kill -9."""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from barnabas.config.broker import BrokerConfig
from barnabas.metadata.image import ClusterImage, Delta
from barnabas.metadata.stores.memory import MemoryStore
from barnabas.server.broker import Broker, make_parts
from barnabas.server.process import new_event_loop
from barnabas.testing.network import BreakableNetwork

T = TypeVar("T")


class ServerThread:
    def __init__(self, config: BrokerConfig, store: MemoryStore, network: BreakableNetwork) -> None:
        """Returns once the broker serves; raises what its start raised."""
        self._store = store
        self._network = network
        self._loop = new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="barnabas-broker", daemon=True)
        self._thread.start()
        try:
            self.broker = self.run(self._start(config))
        except BaseException:
            self._end_loop()
            raise

    def stop(self) -> None:
        self.run(self.broker.stop())
        self._end_loop()

    def kill(self) -> None:
        """Nothing is finished, flushed or said to anybody, as after kill -9: clients lose their connections, and the
        metadata store the session. What was written to a file stays."""
        self.run(self.broker.compaction.stop())  # its threads may be waiting for the loop
        self._stop_loop()
        self._network.drop_all()
        self.broker.abandon()
        self._store.expire()
        for task in asyncio.all_tasks(self._loop):
            task._log_destroy_pending = False  # type: ignore[attr-defined]
            with contextlib.suppress(BaseException):
                task.get_coro().close()
        self._loop.close()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def call(self, work: Callable[[], T]) -> T:
        async def run() -> T:
            return work()

        return self.run(run())

    def when_image(self, condition: Callable[[ClusterImage], bool]) -> "Future[None]":
        """Done as soon as the broker's image of the cluster meets the condition."""
        met: Future[None] = Future()
        cluster = self.broker.cluster

        def look(_delta: Delta | None = None) -> None:
            if not met.done() and condition(cluster.image):
                met.set_result(None)

        def begin() -> None:
            cluster.listeners.append(look)
            look()

        self.call(begin)
        met.add_done_callback(lambda _: self._loop.call_soon_threadsafe(_discard, cluster.listeners, look))
        return met

    async def _start(self, config: BrokerConfig) -> Broker:
        broker = Broker(make_parts(config, store=self._store, network=self._network))
        await broker.start()
        return broker

    def _end_loop(self) -> None:
        self._stop_loop()
        self._loop.close()

    def _stop_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()


def _discard(listeners: list[Any], listener: object) -> None:
    if listener in listeners:
        listeners.remove(listener)
