"""A broker's membership in the cluster: registered in the store, candidate for controller, holder of the image.

The broker starts it before it serves and reads `image` from then on. One worker does everything in order: it looks at
the store when the store reports a change, follows the controller's change log (`_follow`), becomes controller if there
is none (`controller_duty.py`), and carries out what is asked of the controller (`submit`, with a method per request in
`controller_client.py`). The store is called in a thread, since each call waits for a disk or a network.

What may happen in between: the session ends or the registration is removed, then the broker registers again under a
new epoch (`broker_registration.py`). The engine is out of reach, then the broker goes on serving with the image it has,
and looks again until the engine is back; nobody is elected meanwhile, because nobody can write. A lone broker is a
cluster of one, the same way.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias, TypeVar

from barnabas.clock import Clock, Random, SystemClock
from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.controller.commands import Command, ConfigRules
from barnabas.machines.controller.machine import ControllerMachine
from barnabas.machines.controller.topics import TopicDefaults
from barnabas.metadata import tree
from barnabas.metadata.change_log import CHANGES
from barnabas.metadata.image import NO_CONTROLLER, BrokerEndpoint, BrokerImage, ClusterImage, Delta
from barnabas.metadata.repository import ControllerMovedError, MetadataRepository
from barnabas.metadata.store import (
    MetadataStore,
    MetadataStoreError,
    SessionExpiredError,
    SessionState,
    StoreUnavailableError,
    ignore_session_state,
)
from barnabas.server.broker_registration import BrokerRegistration, NoDirectories, RegisteredDirectories
from barnabas.server.controller_duty import ControllerDuty
from barnabas.types import NodeId, topic_id_text

logger = logging.getLogger(__name__)

Result = TypeVar("Result")
DeltaListener = Callable[[Delta], None]
_Item: TypeAlias = "tuple[Command, asyncio.Future[Any]] | None"
RETRY_DELAY_SECONDS = 0.2
MAX_ATTEMPTS = 5


class InconsistentClusterIdError(Exception):
    """The data directory belongs to another cluster than the store."""


class ClusterMembership:
    """`listeners` are called on the loop with every delta, the first one (the whole image) during `start`.

    That is not before the controller has seen this broker. Until then the image may be from before a restart: as a
    leader in the epoch of that time it could write other records at offsets that its followers have already.
    """

    def __init__(
        self,
        store: MetadataStore,
        *,
        broker_id: NodeId,
        rules: ConfigRules,
        defaults: TopicDefaults | None = None,
        clock: Clock | None = None,
        random: Random | None = None,
        registration_timeout_ms: int = 60_000,
    ) -> None:
        """`rules` checks settings."""
        self.broker_id = broker_id
        self.listeners: list[DeltaListener] = []
        self.image = ClusterImage()
        self._store = store
        self._clock = clock or SystemClock()
        self._random = random or Random()
        self._registration_timeout_ms = registration_timeout_ms
        self._expected_cluster_id: str | None = None
        self._repository = MetadataRepository(store)
        self._machine = ControllerMachine(rules, self._random, defaults)
        self._registration = BrokerRegistration(self._repository, broker_id, self._clock)
        self.duty = ControllerDuty(self._repository, self._machine, broker_id, self._clock, self._in_thread)
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="metadata")
        self._queue: asyncio.Queue[_Item] = asyncio.Queue()
        self._worker: asyncio.Task[None] | None = None
        self._check_pending = False
        self._is_leaving = False
        self._has_joined = False
        self._end_watches: list[Callable[[], None]] = []
        self._waiting: dict[asyncio.Future[None], Callable[[ClusterImage], bool]] = {}

    @property
    def cluster_id(self) -> str:
        return self.image.cluster_id

    @property
    def is_controller(self) -> bool:
        return self.image.controller_id == self.broker_id

    @property
    def broker_epoch(self) -> int:
        """Of this broker's registration; the controller may not have seen it yet."""
        return self._registration.epoch

    @property
    def defaults(self) -> TopicDefaults:
        return self._machine.defaults

    @defaults.setter
    def defaults(self, defaults: TopicDefaults) -> None:
        self._machine.defaults = defaults

    async def start(
        self,
        endpoints: Sequence[BrokerEndpoint],
        *,
        rack: str | None = None,
        cluster_id: str | None = None,
        before_joining: Callable[[ClusterImage], Awaitable[None]] | None = None,
        directories: RegisteredDirectories | None = None,
    ) -> None:
        """Register, stand for controller, load the image and elect the leaders that are missing.

        `cluster_id` is the one of the data directories, if they have one. `before_joining` is awaited with the topics'
        settings known, but before this broker is registered: it opens the logs. Ends when the controller has seen this
        broker, or raises KafkaError.
        """
        loop = asyncio.get_running_loop()
        self._expected_cluster_id = cluster_id

        def on_session_state(state: SessionState) -> None:
            loop.call_soon_threadsafe(self._on_session_state, state)

        self._store.on_session_state = on_session_state
        try:
            cluster_id = await self._in_thread(self._open_store)
            if before_joining is not None:
                await before_joining(await self._in_thread(self._repository.load, cluster_id))
            self._registration.broker = BrokerImage(self.broker_id, tuple(endpoints), rack)
            self._registration.directories = directories or NoDirectories()
            await self._in_thread(self._registration.register)
            await self._load(cluster_id)
        except BaseException:
            await self._close()
            raise
        # A controller knows its own writes: it watches only brokers and rivals. The others watch its change log.
        self._watch(CHANGES, lambda: None if self.is_controller else self.check_soon())
        self._watch(tree.BROKER_IDS, self.check_soon)
        self._watch(tree.CONTROLLER, self.check_soon)
        self._worker = loop.create_task(self._work(), name="cluster")
        self.check_soon()  # what changed between loading and watching
        await self._wait_until_in_image()

    async def stop(self) -> None:
        """Leave the cluster; others see it at once."""
        self.leave()
        for end_watch in self._end_watches:
            end_watch()
        if self._worker is not None:
            self._worker.cancel()
            await asyncio.gather(self._worker, return_exceptions=True)
            self._worker = None
        while not self._queue.empty():
            _fail(self._queue.get_nowait(), KafkaError(ErrorCode.NOT_CONTROLLER, "The broker is shutting down."))
        await self._close()

    def leave(self) -> None:
        """This broker is about to stop: if its registration goes, it does not register again."""
        self._is_leaving = True

    def abandon(self) -> None:
        """End the thread without leaving the cluster, as a broker does that is killed. The loop has stopped."""
        self._thread.shutdown(cancel_futures=True)

    async def submit(self, command: Command) -> Any:
        """Carry out a command as controller, and return its reply. Raises KafkaError."""
        if self._worker is None or self._worker.done():
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "The broker is not running.")
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._queue.put_nowait((command, future))
        response = await future
        if isinstance(response, KafkaError):
            raise response
        return response

    def check_soon(self) -> None:
        """Something in the store may have changed: look at it."""
        if not self._check_pending:
            self._check_pending = True
            self._queue.put_nowait(None)

    async def wait_until(self, condition: Callable[[ClusterImage], bool], timeout_ms: int) -> None:
        """Until the image is so. Raises TimeoutError."""
        if condition(self.image):
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[future] = condition
        try:
            await asyncio.wait_for(future, timeout_ms / 1000)
        finally:
            del self._waiting[future]

    async def remove_broker(self, broker_id: NodeId, epoch: int) -> None:
        """The process of another broker is gone: end its registration, and its being controller."""
        await self._in_thread(self._repository.remove_registration, broker_id, epoch)
        self.check_soon()

    async def _in_thread(self, call: Callable[..., Result], *arguments: Any) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._thread, call, *arguments)

    def _open_store(self) -> str:
        self._store.open()
        wanted = self._expected_cluster_id or topic_id_text(self._random.randbytes(16))
        cluster_id = self._repository.prepare(wanted)
        if self._expected_cluster_id not in (None, cluster_id):
            raise InconsistentClusterIdError(
                f"the data directory belongs to cluster {self._expected_cluster_id}, the store to {cluster_id}"
            )
        return cluster_id

    async def _close(self) -> None:
        self.duty.end()
        self._store.on_session_state = ignore_session_state
        await self._in_thread(self._store.close)
        self._thread.shutdown(wait=False)

    async def _wait_until_in_image(self) -> None:
        """Others know this broker once the controller has seen it."""
        try:
            await self.wait_until(self._is_in, self._registration_timeout_ms)
        except TimeoutError:
            await self.stop()
            raise KafkaError(
                ErrorCode.BROKER_NOT_AVAILABLE,
                f"no controller has accepted broker {self.broker_id} within {self._registration_timeout_ms} ms",
            ) from None

    def _is_in(self, image: ClusterImage) -> bool:
        broker = image.brokers.get(self.broker_id)
        return broker is not None and broker.epoch == self.broker_epoch

    def _on_session_state(self, state: SessionState) -> None:
        logger.info("broker %d: the session with the metadata store is %s", self.broker_id, state.value)
        if state is not SessionState.SUSPENDED:
            self.check_soon()

    def _watch(self, path: str, react: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()

        def wake() -> None:
            loop.call_soon_threadsafe(react)

        self._end_watches.append(self._store.watch(path, wake))

    # ---- the worker

    async def _work(self) -> None:
        while True:
            item = await self._queue.get()
            try:
                if item is None:
                    await self._check_store()
                else:
                    await self._carry_out(*item)
            except asyncio.CancelledError:
                # Perhaps written, perhaps not: the requester retries, here after the restart or elsewhere.
                _fail(item, KafkaError(ErrorCode.NOT_CONTROLLER, "The broker is shutting down."))
                raise
            except KafkaError as error:
                _fail(item, error)
            except SessionExpiredError:
                await self._rejoin(item)
            except Exception as error:
                self._on_failure(item, error)

    def _on_failure(self, item: _Item, error: Exception) -> None:
        stored = isinstance(error, MetadataStoreError)
        if isinstance(error, StoreUnavailableError):
            logger.warning("broker %d cannot reach the metadata store: %s", self.broker_id, error)
        else:
            logger.error("the cluster's metadata could not be read or written", exc_info=error)
        code = ErrorCode.KAFKA_STORAGE_ERROR if stored else ErrorCode.UNKNOWN_SERVER_ERROR
        _fail(item, KafkaError(code, str(error)))
        if item is None or stored:
            asyncio.get_running_loop().call_later(RETRY_DELAY_SECONDS, self.check_soon)

    async def _carry_out(self, command: Command, future: "asyncio.Future[Any]") -> None:
        try:
            reply = await self.duty.carry_out(command)
        except ControllerMovedError:
            self.check_soon()
            raise KafkaError(ErrorCode.NOT_CONTROLLER) from None
        finally:
            self._publish(self._machine.take_delta())
        if not future.done():
            future.set_result(reply)

    async def _check_store(self) -> None:
        """Am I still registered, who is controller, what has it decided, which brokers are there?"""
        self._check_pending = False
        if not await self._in_thread(self._registration.is_current):
            raise SessionExpiredError(f"broker {self.broker_id} is no longer registered")
        await self._load(self.cluster_id)

    async def _load(self, cluster_id: str) -> None:
        for _ in range(MAX_ATTEMPTS):
            leader, epoch = await self._in_thread(self._repository.current_controller, self.broker_id)
            try:
                if leader == NO_CONTROLLER:
                    # Also while it is leaving: without a controller nobody could hand leaders over.
                    won = await self._in_thread(
                        self._repository.try_become_controller, self.broker_id, self._clock.now_ms()
                    )
                    if won is None:
                        continue
                    logger.info("broker %d is controller, epoch %d", self.broker_id, won)
                    await self.duty.take_over(cluster_id, won)
                elif leader == self.broker_id and not self.duty.is_on:
                    # Elected, but it never learnt of it.
                    await self._in_thread(self._repository.resign)
                    continue
                elif leader == self.broker_id:
                    await self.duty.look_at_brokers()
                else:
                    self.duty.end()
                    await self._follow(cluster_id, leader, epoch)
            except ControllerMovedError:
                self.duty.end()
                continue
            finally:
                self._publish(self._machine.take_delta())
            return
        raise MetadataStoreError("the controller changes faster than it can be read")

    async def _follow(self, cluster_id: str, controller_id: int, controller_epoch: int) -> None:
        """Apply what the controller has decided since; read everything if it was too much."""
        machine = self._machine
        changes = None
        if machine.image.cluster_id:
            changes = await self._in_thread(self._repository.changes_after, machine.image.change_number)
        if changes is None:
            machine.reset(await self._in_thread(self._repository.load, cluster_id))
        else:
            for number, records in changes:
                for record in records:
                    machine.apply(record)
                machine.on_written(number)
        machine.on_controller(controller_id, controller_epoch)

    async def _rejoin(self, item: _Item) -> None:
        """This broker has been fenced, and comes back under a new epoch; the image stays until there is a newer one."""
        _fail(item, KafkaError(ErrorCode.NOT_CONTROLLER))
        self.duty.end()
        if self._is_leaving:
            return
        logger.warning("broker %d is no longer registered in the metadata store: registering again", self.broker_id)
        try:
            cluster_id = await self._in_thread(self._open_store)
            await self._in_thread(self._registration.register)
            await self._load(cluster_id)
        except Exception as error:
            self._on_failure(None, error)

    def _publish(self, delta: Delta) -> None:
        """`delta` is what the machine applied; after it has loaded everything, the images are compared."""
        if delta.previous is not self.image:
            delta = Delta.between(self.image, delta.image)
        self.image = delta.image
        for future, condition in self._waiting.items():
            if not future.done() and condition(self.image):
                future.set_result(None)
        if not self._has_joined:
            if not self._is_in(self.image):
                return
            self._has_joined = True
            delta = Delta.between(ClusterImage(), self.image)
        if delta.is_empty:
            return
        for listener in self.listeners:
            try:
                listener(delta)
            except Exception:
                # The change is durable already: the other listeners and the requester must get it.
                logger.exception("a listener failed on a change of the cluster's metadata")


def _fail(item: _Item, error: KafkaError) -> None:
    if item is not None and not item[1].done():
        item[1].set_exception(error)
