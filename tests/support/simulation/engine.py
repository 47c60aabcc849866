"""The metadata engine of a simulated cluster: a memory tree behind a network, with sessions that time out.

`Engine` is the service (an etcd or ZooKeeper ensemble as a whole), `SimulatedStore` one broker's session with it. A
call takes time, during which everybody else goes on. A request that is lost (cut towards the engine, engine down) never
happens; a response that is lost (cut on the way back) leaves the caller without knowledge of what happened. A session
that was not heard of for its time-out ends, and its ephemeral nodes with it; no session ends while the engine is down.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Sequence
from typing import Any

from barnabas.metadata.store import (
    MetadataStoreError,
    Node,
    Operation,
    OutcomeUnknownError,
    Scan,
    SessionState,
    StoreUnavailableError,
)
from barnabas.metadata.stores.memory import MemoryStore, MemoryTree
from simulation.loop import VirtualLoop
from simulation.network import SimulatedNetwork
from simulation.node import Node as Process

NAME = "engine"
HEARTBEAT_S = 0.25
CALL_DEADLINE_S = 2.0
USUAL_S = (0.0005, 0.004)
SLOW_S = (0.05, 0.6)
"""How long each way of a call takes."""


class Engine:
    def __init__(
        self,
        loop: VirtualLoop,
        network: SimulatedNetwork,
        chance: random.Random,
        trace: Callable[..., None],
        session_timeout_s: float = 2.5,
    ) -> None:
        self.loop = loop
        self.network = network
        self.chance = chance
        self.trace = trace
        self.session_timeout_s = session_timeout_s
        self.tree = MemoryTree()
        self.is_down = False
        self.slowness_s = USUAL_S
        self.notices_kills = True
        """A killed broker's session ends at once, as with the SQLite file of one host; else after its time-out."""
        self.failing_share = 0.0
        """Of the calls: refused before, or their response lost."""
        self._last_heard: dict[SimulatedStore, float] = {}
        self._ticking = False

    def stop(self) -> None:
        self.trace("engine down")
        self.is_down = True

    def restart(self) -> None:
        """Sessions that were alive when it went down get their whole time-out again, as from a new leader."""
        self.trace("engine up")
        self.is_down = False
        for store in self._last_heard:
            self._last_heard[store] = self.loop.time()

    def hears(self, process: Process) -> bool:
        return not self.is_down and not self.network.is_route_cut(process.name, NAME)

    def answers(self, process: Process) -> bool:
        return not self.is_down and not self.network.is_route_cut(NAME, process.name)

    def on_opened(self, store: SimulatedStore) -> None:
        self._last_heard[store] = self.loop.time()
        if not self._ticking:
            self._ticking = True
            self.network.later(HEARTBEAT_S, self._tick)

    def on_closed(self, store: SimulatedStore) -> None:
        self._last_heard.pop(store, None)

    def on_killed(self, process: Process) -> None:
        if self.notices_kills and not self.is_down:
            self.end_session_of(process)

    def end_session_of(self, process: Process) -> None:
        for store in [each for each in self._last_heard if each.process is process]:
            self._end(store)

    def _tick(self) -> None:
        """Heartbeats: whoever runs and gets through is alive."""
        self.network.later(HEARTBEAT_S, self._tick)
        for store in self._last_heard:
            if not self.hears(store.process) or not self.answers(store.process):
                store.report(SessionState.SUSPENDED)
        if self.is_down:
            return
        now = self.loop.time()
        for store, heard in list(self._last_heard.items()):
            process = store.process
            if not process.killed and not process.frozen and self.hears(process) and self.answers(process):
                self._last_heard[store] = now
                store.report(SessionState.CONNECTED)
            elif now - heard > self.session_timeout_s:
                self._end(store)

    def _end(self, store: SimulatedStore) -> None:
        self.trace("session over", store.process.name)
        del self._last_heard[store]
        store.end()


class SimulatedStore(MemoryStore):
    """Blocks like the real ones, so it may only be called where a thread would: `VirtualLoop.pause`."""

    def __init__(self, engine: Engine, process: Process) -> None:
        super().__init__(engine.tree)
        self._engine = engine
        self.process = process
        self._reported = SessionState.CONNECTED

    def open(self) -> None:
        self._travel(self._open)

    def _open(self) -> None:
        super().open()
        self._reported = SessionState.CONNECTED
        self._engine.on_opened(self)

    def close(self) -> None:
        self._engine.on_closed(self)
        super().close()

    def end(self) -> None:
        """The engine gives the session up. The broker finds out as soon as it hears from the engine again."""
        self.tree.end_session(self._session_id)
        self.report(SessionState.LOST)
        self.watches.fire_all()

    def report(self, state: SessionState) -> None:
        if state is not self._reported:
            self._reported = state
            self._engine.network.later(self._delay(), self._tell, state, context=self.process.context.copy())

    def _tell(self, state: SessionState) -> None:
        if state is SessionState.LOST and not self._engine.answers(self.process):
            context = self.process.context.copy()
            self._engine.network.later(HEARTBEAT_S, self._tell, state, context=context)
        else:
            self.on_session_state(state)

    def get_many(self, paths: Sequence[str]) -> list[Node | None]:
        return self._travel(super().get_many, paths)

    def children(self, path: str) -> list[str]:
        return self._travel(super().children, path)

    def watch(self, path: str, callback: Callable[[], None]) -> Callable[[], None]:
        """Called in the broker's own context, once the news has got through."""
        context = self.process.context.copy()

        def deliver() -> None:
            if self._engine.answers(self.process):
                callback()
            else:
                self._engine.network.later(HEARTBEAT_S, deliver, context=context)

        def fire() -> None:
            self._engine.network.later(self._delay(), deliver, context=context)

        return super().watch(path, fire)

    def scan(self, prefix: str) -> Scan:
        return self._travel(super().scan, prefix)

    def sync(self) -> None:
        return self._travel(super().sync)

    def multi(self, operations: Sequence[Operation]) -> int:
        return self._travel(super().multi, operations, no_answer=OutcomeUnknownError)

    def _travel(
        self, call: Callable[..., Any], *args: Any, no_answer: type[MetadataStoreError] = StoreUnavailableError
    ) -> Any:
        """Nobody can tell a lost request from a lost response, unless the engine's address refuses the connection."""
        engine, loop = self._engine, self._engine.loop
        loop.pause(self._delay())
        fate = engine.chance.random()
        if fate < engine.failing_share / 2 or not engine.hears(self.process):
            if engine.is_down:
                raise StoreUnavailableError("the metadata engine is down")
            if no_answer is OutcomeUnknownError and fate < engine.failing_share / 4:
                # The request is stuck somewhere, and carried out when nobody reckons with it any more.
                engine.network.later(engine.chance.uniform(0, 2 * CALL_DEADLINE_S), _carry_out_late, call, args)
            loop.pause(CALL_DEADLINE_S)
            raise no_answer("the metadata engine did not answer")
        error: MetadataStoreError | None = None
        result = None
        try:
            result = call(*args)
        except MetadataStoreError as raised:
            error = raised
        loop.pause(self._delay())
        if fate > 1 - engine.failing_share / 2 or not engine.answers(self.process):
            loop.pause(CALL_DEADLINE_S)
            raise no_answer("the metadata engine did not answer")
        if error is not None:
            raise error
        return result

    def _delay(self) -> float:
        return self._engine.chance.uniform(*self._engine.slowness_s)


def _carry_out_late(call: Callable[..., Any], args: tuple[Any, ...]) -> None:
    with contextlib.suppress(MetadataStoreError):
        call(*args)
