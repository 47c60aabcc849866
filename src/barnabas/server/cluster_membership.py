"""A broker's membership in the cluster: registered in the store, candidate for controller, holder of the image.

The broker starts it before it serves and reads `image` from then on. All requests to the controller go through one
queue (`submit`, with a method for each in `controller_client.py`): decide on the loop, write in the store's thread (the
loop never waits for a disk flush), apply, call the listeners, respond. A lone broker is a cluster of one, the same way.

What may happen in between: the store's tree differs from the image, then the image is loaded and the command decided
again; another broker has become controller, then the request fails with NOT_CONTROLLER; the session is lost, then the
broker registers again under a new epoch. A broker that is not controller loads the image again when the store reports a
change.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from barnabas.clock import Clock, Random, SystemClock
from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.controller import commands
from barnabas.machines.controller.commands import Command, ConfigRules
from barnabas.machines.controller.machine import ControllerMachine
from barnabas.machines.controller.topics import TopicDefaults
from barnabas.metadata import tree
from barnabas.metadata.change_log import CHANGES
from barnabas.metadata.image import (
    NO_CONTROLLER,
    BrokerEndpoint,
    BrokerImage,
    ClusterImage,
    Delta,
)
from barnabas.metadata.repository import ControllerMovedError, MetadataRepository
from barnabas.metadata.store import (
    ConflictError,
    MetadataStore,
    MetadataStoreError,
    NodeExistsError,
    OutcomeUnknownError,
    SessionExpiredError,
)
from barnabas.types import NodeId, topic_id_text

logger = logging.getLogger(__name__)

Result = TypeVar("Result")
DeltaListener = Callable[[Delta], None]
MAX_ATTEMPTS = 5
RETRY_DELAY_SECONDS = 1.0


class InconsistentClusterIdError(Exception):
    """The data directory belongs to another cluster than the store."""


class ClusterMembership:
    """`listeners` are called on the loop with every delta, the first one (the whole image) during `start`."""

    def __init__(
        self,
        store: MetadataStore,
        *,
        broker_id: NodeId,
        rules: ConfigRules,
        defaults: TopicDefaults | None = None,
        clock: Clock | None = None,
        random: Random | None = None,
    ) -> None:
        """`rules` checks settings."""
        self.broker_id = broker_id
        self.listeners: list[DeltaListener] = []
        self.image = ClusterImage()
        self._store = store
        self._repository = MetadataRepository(store)
        self._broker = BrokerImage(broker_id, ())
        self._clock = clock or SystemClock()
        self._random = random or Random()
        self._expected_cluster_id: str | None = None
        self._machine = ControllerMachine(rules, self._random, defaults)
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="metadata")
        self._queue: asyncio.Queue[tuple[Command, asyncio.Future[Any]] | None] = asyncio.Queue()
        self._worker: asyncio.Task[None] | None = None
        self._check_pending = False
        self._end_watches: list[Callable[[], None]] = []

    @property
    def cluster_id(self) -> str:
        return self.image.cluster_id

    @property
    def is_controller(self) -> bool:
        return self.image.controller_id == self.broker_id

    @property
    def broker_epoch(self) -> int:
        broker = self.image.brokers.get(self.broker_id)
        return -1 if broker is None else broker.epoch

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
        directory_ids: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        """Register, stand for controller, load the image and elect the leaders that are missing.

        `cluster_id` is the one of the data directories, if they have one. `before_joining` is awaited with the topics'
        settings known, but before this broker is registered: it opens the logs. `directory_ids` are asked for then.
        """
        loop = asyncio.get_running_loop()
        self._broker = BrokerImage(self.broker_id, tuple(endpoints), rack)
        self._expected_cluster_id = cluster_id
        try:
            cluster_id = await self._in_thread(self._open_store)
            if before_joining is not None:
                await before_joining(await self._in_thread(self._repository.load, cluster_id))
            self._broker = self._broker._replace(directory_ids=tuple(directory_ids()))
            await self._join(cluster_id)
        except BaseException:
            await self._close()
            raise
        # A controller knows its own writes: it watches only brokers and rivals. The others watch its change log.
        self._watch(CHANGES, lambda: None if self.is_controller else self._on_store_changed())
        self._watch(tree.BROKER_IDS, self._on_store_changed)
        self._watch(tree.CONTROLLER, self._on_store_changed)
        self._worker = loop.create_task(self._work(), name="cluster")
        self._on_store_changed()  # what changed between loading and watching

    async def stop(self) -> None:
        """Leave the cluster; others see it at once."""
        for end_watch in self._end_watches:
            end_watch()
        if self._worker is not None:
            self._worker.cancel()
            await asyncio.gather(self._worker, return_exceptions=True)
            self._worker = None
        while not self._queue.empty():
            waiting = self._queue.get_nowait()
            if waiting is not None and not waiting[1].done():
                waiting[1].set_exception(KafkaError(ErrorCode.NOT_CONTROLLER, "The broker is shutting down."))
        await self._close()

    def abandon(self) -> None:
        """End the thread without leaving the cluster, as a broker does that is killed. The loop has stopped."""
        self._thread.shutdown(cancel_futures=True)

    async def submit(self, command: Command) -> Any:
        if self._worker is None or self._worker.done():
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "The broker is not running.")
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._queue.put_nowait((command, future))
        response = await future
        if isinstance(response, KafkaError):
            raise response
        return response

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
        await self._in_thread(self._store.close)
        self._thread.shutdown(wait=False)

    async def _join(self, cluster_id: str) -> None:
        try:
            await self._in_thread(self._repository.register_broker, self._broker, self._clock.now_ms())
        except NodeExistsError as error:
            raise KafkaError(
                ErrorCode.DUPLICATE_BROKER_REGISTRATION, f"A broker with id {self.broker_id} is running already."
            ) from error
        await self._load(cluster_id)

    async def _load(self, cluster_id: str) -> None:
        """Stand for controller, read the store, and as controller elect whatever has no leader."""
        now_ms = self._clock.now_ms()
        await self._in_thread(self._repository.try_become_controller, self.broker_id, now_ms)
        await self._reload(cluster_id)
        if self.is_controller:
            logger.info("broker %d is controller, epoch %d", self.broker_id, self.image.controller_epoch)

    async def _reload(self, cluster_id: str) -> None:
        for _ in range(MAX_ATTEMPTS):
            leads, _ = await self._in_thread(self._repository.load_controller)
            try:
                if leads == self.broker_id:
                    await self._in_thread(self._repository.complete_deletions)
                image = await self._in_thread(self._repository.load, cluster_id)
                self._machine.reset(image)
                if leads == self.broker_id:
                    brokers = await self._in_thread(self._repository.load_brokers)
                    decision = self._machine.decide(commands.TakeOver(brokers), self._clock.now_ms())
                    number = await self._in_thread(self._repository.write, decision.records, image)
                    for record in decision.records:
                        self._machine.apply(record)
                    self._machine.on_written(number)
            except (ConflictError, ControllerMovedError):
                continue
            self._machine.take_delta()
            self._publish(Delta.between(self.image, self._machine.image))
            return
        raise MetadataStoreError("the store changes faster than it can be read")

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
            except SessionExpiredError:
                await self._rejoin(item)
            except Exception as error:
                logger.exception("the cluster's metadata could not be read or written")
                stored = isinstance(error, MetadataStoreError)
                code = ErrorCode.KAFKA_STORAGE_ERROR if stored else ErrorCode.UNKNOWN_SERVER_ERROR
                _fail(item, KafkaError(code, str(error)))
                if item is None:
                    self._check_again_later()

    async def _carry_out(self, command: Command, future: "asyncio.Future[Any]") -> None:
        for _ in range(MAX_ATTEMPTS):
            if not self.is_controller:
                break
            image = self._machine.image
            decision = self._machine.decide(command, self._clock.now_ms())
            number = image.change_number
            try:
                if decision.records:
                    number = await self._in_thread(self._repository.write, decision.records, image)
            except (ConflictError, OutcomeUnknownError) as error:
                logger.warning("the store was perhaps changed by another process (%s): loading it again", error)
                await self._reload(self.cluster_id)
                continue
            except ControllerMovedError:
                await self._reload(self.cluster_id)
                break
            for record in decision.records:
                self._machine.apply(record)
            self._machine.on_written(number)
            self._publish(self._machine.take_delta())
            if not future.done():
                future.set_result(decision.replies[0][1])
            return
        _fail((command, future), KafkaError(ErrorCode.NOT_CONTROLLER))

    def _watch(self, path: str, react: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()

        def wake() -> None:
            loop.call_soon_threadsafe(react)

        self._end_watches.append(self._store.watch(path, wake))

    def _on_store_changed(self) -> None:
        if not self._check_pending:
            self._check_pending = True
            self._queue.put_nowait(None)

    def _check_again_later(self) -> None:
        asyncio.get_running_loop().call_later(RETRY_DELAY_SECONDS, self._on_store_changed)

    async def _check_store(self) -> None:
        """Something changed: am I still registered, who is controller, which brokers are there?"""
        self._check_pending = False
        if not await self._in_thread(self._repository.is_registered, self.broker_id):
            raise SessionExpiredError(f"broker {self.broker_id} is no longer registered")
        controller_id, _ = await self._in_thread(self._repository.load_controller)
        if controller_id == NO_CONTROLLER:
            await self._load(self.cluster_id)
        elif controller_id != self.broker_id or not self.is_controller:
            await self._reload(self.cluster_id)
        if self.is_controller:
            brokers = await self._in_thread(self._repository.load_brokers)
            nobody = asyncio.get_running_loop().create_future()
            await self._carry_out(commands.BrokersChanged(brokers), nobody)

    async def _rejoin(self, item: tuple[Command, "asyncio.Future[Any]"] | None) -> None:
        """The session is over: this broker has been fenced, and comes back under a new epoch."""
        _fail(item, KafkaError(ErrorCode.NOT_CONTROLLER))
        logger.warning("broker %d lost its session with the metadata store: registering again", self.broker_id)
        try:
            cluster_id = await self._in_thread(self._open_store)
            await self._join(cluster_id)
        except Exception:
            logger.exception("broker %d could not register again", self.broker_id)
            self._check_again_later()

    def _publish(self, delta: Delta) -> None:
        self.image = delta.image
        if delta.is_empty:
            return
        for listener in self.listeners:
            try:
                listener(delta)
            except Exception:
                # The change is durable already: the other listeners and the requester must get it.
                logger.exception("a listener failed on a change of the cluster's metadata")


def _fail(item: tuple[Command, "asyncio.Future[Any]"] | None, error: KafkaError) -> None:
    if item is not None and not item[1].done():
        item[1].set_exception(error)
