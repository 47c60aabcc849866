"""What this broker does while it is controller: takes over, carries out commands, reacts to brokers.

`cluster_membership.py` calls it from its worker, one call at a time. Decide on the loop, write in the store's thread,
apply. If the store is not as the image says, or the outcome of a write is unknown, everything is loaded before anything
else is decided; if another broker is controller, every call raises ControllerMovedError.
"""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from barnabas.clock import Clock
from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.controller import commands
from barnabas.machines.controller.commands import Command
from barnabas.machines.controller.machine import ControllerMachine
from barnabas.metadata.image import BrokerImage
from barnabas.metadata.repository import MetadataRepository
from barnabas.metadata.store import ConflictError, MetadataStoreError, OutcomeUnknownError
from barnabas.types import NodeId

logger = logging.getLogger(__name__)

Result = TypeVar("Result")
MAX_ATTEMPTS = 5


class InThread(Protocol):
    def __call__(self, call: Callable[..., Result], *arguments: Any) -> Awaitable[Result]: ...


class ControllerDuty:
    def __init__(
        self,
        repository: MetadataRepository,
        machine: ControllerMachine,
        broker_id: NodeId,
        clock: Clock,
        in_thread: InThread,
    ) -> None:
        self._repository = repository
        self._machine = machine
        self._broker_id = broker_id
        self._clock = clock
        self._in_thread = in_thread
        self._cluster_id = ""
        self._epoch = -1
        self._is_loaded = False
        self._seen: tuple[BrokerImage, ...] = ()

    @property
    def is_on(self) -> bool:
        return self._epoch >= 0

    def end(self) -> None:
        self._epoch = -1
        self._is_loaded = False

    async def take_over(self, cluster_id: str, controller_epoch: int) -> None:
        """This broker has just been elected. Afterwards every partition has a leader that can have one."""
        self._cluster_id, self._epoch = cluster_id, controller_epoch
        await self._load()

    async def look_at_brokers(self) -> None:
        """Brokers may have come or gone."""
        if not self._is_loaded:
            await self._load()
            return
        brokers = await self._in_thread(self._repository.load_brokers)
        if brokers == self._seen:
            return
        try:
            await self._decide_and_write(commands.BrokersChanged(brokers))
        except (ConflictError, OutcomeUnknownError) as error:
            # Not decided again: meanwhile others may have come and gone. Loading looks at them again.
            _log_reload(error)
            await self._load()
            return
        self._seen = brokers
        await self.carry_out(commands.AddMissingReplicas())

    async def carry_out(self, command: Command) -> Any:
        """The reply, once what was decided is written and applied. Raises MetadataStoreError."""
        for _ in range(MAX_ATTEMPTS):
            if not self.is_on:
                raise KafkaError(ErrorCode.NOT_CONTROLLER)
            if not self._is_loaded:
                await self._load()
            try:
                return await self._decide_and_write(command)
            except (ConflictError, OutcomeUnknownError) as error:
                _log_reload(error)
        raise MetadataStoreError("the store is changed by another process again and again")

    async def _load(self) -> None:
        repository = self._repository
        for _ in range(MAX_ATTEMPTS):
            await self._in_thread(repository.complete_deletions)
            image = await self._in_thread(repository.load, self._cluster_id)
            brokers = await self._in_thread(repository.load_brokers)
            self._machine.reset(replace(image, controller_id=self._broker_id, controller_epoch=self._epoch))
            try:
                await self._decide_and_write(commands.TakeOver(brokers))
                await self._decide_and_write(commands.AddMissingReplicas())
            except (ConflictError, OutcomeUnknownError):
                continue
            self._is_loaded, self._seen = True, brokers
            return
        raise MetadataStoreError("the store changes faster than it can be read")

    async def _decide_and_write(self, command: Command) -> Any:
        machine = self._machine
        decision = machine.decide(command, self._clock.now_ms())
        if decision.records:
            try:
                number = await self._in_thread(self._repository.write, decision.records, machine.image)
            except MetadataStoreError:
                # A part may be written.
                self._is_loaded = False
                raise
            for record in decision.records:
                machine.apply(record)
            machine.on_written(number)
        return decision.replies[0][1]


def _log_reload(error: Exception) -> None:
    logger.warning("the store was perhaps changed by another process (%s): loading it again", error)
