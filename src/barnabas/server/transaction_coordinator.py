"""The transaction coordinator of this broker: the runtime over `__transaction_state`, and the markers that it sends.

The broker makes it and passes on every change of the cluster's image; the handlers of transaction APIs submit to it.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor

from barnabas.clock import Clock
from barnabas.config.broker import BrokerConfig
from barnabas.errors import ErrorCode
from barnabas.machines.coordinator import CoordinatorMachine
from barnabas.machines.txn.commands import SendMarkers
from barnabas.machines.txn.settings import TransactionSettings
from barnabas.machines.txn.shard import TransactionShard
from barnabas.metadata.image import ClusterImage, Delta
from barnabas.net.timers import Timers
from barnabas.protocol.messages.transaction_log_record import TransactionLogKey, TransactionLogValue
from barnabas.server.auto_topic_creation import TRANSACTION_STATE_TOPIC
from barnabas.server.broker_links import BrokerLinks
from barnabas.server.coordinator_codec import CoordinatorCodec
from barnabas.server.coordinator_shard import CoordinatorShard
from barnabas.server.group_coordinator import GroupCoordinator
from barnabas.server.marker_sender import MarkerSender
from barnabas.server.producer_ids import ProducerIds
from barnabas.server.remote_verification import RemoteVerification
from barnabas.server.replicas import Replicas
from barnabas.server.runtime import CoordinatorRuntime
from barnabas.server.transaction_verification import TransactionVerification
from barnabas.server.txn_markers import MarkerWriter
from barnabas.types import LeaderEpoch, NodeId

CODEC = CoordinatorCodec([(TransactionLogKey, TransactionLogValue)])


class TransactionCoordinator:
    def __init__(
        self,
        config: BrokerConfig,
        *,
        replicas: Replicas,
        groups: GroupCoordinator,
        producer_ids: ProducerIds,
        image: Callable[[], ClusterImage],
        links: BrokerLinks,
        clock: Clock,
        timers: Timers,
        executor: Executor,
    ) -> None:
        self._settings = TransactionSettings.of(config)
        self._producer_ids = producer_ids
        self._getting_ids: asyncio.Task[None] | None = None
        self.runtime = CoordinatorRuntime(
            TRANSACTION_STATE_TOPIC,
            CODEC,
            self._make_machine,
            node_id=NodeId(config.node_id),
            replicas=replicas,
            clock=clock,
            timers=timers,
            executor=executor,
            partition_count=config.transaction_state_log_num_partitions,
            carry_out=self._carry_out,
            too_long=ErrorCode.INVALID_REQUEST,
            load_buffer_bytes=config.transaction_state_log_load_buffer_size,
        )
        self.submit = self.runtime.submit
        self.partition_for = self.runtime.partition_for
        self.verification = TransactionVerification(self.runtime, RemoteVerification(links))
        self.markers = MarkerWriter(replicas, groups.runtime, clock, self.verification.end)
        self._sender = MarkerSender(NodeId(config.node_id), self.markers, self.runtime, links, timers, image)

    def shards(self) -> list[CoordinatorShard]:
        return list(self.runtime)

    def on_delta(self, delta: Delta) -> None:
        self.runtime.on_delta(delta)

    async def stop(self) -> None:
        await self.runtime.stop()
        if self._getting_ids is not None:
            self._getting_ids.cancel()
            await asyncio.gather(self._getting_ids, return_exceptions=True)

    def _make_machine(self, partition: int, leader_epoch: LeaderEpoch) -> CoordinatorMachine:
        return TransactionShard(leader_epoch, self._settings, self._take_producer_id)

    def _carry_out(self, partition: int, request: SendMarkers) -> None:
        self._sender.send(partition, request)

    def _take_producer_id(self) -> int | None:
        producer_id = self._producer_ids.take()
        if producer_id is None and (self._getting_ids is None or self._getting_ids.done()):
            self._getting_ids = asyncio.get_running_loop().create_task(self._producer_ids.ready())
        return producer_id
