"""What must hold of a transaction shard after every step. Called by `TransactionShard.check`, that is, by tests."""

from collections.abc import Collection, Mapping

from barnabas.machines.txn.metadata import MAX_EPOCH, TransactionMetadata
from barnabas.machines.txn.state import AT_REST, PREPARED, TransactionLogState
from barnabas.types import NO_PRODUCER_ID, NO_TIMESTAMP, TopicPartition


def check(
    transactions: Mapping[str, TransactionMetadata],
    unwritten: Mapping[str, Collection[TopicPartition]],
    timeouts: Mapping[str, int],
) -> None:
    owners: dict[int, str] = {}
    for transactional_id, metadata in transactions.items():
        assert transactional_id == metadata.transactional_id, metadata
        _check_one(metadata)
        for producer_id in (metadata.producer_id, metadata.next_producer_id):
            if producer_id != NO_PRODUCER_ID:
                owner = owners.setdefault(producer_id, transactional_id)
                assert owner == transactional_id, f"producer id {producer_id} of {owner} and {transactional_id}"
        if metadata.state is TransactionLogState.ONGOING:
            assert transactional_id in timeouts, f"{transactional_id} would never be aborted"
        if metadata.state in PREPARED:
            assert unwritten.get(transactional_id), f"{transactional_id} would never complete"
    for transactional_id, partitions in unwritten.items():
        metadata = transactions[transactional_id]
        assert metadata.state in PREPARED, f"markers of {metadata} after its end"
        assert all(each in metadata.partitions for each in partitions), metadata


def _check_one(metadata: TransactionMetadata) -> None:
    assert metadata.producer_id >= 0, metadata
    assert 0 <= metadata.producer_epoch <= MAX_EPOCH, metadata
    assert metadata.timeout_ms > 0, metadata
    if metadata.state in AT_REST:
        assert not metadata.partitions, metadata
        assert metadata.next_producer_id == NO_PRODUCER_ID, metadata
    else:
        assert metadata.partitions, metadata
    assert (metadata.start_ms == NO_TIMESTAMP) == (metadata.state is TransactionLogState.EMPTY), metadata
    if metadata.next_producer_id != NO_PRODUCER_ID:
        assert metadata.producer_epoch == MAX_EPOCH, metadata
