"""Looking for transactions that hang (KIP-664): open in a partition, but nobody will ever end them.

A transaction that is open for longer than any may take is looked up at its coordinator. It hangs if no transactional id
uses its producer id, or if that id's transaction does not (or no longer) cover the partition.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from barnabas.client.admin.errors import AdminError
from barnabas.client.admin.records import named_partition
from barnabas.client.admin.requests import AdminRequests
from barnabas.client.admin.topics import TopicAdmin
from barnabas.client.admin.transactions import TransactionAdmin
from barnabas.client.admin.types import HangingTransaction, ProducerState
from barnabas.errors import ErrorCode
from barnabas.types import TopicPartition

PARTITIONS_PER_REQUEST = 500
FIFTEEN_MINUTES_MS = 900_000


@dataclass(frozen=True, slots=True)
class HangingTransactionAdmin:
    """Finds transactions that hang."""

    requests: AdminRequests
    topics: TopicAdmin
    transactions: TransactionAdmin

    async def find_hanging_transactions(
        self,
        partitions: Iterable[tuple[str, int]] | None = None,
        *,
        topic: str | None = None,
        broker_id: int | None = None,
        max_transaction_timeout_ms: int = FIFTEEN_MINUTES_MS,
        timeout: float | None = None,
    ) -> list[HangingTransaction]:
        """Transactions that hang in these partitions, in a topic, or in whatever `broker_id` holds.

        `max_transaction_timeout_ms` is the longest that a transaction may take (transaction.max.timeout.ms).
        """
        if partitions is not None:
            searched = [named_partition(each) for each in partitions]
        elif topic is not None or broker_id is not None:
            searched = await self._partitions_of(topic, broker_id, timeout)
        else:
            raise ValueError("give partitions, a topic or a broker_id to limit the search")
        open_ones = await self._open_for_too_long(searched, broker_id, max_transaction_timeout_ms, timeout)
        if not open_ones:
            return []
        ids = await self.transactions.list_transactions(
            producer_ids={each.producer_id for _, each in open_ones}, timeout=timeout
        )
        id_of = {listing.producer_id: listing.transactional_id for listing in ids.values()}
        covered = await self._covered(id_of.values(), timeout)
        return [
            HangingTransaction(
                partition=partition,
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
                coordinator_epoch=producer.coordinator_epoch,
                start_offset=start_offset,
                last_timestamp=producer.last_timestamp,
                transactional_id=id_of.get(producer.producer_id),
            )
            for partition, producer in open_ones
            if (start_offset := producer.current_transaction_start_offset) is not None
            and partition not in covered.get(id_of.get(producer.producer_id, ""), ())
        ]

    async def _partitions_of(
        self, topic: str | None, broker_id: int | None, timeout: float | None
    ) -> list[TopicPartition]:
        names = (
            [topic]
            if topic is not None
            else list(await self.topics.list_topics(include_internal=True, timeout=timeout))
        )
        described = await self.topics.describe_topics(names, timeout=timeout)
        return [
            TopicPartition(name, each.partition)
            for name, description in described.items()
            for each in description.partitions
            if broker_id is None or broker_id in each.replicas
        ]

    async def _open_for_too_long(
        self, partitions: list[TopicPartition], broker_id: int | None, limit_ms: int, timeout: float | None
    ) -> list[tuple[TopicPartition, ProducerState]]:
        before = self.requests.clock.now_ms() - limit_ms
        found = []
        for start in range(0, len(partitions), PARTITIONS_PER_REQUEST):
            part = partitions[start : start + PARTITIONS_PER_REQUEST]
            producers = await self.transactions.describe_producers(part, broker_id=broker_id, timeout=timeout)
            found += [
                (partition, each)
                for partition, of_partition in producers.items()
                for each in of_partition
                if each.current_transaction_start_offset is not None and each.last_timestamp < before
            ]
        return found

    async def _covered(
        self, transactional_ids: Iterable[str], timeout: float | None
    ) -> dict[str, frozenset[TopicPartition]]:
        """Partitions in which a coordinator will still write markers, by transactional id."""
        try:
            described = await self.transactions.describe_transactions(set(transactional_ids), timeout=timeout)
        except AdminError as failed:
            for error in failed.errors.values():
                if error.code is not ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                    raise error from None
            described = failed.results
        return {transactional_id: each.partitions for transactional_id, each in described.items()}
