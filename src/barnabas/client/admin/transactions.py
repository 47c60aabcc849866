"""Transactions: list, describe, fence producers, and end those that hang.

Every broker lists what it coordinates; a transaction is described by its coordinator; the producers of a partition, and
markers written by hand, are the business of the partition's leader.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from barnabas.client.admin.attempts import RETRIED_BRIEFLY, Outcome
from barnabas.client.admin.errors import admin_error, check
from barnabas.client.admin.records import by_topic, named_partition
from barnabas.client.admin.requests import AdminRequests, Locate, several
from barnabas.client.admin.types import (
    FencedProducer,
    ProducerState,
    TransactionDescription,
    TransactionListing,
    TransactionState,
)
from barnabas.client.cluster_client import CoordinatorKind
from barnabas.client.retry import Deadline
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.messages import describe_producers as producer_messages
from barnabas.protocol.messages import describe_transactions as transaction_messages
from barnabas.protocol.messages import list_transactions as list_messages
from barnabas.protocol.messages import write_txn_markers as marker_messages
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.types import TopicPartition

TRANSACTION = CoordinatorKind.TRANSACTION
ANY_DURATION = -1


@dataclass(frozen=True, slots=True)
class TransactionAdmin:
    """Transactions and the producers of partitions."""

    requests: AdminRequests

    async def list_transactions(
        self,
        *,
        states: Iterable[TransactionState | str] = (),
        producer_ids: Iterable[int] = (),
        longer_than_ms: int | None = None,
        transactional_id_pattern: str | None = None,
        timeout: float | None = None,
    ) -> dict[str, TransactionListing]:
        """Transactional ids that the brokers know.

        All, or by state, producer id, age of the open transaction, or a pattern of the id (RE2).
        """
        deadline = self.requests.deadline(timeout)
        request = list_messages.ListTransactionsRequest(
            state_filters=[str(TransactionState(each)) for each in several(states)],
            producer_id_filters=list(producer_ids),
            duration_filter=ANY_DURATION if longer_than_ms is None else longer_than_ms,
            transactional_id_pattern=transactional_id_pattern,
        )
        oldest = 2 if transactional_id_pattern is not None else 1 if longer_than_ms is not None else 0

        async def send_to(node_id: int, keys: list[int]) -> Mapping[int, list[TransactionListing] | KafkaError]:
            response = await self.requests.send(node_id, request, deadline, min_version=oldest)
            check(response.error_code)
            if response.unknown_state_filters:
                unknown = ", ".join(response.unknown_state_filters)
                raise KafkaError(ErrorCode.INVALID_REQUEST, f"the broker does not know these states: {unknown}")
            return {node_id: [_listing(each, node_id) for each in response.transaction_states]}

        listed = (
            await self.requests.call_each(
                await self.requests.brokers(deadline), self.requests.on_brokers, send_to, deadline
            )
        ).all()
        found = {each.transactional_id: each for of_broker in listed.values() for each in of_broker}
        return {transactional_id: found[transactional_id] for transactional_id in sorted(found)}

    async def describe_transaction(
        self, transactional_id: str, *, timeout: float | None = None
    ) -> TransactionDescription:
        """State, producer and partitions of a transactional id."""
        return (await self._describe_transactions([transactional_id], self.requests.deadline(timeout))).only(
            transactional_id
        )

    async def describe_transactions(
        self, transactional_ids: Iterable[str], *, timeout: float | None = None
    ) -> dict[str, TransactionDescription]:
        """The same of several transactional ids."""
        return (await self._describe_transactions(several(transactional_ids), self.requests.deadline(timeout))).all()

    async def _describe_transactions(
        self, transactional_ids: Iterable[str], deadline: Deadline
    ) -> Outcome[str, TransactionDescription]:
        async def send_to(node_id: int, requested: list[str]) -> Mapping[str, TransactionDescription | KafkaError]:
            request = transaction_messages.DescribeTransactionsRequest(transactional_ids=requested)
            response = await self.requests.send(node_id, request, deadline)
            return {
                each.transactional_id: _description(each, self.requests.node(node_id).id)
                for each in response.transaction_states
            }

        on_retry = self.requests.forget_coordinator(TRANSACTION)
        return await self.requests.call_each(
            transactional_ids,
            self.requests.on_coordinators(TRANSACTION, deadline),
            send_to,
            deadline,
            on_retry=on_retry,
        )

    async def fence_producers(
        self, transactional_ids: Iterable[str], *, timeout: float | None = None
    ) -> dict[str, FencedProducer]:
        """Shut out whoever uses these transactional ids now; an open transaction is aborted."""
        deadline = self.requests.deadline(timeout)

        async def send_to(node_id: int, requested: list[str]) -> Mapping[str, FencedProducer | KafkaError]:
            results: dict[str, FencedProducer | KafkaError] = {}
            for transactional_id in requested:
                request = InitProducerIdRequest(
                    transactional_id=transactional_id, transaction_timeout_ms=self.requests.request_timeout_ms(deadline)
                )
                response = await self.requests.send(node_id, request, deadline)
                results[transactional_id] = (
                    admin_error(response.error_code, transactional_id=transactional_id)
                    if response.error_code
                    else FencedProducer(producer_id=response.producer_id, producer_epoch=response.producer_epoch)
                )
            return results

        on_retry = self.requests.forget_coordinator(TRANSACTION)
        locate = self.requests.on_coordinators(TRANSACTION, deadline)
        return (
            await self.requests.call_each(several(transactional_ids), locate, send_to, deadline, on_retry=on_retry)
        ).all()

    async def describe_producers(
        self,
        partitions: Iterable[tuple[str, int]],
        *,
        broker_id: int | None = None,
        timeout: float | None = None,
    ) -> dict[TopicPartition, tuple[ProducerState, ...]]:
        """The producers that each partition remembers, as its leader (or the replica on `broker_id`) knows them."""
        deadline = self.requests.deadline(timeout)
        wanted = [named_partition(each) for each in partitions]
        return (await self._describe_producers(wanted, broker_id, deadline)).all()

    async def _describe_producers(
        self, wanted: list[TopicPartition], broker_id: int | None, deadline: Deadline
    ) -> Outcome[TopicPartition, tuple[ProducerState, ...]]:
        async def on_that_broker(keys: list[TopicPartition]) -> Mapping[TopicPartition, int | KafkaError]:
            assert broker_id is not None
            return dict.fromkeys(keys, (await self.requests.on_brokers([broker_id]))[broker_id])

        async def send_to(
            node_id: int, requested: list[TopicPartition]
        ) -> Mapping[TopicPartition, tuple[ProducerState, ...] | KafkaError]:
            topics = [
                producer_messages.TopicRequest(name=topic, partition_indexes=[key.partition for key in keys])
                for topic, keys in by_topic(requested).items()
            ]
            response = await self.requests.send(
                node_id, producer_messages.DescribeProducersRequest(topics=topics), deadline
            )
            results: dict[TopicPartition, tuple[ProducerState, ...] | KafkaError] = {}
            for topic in response.topics:
                for each in topic.partitions:
                    key = TopicPartition(topic.name, each.partition_index)
                    results[key] = tuple(_producer(producer) for producer in each.active_producers)
                    if each.error_code:
                        results[key] = admin_error(
                            each.error_code, each.error_message, topic=key.topic, partition=key.partition
                        )
            return results

        locate: Locate[TopicPartition] = self.requests.on_leaders if broker_id is None else on_that_broker
        return await self.requests.call_each(wanted, locate, send_to, deadline, retried_briefly=RETRIED_BRIEFLY)

    async def abort_transaction(
        self,
        partition: tuple[str, int],
        *,
        start_offset: int | None = None,
        producer_id: int | None = None,
        producer_epoch: int | None = None,
        coordinator_epoch: int | None = None,
        timeout: float | None = None,
    ) -> None:
        """Write an abort marker into a partition, to end a transaction that its coordinator has forgotten.

        Give `start_offset` (the producer is then looked up), or producer id, epoch and coordinator epoch as
        `describe_producers` shows them. A transaction that is merely slow is ended by its coordinator: fence the
        producer instead.
        """
        key = named_partition(partition)
        deadline = self.requests.deadline(timeout)
        if (start_offset is None) == (producer_id is None):
            raise ValueError("give start_offset, or producer_id with producer_epoch and coordinator_epoch")
        if start_offset is not None:
            found = await self._open_at(key, start_offset, deadline)
            producer_id, producer_epoch = found.producer_id, found.producer_epoch
            coordinator_epoch = found.coordinator_epoch
        if producer_id is None or producer_epoch is None:
            raise ValueError("producer_id needs producer_epoch")
        marker = marker_messages.WritableTxnMarker(
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            transaction_result=False,
            topics=[marker_messages.WritableTxnMarkerTopic(name=key.topic, partition_indexes=[key.partition])],
            # A transaction that never had a marker has no coordinator epoch yet: the least one passes.
            coordinator_epoch=max(0, coordinator_epoch or 0),
        )
        (await self._write_marker(key, marker, deadline)).only(key)

    async def _open_at(self, key: TopicPartition, start_offset: int, deadline: Deadline) -> ProducerState:
        producers = (await self._describe_producers([key], None, deadline)).only(key)
        for producer in producers:
            if producer.current_transaction_start_offset == start_offset:
                return producer
        there = sorted(
            each.current_transaction_start_offset
            for each in producers
            if each.current_transaction_start_offset is not None
        )
        text = f"{key}: no open transaction starts at offset {start_offset} (there are some at: {there or 'none'})"
        raise KafkaError(ErrorCode.INVALID_TXN_STATE, text)

    async def _write_marker(
        self, key: TopicPartition, marker: marker_messages.WritableTxnMarker, deadline: Deadline
    ) -> Outcome[TopicPartition, bool]:
        async def send_to(node_id: int, requested: list[TopicPartition]) -> Mapping[TopicPartition, bool | KafkaError]:
            request = marker_messages.WriteTxnMarkersRequest(markers=[marker])
            response = await self.requests.send(node_id, request, deadline)
            return {
                TopicPartition(topic.name, each.partition_index): (
                    admin_error(each.error_code, topic=topic.name, partition=each.partition_index)
                    if each.error_code
                    else True
                )
                for result in response.markers
                for topic in result.topics
                for each in topic.partitions
            }

        return await self.requests.call_each(
            [key], self.requests.on_leaders, send_to, deadline, retried_briefly=RETRIED_BRIEFLY
        )


def _listing(transaction: list_messages.ListedTransaction, coordinator_id: int) -> TransactionListing:
    return TransactionListing(
        transactional_id=transaction.transactional_id,
        producer_id=transaction.producer_id,
        state=TransactionState(transaction.transaction_state),
        coordinator_id=coordinator_id,
    )


def _description(
    transaction: transaction_messages.DescribedTransaction, coordinator_id: int
) -> TransactionDescription | KafkaError:
    if transaction.error_code:
        return admin_error(transaction.error_code, transactional_id=transaction.transactional_id)
    return TransactionDescription(
        transactional_id=transaction.transactional_id,
        coordinator_id=coordinator_id,
        state=TransactionState(transaction.transaction_state),
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        transaction_timeout_ms=transaction.transaction_timeout_ms,
        start_time_ms=transaction.transaction_start_time_ms if transaction.transaction_start_time_ms >= 0 else None,
        partitions=frozenset(
            TopicPartition(topic.topic, partition) for topic in transaction.topics for partition in topic.partitions
        ),
    )


def _producer(producer: producer_messages.ProducerState) -> ProducerState:
    return ProducerState(
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        last_sequence=producer.last_sequence,
        last_timestamp=producer.last_timestamp,
        coordinator_epoch=producer.coordinator_epoch if producer.coordinator_epoch >= 0 else None,
        current_transaction_start_offset=(
            producer.current_txn_start_offset if producer.current_txn_start_offset >= 0 else None
        ),
    )
