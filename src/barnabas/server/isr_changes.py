"""Changes of in-sync replicas that leaders on this broker ask the controller for (AlterPartition, KIP-497).

`PartitionState` proposes a change, at a follower's fetch or at the tick for lagging replicas; here the proposals of one
turn of the loop become one request, and only one is on its way at a time. The new image is the truth: a response only
says what has to be tried again or given up. While the outcome is not known the proposal stays, because it may have
taken effect: current and proposed members both hold the high watermark.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.controller.commands import IsrChange, IsrResult
from barnabas.net.link import LinkError
from barnabas.server.hosted_partition import HostedPartition
from barnabas.server.unopened_partition import UnopenedPartition
from barnabas.types import NodeId

logger = logging.getLogger(__name__)

Proposer: TypeAlias = HostedPartition | UnopenedPartition
AlterPartition = Callable[[NodeId, int, Sequence[IsrChange]], Awaitable[tuple[IsrResult, ...]]]

FIRST_PAUSE_S = 0.05
MAX_PAUSE_S = 1.0
REJECTED = frozenset({ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INVALID_REQUEST})
"""The change did not happen, and the ISR is the one that this broker knows."""
OVERTAKEN = frozenset(
    {
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.NEW_LEADER_ELECTED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
    }
)
"""The controller knows something newer, which is on its way to this broker."""


class IsrChanges:
    def __init__(self, alter_partition: AlterPartition, broker_id: NodeId, broker_epoch: Callable[[], int]) -> None:
        self._alter_partition = alter_partition
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._waiting: dict[tuple[bytes, int], Proposer] = {}
        self._sending: asyncio.Task[None] | None = None
        self._stopped = False

    def propose(self, hosted: Proposer) -> None:
        """Ask the controller for the ISR that the partition's state proposes."""
        self._waiting[hosted.topic_id, hosted.partition] = hosted
        if self._sending is None and not self._stopped:
            self._sending = asyncio.get_running_loop().create_task(self._send_all(), name="changes of in-sync replicas")

    async def stop(self) -> None:
        self._stopped = True
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.gather(self._sending, return_exceptions=True)

    async def _send_all(self) -> None:
        pause_s = FIRST_PAUSE_S
        try:
            while self._waiting:
                batch, self._waiting = self._waiting, {}
                if await self._send(batch):
                    pause_s = FIRST_PAUSE_S
                else:
                    await asyncio.sleep(pause_s)
                    pause_s = min(2 * pause_s, MAX_PAUSE_S)
        finally:
            self._sending = None

    async def _send(self, batch: dict[tuple[bytes, int], Proposer]) -> bool:
        """Whether nothing has to be tried again."""
        broker_epoch = self._broker_epoch()
        changes = {key: change for key, hosted in batch.items() if (change := _change(hosted, broker_epoch))}
        if not changes:
            return True
        try:
            results = await self._alter_partition(self._broker_id, broker_epoch, tuple(changes.values()))
        except Exception as error:
            # Whatever it is, the proposal stays open until the controller has decided: it must be sent again.
            unexpected = not isinstance(error, KafkaError | LinkError | OSError)
            logger.warning(
                "%d change(s) of in-sync replicas could not be requested: %s",
                len(changes),
                error,
                exc_info=unexpected,
            )
            for key in changes:
                self._waiting.setdefault(key, batch[key])
            return False
        tried_again = False
        for result in results:
            key = (result.topic_id, result.partition)
            if key in changes and self._on_result(batch[key], changes[key], result):
                self._waiting.setdefault(key, batch[key])
                tried_again = True
        return not tried_again

    def _on_result(self, hosted: Proposer, change: IsrChange, result: IsrResult) -> bool:
        """Whether the change has to be tried again."""
        state, error = hosted.state, result.error
        if state.partition_epoch != change.partition_epoch or state.proposed_isr != change.in_sync_replicas:
            return False  # a newer image has decided meanwhile
        if error in OVERTAKEN:
            return False
        if error is ErrorCode.NONE:
            if result.partition_epoch == change.partition_epoch:
                # The ISR was that already: nothing was written, so no image will end the proposal.
                hosted.on_isr_change_rejected()
            return False
        if error in REJECTED:
            logger.info(
                "%s-%d: in-sync replicas %s were rejected: %s",
                hosted.topic,
                hosted.partition,
                change.in_sync_replicas,
                error.name,
            )
            hosted.on_isr_change_rejected()
            return False
        return True


def _change(hosted: Proposer, own_epoch: int) -> IsrChange | None:
    state = hosted.state
    proposed = state.proposed_isr
    if proposed is None or not state.is_leader:
        return None
    return IsrChange(
        hosted.topic_id,
        hosted.partition,
        state.leader_epoch,
        state.partition_epoch,
        proposed,
        state.broker_epochs(proposed, own_epoch),
    )
