"""Commands of a transaction shard, and its requests to the driver.

A command goes to the shard of its transactional id. If one request names several, the handler splits it and joins
the replies:

    command                                   reply
    InitProducerId (transactional id given)   InitProducerIdResponse
    AddPartitionsToTxn (one transaction)      AddPartitionsToTxnResult
    AddOffsetsToTxn                           AddOffsetsToTxnResponse
    EndTxn                                    EndTxnResponse
    DescribeTransactions                      list of DescribedTransaction, in the order requested
    ListTransactions (one to every shard)     ListTransactionsResponse
    MarkersWritten                            none: use `tell`

Left to the handler: authorization, throttle times, topics that do not exist, InitProducerId without a transactional id.
"""

from collections.abc import Callable
from dataclasses import dataclass

from barnabas.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas.protocol.messages.end_txn import EndTxnRequest
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.protocol.messages.list_transactions import ListTransactionsRequest
from barnabas.types import TopicPartition


@dataclass(frozen=True, slots=True)
class InitProducerId:
    request: InitProducerIdRequest
    version: int


@dataclass(frozen=True, slots=True)
class AddPartitionsToTxn:
    """One transaction of the request, whatever its version. `verify_only` changes nothing: KIP-890, between brokers."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: tuple[TopicPartition, ...]
    version: int
    verify_only: bool = False


@dataclass(frozen=True, slots=True)
class AddOffsetsToTxn:
    """`offsets_partition` is the partition of `__consumer_offsets` that the request's group belongs to."""

    request: AddOffsetsToTxnRequest
    version: int
    offsets_partition: TopicPartition


@dataclass(frozen=True, slots=True)
class EndTxn:
    request: EndTxnRequest
    version: int


@dataclass(frozen=True, slots=True)
class DescribeTransactions:
    transactional_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ListTransactions:
    """`id_matches` is the request's pattern (v2), compiled, which has to match all of an id; None if there is none."""

    request: ListTransactionsRequest
    id_matches: Callable[[str], object] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class SendMarkers:
    """A request to the driver: write the markers, retrying until each partition has its marker or is gone.

    `producer_epoch` is the epoch that the markers carry. If a broker rejects it, or the coordinator epoch, as
    old, there is a newer coordinator: stop, this one is about to be closed.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    committed: bool
    partitions: tuple[TopicPartition, ...]
    coordinator_epoch: int


@dataclass(frozen=True, slots=True)
class MarkersWritten:
    """Sent by the driver, for some or all of the partitions of a request of this shard. Duplicates are harmless.

    Requests are compared by identity: up to transaction.version 1 two transactions in a row may have equal values.
    """

    request: SendMarkers
    partitions: tuple[TopicPartition, ...]
