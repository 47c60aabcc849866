"""Replicas that move between brokers: begun with a throttle, watched until they are there, then tidied up.

One task watches whatever this console began: when a move is done its throttle is removed and the preferred leaders are
elected. Moves of others are shown, and cancelled if asked, but never touched by themselves.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence

from barnabas.client.admin.aio import Admin
from barnabas.client.admin.types import ConfigResource
from barnabas.client.balancing import PlacedPartition
from barnabas.client.errors import AuthenticationError, ClosedError
from barnabas.client.replica_throttles import BROKER_THROTTLES, Move, clear_throttle, set_throttle
from barnabas.errors import ErrorCode, KafkaError
from barnabas.types import TopicPartition

POLL_SECONDS = 1.0
PARTITIONS_PER_REQUEST = 500
Plan = Mapping[TopicPartition, Sequence[int]]
_log = logging.getLogger("barnabas.console")


class Mover:
    """Belongs to one console."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        """The moves go on without it; a throttle stays until somebody removes it."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def begin(
        self,
        admin: Admin,
        partitions: Mapping[TopicPartition, PlacedPartition],
        plan: Plan,
        brokers: Sequence[int],
        throttle: int | None,
    ) -> None:
        if throttle is not None:
            changes = set_throttle(_copies(partitions, plan), throttle)
            if changes:
                await admin.alter_configs(changes)
        keys = sorted(plan)
        for first in range(0, len(keys), PARTITIONS_PER_REQUEST):
            some = keys[first : first + PARTITIONS_PER_REQUEST]
            await admin.alter_partition_reassignments({key: list(plan[key]) for key in some})
        task = asyncio.create_task(self._finish(admin, keys, brokers if throttle is not None else ()))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _finish(self, admin: Admin, keys: Sequence[TopicPartition], throttled: Sequence[int]) -> None:
        try:
            while await self._is_moving(admin, keys):  # noqa: ASYNC110 - only the cluster knows when it is over
                await asyncio.sleep(POLL_SECONDS)
            if throttled:
                await admin.alter_configs(clear_throttle((key.topic for key in keys), throttled))
            await admin.elect_leaders(keys)
        except KafkaError as error:
            left = "; the throttle is still there" if throttled else ""
            _log.warning("%d partitions that were to be moved: %s%s", len(keys), error.message, left)

    async def _is_moving(self, admin: Admin, keys: Sequence[TopicPartition]) -> bool:
        """Raises KafkaError once the rights that began the moves have ended: with a logout, or in the cluster."""
        try:
            return bool(await admin.list_partition_reassignments(keys))
        except (ClosedError, AuthenticationError):
            raise
        except KafkaError as error:
            if error.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
                raise
            return True  # the cluster may be away for a while


async def throttle_in_force(admin: Admin, brokers: Sequence[int]) -> int | None:
    """The least of the brokers; None if there is none."""
    found = await admin.describe_configs(map(ConfigResource.broker, brokers), names=BROKER_THROTTLES)
    values = [int(each.value) for of in found.values() for each in of.values() if each.value and not each.is_default]
    return min(values, default=None)


def busiest_bytes(partitions: Mapping[TopicPartition, PlacedPartition], plan: Plan) -> int:
    """What the broker with most to copy has to take in or give away: at a throttle it decides how long it takes."""
    taken: dict[int, int] = {}
    given: dict[int, int] = {}
    for key, move in _copies(partitions, plan).items():
        size = partitions[key].size
        source = partitions[key].replicas[0]
        for broker in move.destinations:
            taken[broker] = taken.get(broker, 0) + size
            given[source] = given.get(source, 0) + size
    return max([*taken.values(), *given.values()], default=0)


def _copies(partitions: Mapping[TopicPartition, PlacedPartition], plan: Plan) -> dict[TopicPartition, Move]:
    moves = {}
    for key, holders in plan.items():
        sources = set(partitions[key].replicas)
        if set(holders) - sources:
            moves[key] = Move(sources, set(holders) - sources)
    return moves
