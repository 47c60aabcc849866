"""Responses of a transaction shard, with an error code that the version of the request knows."""

from collections.abc import Mapping

from barnabas.errors import ErrorCode
from barnabas.machines.txn.commands import AddPartitionsToTxn
from barnabas.machines.txn.metadata import TransactionMetadata
from barnabas.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnResponse
from barnabas.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from barnabas.protocol.messages.end_txn import EndTxnResponse
from barnabas.protocol.messages.init_producer_id import InitProducerIdResponse
from barnabas.types import NO_PRODUCER_EPOCH, TopicPartition


def for_version(error: ErrorCode, version: int, fenced_since: int = 2) -> ErrorCode:
    """PRODUCER_FENCED is newer than these APIs: older clients get INVALID_PRODUCER_EPOCH."""
    if error is ErrorCode.PRODUCER_FENCED and version < fenced_since:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error


def initialized(metadata: TransactionMetadata) -> InitProducerIdResponse:
    return InitProducerIdResponse(producer_id=metadata.producer_id, producer_epoch=metadata.producer_epoch)


def init_failed(error: ErrorCode, version: int) -> InitProducerIdResponse:
    return InitProducerIdResponse(
        error_code=for_version(error, version, fenced_since=4), producer_epoch=NO_PRODUCER_EPOCH
    )


def partitions_added(
    command: AddPartitionsToTxn, errors: Mapping[TopicPartition, ErrorCode]
) -> AddPartitionsToTxnResult:
    topics: dict[str, list[AddPartitionsToTxnPartitionResult]] = {}
    for (topic, partition), error in errors.items():
        code = for_version(error, command.version)
        result = AddPartitionsToTxnPartitionResult(partition_index=partition, partition_error_code=code)
        topics.setdefault(topic, []).append(result)
    return AddPartitionsToTxnResult(
        transactional_id=command.transactional_id,
        topic_results=[
            AddPartitionsToTxnTopicResult(name=topic, results_by_partition=results) for topic, results in topics.items()
        ],
    )


def offsets_added(error: ErrorCode, version: int) -> AddOffsetsToTxnResponse:
    return AddOffsetsToTxnResponse(error_code=for_version(error, version))


def ended(metadata: TransactionMetadata) -> EndTxnResponse:
    """Since v5: the id and epoch for the producer's next transaction."""
    return EndTxnResponse(producer_id=metadata.producer_id, producer_epoch=metadata.producer_epoch)


def end_failed(error: ErrorCode, version: int) -> EndTxnResponse:
    return EndTxnResponse(error_code=for_version(error, version))
