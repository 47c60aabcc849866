"""The group coordinator of this broker: the runtime over `__consumer_offsets` with a `GroupShard` in each partition.

The broker makes it and passes on every change of the cluster's image; the handlers of group APIs submit to it.
"""

from collections.abc import Callable, Generator, Sequence, Set
from concurrent.futures import Executor
from functools import partial
from typing import Any, TypeVar

from barnabas.clock import Clock, Random
from barnabas.config.broker import BrokerConfig
from barnabas.errors import ErrorCode
from barnabas.machines.coordinator import CoordinatorMachine
from barnabas.machines.group.settings import GroupSettings
from barnabas.machines.group.shard import GroupShard
from barnabas.metadata.image import Delta
from barnabas.net.deferred import Deferred, then, when_all
from barnabas.net.timers import Timers
from barnabas.protocol.messages import consumer_group_records as consumer
from barnabas.protocol.messages.group_metadata_record import GroupMetadataKey, GroupMetadataValue
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.protocol.messages.offset_commit_record import OffsetCommitKey, OffsetCommitValue
from barnabas.records import CompressionType
from barnabas.server.auto_topic_creation import GROUP_METADATA_TOPIC
from barnabas.server.coordinator_codec import CoordinatorCodec
from barnabas.server.coordinator_shard import CoordinatorShard
from barnabas.server.replicas import Replicas
from barnabas.server.request import Operation, RequestContext, Resource
from barnabas.server.runtime import CoordinatorRuntime
from barnabas.types import GroupId, LeaderEpoch, NodeId

CODEC = CoordinatorCodec(
    [
        (OffsetCommitKey, OffsetCommitValue),
        (GroupMetadataKey, GroupMetadataValue),
        (consumer.ConsumerGroupMetadataKey, consumer.ConsumerGroupMetadataValue),
        (consumer.ConsumerGroupPartitionMetadataKey, consumer.ConsumerGroupPartitionMetadataValue),
        (consumer.ConsumerGroupMemberMetadataKey, consumer.ConsumerGroupMemberMetadataValue),
        (consumer.ConsumerGroupTargetAssignmentMetadataKey, consumer.ConsumerGroupTargetAssignmentMetadataValue),
        (consumer.ConsumerGroupTargetAssignmentMemberKey, consumer.ConsumerGroupTargetAssignmentMemberValue),
        (consumer.ConsumerGroupCurrentMemberAssignmentKey, consumer.ConsumerGroupCurrentMemberAssignmentValue),
        (consumer.ConsumerGroupRegularExpressionKey, consumer.ConsumerGroupRegularExpressionValue),
    ]
).read_also({0: 1})


GROUPS_PER_STEP = 200
"""Of a request that names many groups, so many are worked on before others are served."""

Item = TypeVar("Item")
Response = TypeVar("Response")


class GroupCoordinator:
    def __init__(
        self,
        config: BrokerConfig,
        *,
        replicas: Replicas,
        clock: Clock,
        timers: Timers,
        executor: Executor,
        random: Random,
    ) -> None:
        self._settings = GroupSettings.of(config)
        self._random = random
        self._clock = clock
        self.runtime = CoordinatorRuntime(
            GROUP_METADATA_TOPIC,
            CODEC,
            self._make_machine,
            node_id=NodeId(config.node_id),
            replicas=replicas,
            clock=clock,
            timers=timers,
            executor=executor,
            partition_count=config.offsets_topic_num_partitions,
            carry_out=_nothing_to_carry_out,
            too_long=ErrorCode.INVALID_GROUP_ID,
            load_buffer_bytes=config.offsets_load_buffer_size,
            commit_timeout_ms=config.offsets_commit_timeout_ms,
            compression=CompressionType(config.offsets_topic_compression_codec),
        )
        self.submit = self.runtime.submit
        self.partition_for = self.runtime.partition_for

    def heartbeat(self, request: HeartbeatRequest) -> HeartbeatResponse | None:
        """The response to a member of a group at rest, without a step of the shard; None: `submit` it."""
        shard = self.runtime.shard_of(request.group_id)
        if shard is None or not shard.is_settled:
            return None
        assert isinstance(shard.machine, GroupShard)
        return shard.machine.heartbeat_at_rest(request, self._clock.monotonic_ms())

    def submit_each(
        self,
        context: RequestContext,
        group_ids: Sequence[GroupId],
        operation: Operation,
        command: Callable[[tuple[GroupId, ...]], object],
        fail: Callable[[tuple[GroupId, ...], ErrorCode], list[Item]],
        merge: Callable[[list[Item]], Response],
    ) -> Response | Deferred[Response]:
        """For requests that name many groups: `merge` gets all responses in order.

        Of a group that the client may not do `operation` to, the shard does not hear.
        `command` makes a shard's command for some ids, whose response is a list; `fail` makes such a list for a code.
        """

        def work() -> Generator[None, None, list[list[Item] | Deferred[list[Item]]]]:
            parts = []
            for start in range(0, len(group_ids), GROUPS_PER_STEP):
                some = group_ids[start : start + GROUPS_PER_STEP]
                denied = {each for each in some if not context.may(operation, Resource.group(each))}
                parts.append(self._submit_some(some, denied, command, fail))
                yield
            return parts

        def finish(parts: list[list[Item] | Deferred[list[Item]]]) -> Response | Deferred[Response]:
            return when_all(parts, lambda lists: merge([item for some in lists for item in some]))

        return then(context.in_slices(work()), finish)

    def _submit_some(
        self,
        group_ids: Sequence[GroupId],
        denied: Set[GroupId],
        command: Callable[[tuple[GroupId, ...]], object],
        fail: Callable[[tuple[GroupId, ...], ErrorCode], list[Item]],
    ) -> list[Item] | Deferred[list[Item]]:
        """Each shard is asked once."""
        by_partition: dict[int, list[GroupId]] = {}
        for group_id in dict.fromkeys(group_ids):
            if group_id not in denied:
                by_partition.setdefault(self.partition_for(group_id), []).append(group_id)
        shares = [tuple(some) for some in by_partition.values()]
        responses = [self.submit(some[0], command(some), partial(fail, some)) for some in shares]

        def join(lists: list[list[Item]]) -> list[Item]:
            found = {
                name: item
                for some, items in zip(shares, lists, strict=True)
                for name, item in zip(some, items, strict=True)
            }
            for group_id in denied:
                found[group_id] = fail((group_id,), ErrorCode.GROUP_AUTHORIZATION_FAILED)[0]
            return [found[group_id] for group_id in group_ids]

        return when_all(responses, join)

    def shards(self) -> list[CoordinatorShard]:
        return list(self.runtime)

    def on_delta(self, delta: Delta) -> None:
        self.runtime.on_delta(delta)

    async def stop(self) -> None:
        await self.runtime.stop()

    def _make_machine(self, partition: int, leader_epoch: LeaderEpoch) -> CoordinatorMachine:
        return GroupShard(self._settings, self._random)


def _nothing_to_carry_out(partition: int, request: Any) -> None:
    raise AssertionError(f"a group shard requested {request!r}")
