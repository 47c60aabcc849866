"""Which requests may touch which transaction: the tables of KIP-890, cell by cell."""

import pytest

from barnabas.errors import ErrorCode
from barnabas.machines.coordinator import ProducerIdAndEpoch
from barnabas.machines.txn.metadata import MAX_EPOCH, TransactionMetadata
from barnabas.machines.txn.replies import for_version
from barnabas.machines.txn.rules import EndTxnStep, check_add, check_init, check_verify, judge_end
from barnabas.machines.txn.state import TransactionLogState
from barnabas.types import TopicPartition

PRODUCER_ID, EPOCH = 7, 5
FENCED, INVALID, CONCURRENT = (
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.CONCURRENT_TRANSACTIONS,
)
PREPARE, REPEATED = EndTxnStep.PREPARE, EndTxnStep.REPEATED


def metadata_in(state: str, epoch: int = EPOCH, previous_producer_id: int = -1) -> TransactionMetadata:
    at_rest = state in ("EMPTY", "COMPLETE_COMMIT", "COMPLETE_ABORT")
    return TransactionMetadata(
        "a",
        PRODUCER_ID,
        epoch,
        1000,
        TransactionLogState[state],
        100,
        partitions={} if at_rest else {TopicPartition("t", 0): None},
        previous_producer_id=previous_producer_id,
    )


@pytest.mark.parametrize(
    ("state", "abort_repeated", "abort", "commit_repeated", "commit"),
    [
        ("EMPTY", FENCED, PREPARE, FENCED, INVALID),
        ("ONGOING", FENCED, PREPARE, FENCED, PREPARE),
        ("PREPARE_COMMIT", CONCURRENT, CONCURRENT, CONCURRENT, CONCURRENT),
        ("PREPARE_ABORT", CONCURRENT, CONCURRENT, CONCURRENT, CONCURRENT),
        ("COMPLETE_COMMIT", INVALID, PREPARE, REPEATED, INVALID),
        ("COMPLETE_ABORT", REPEATED, PREPARE, INVALID, INVALID),
    ],
)
def test_end_txn_with_an_epoch_for_each_transaction(
    state: str, abort_repeated: object, abort: object, commit_repeated: object, commit: object
) -> None:
    metadata = metadata_in(state)
    assert judge_end(metadata, PRODUCER_ID, EPOCH - 1, False, 5) is abort_repeated
    assert judge_end(metadata, PRODUCER_ID, EPOCH, False, 5) is abort
    assert judge_end(metadata, PRODUCER_ID, EPOCH - 1, True, 5) is commit_repeated
    assert judge_end(metadata, PRODUCER_ID, EPOCH, True, 5) is commit


@pytest.mark.parametrize(
    ("state", "abort", "commit"),
    [
        ("EMPTY", INVALID, INVALID),
        ("ONGOING", PREPARE, PREPARE),
        ("PREPARE_COMMIT", CONCURRENT, CONCURRENT),
        ("PREPARE_ABORT", CONCURRENT, CONCURRENT),
        ("COMPLETE_COMMIT", INVALID, REPEATED),
        ("COMPLETE_ABORT", REPEATED, INVALID),
    ],
)
def test_end_txn_with_one_epoch_for_all(state: str, abort: object, commit: object) -> None:
    metadata = metadata_in(state)
    for version in range(5):
        assert judge_end(metadata, PRODUCER_ID, EPOCH, False, version) is abort
        assert judge_end(metadata, PRODUCER_ID, EPOCH, True, version) is commit
        assert judge_end(metadata, PRODUCER_ID, EPOCH - 1, True, version) is FENCED
        assert judge_end(metadata, PRODUCER_ID, EPOCH + 1, True, version) is FENCED
        assert judge_end(metadata, PRODUCER_ID + 1, EPOCH, True, version) is ErrorCode.INVALID_PRODUCER_ID_MAPPING


@pytest.mark.parametrize("state", ["EMPTY", "ONGOING", "COMPLETE_COMMIT", "COMPLETE_ABORT"])
def test_end_txn_of_a_stranger(state: str) -> None:
    metadata = metadata_in(state)
    for committed in (True, False):
        assert judge_end(metadata, PRODUCER_ID, EPOCH - 2, committed, 5) is FENCED
        assert judge_end(metadata, PRODUCER_ID, EPOCH + 1, committed, 5) is FENCED
        assert judge_end(metadata, 8, EPOCH, committed, 5) is ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_end_txn_repeated_after_the_producer_id_was_rotated() -> None:
    done = metadata_in("COMPLETE_COMMIT", epoch=0, previous_producer_id=6)
    assert judge_end(done, 6, MAX_EPOCH - 1, True, 5) is REPEATED
    assert judge_end(done, 6, MAX_EPOCH - 1, False, 5) is INVALID
    assert judge_end(done, 6, MAX_EPOCH - 2, True, 5) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert judge_end(done, 6, MAX_EPOCH - 1, True, 4) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    begun = metadata_in("ONGOING", epoch=0, previous_producer_id=6)
    assert judge_end(begun, 6, MAX_EPOCH - 1, True, 5) is FENCED
    moved_on = metadata_in("COMPLETE_COMMIT", epoch=1, previous_producer_id=6)
    assert judge_end(moved_on, 6, MAX_EPOCH - 1, True, 5) is ErrorCode.INVALID_PRODUCER_ID_MAPPING


@pytest.mark.parametrize("state", ["PREPARE_COMMIT", "PREPARE_ABORT"])
def test_while_markers_are_written_adding_waits_and_verifying_tells_strangers(state: str) -> None:
    metadata = metadata_in(state)
    assert check_add(metadata, PRODUCER_ID, EPOCH) is CONCURRENT
    assert check_add(metadata, 99, 0) is CONCURRENT
    assert check_verify(metadata, PRODUCER_ID, EPOCH) is CONCURRENT
    assert check_verify(metadata, PRODUCER_ID, EPOCH - 1) is FENCED
    assert check_verify(metadata, 99, EPOCH) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert check_init(metadata, None) is CONCURRENT
    assert check_init(metadata, ProducerIdAndEpoch(99, 0)) is CONCURRENT


@pytest.mark.parametrize("state", ["EMPTY", "COMPLETE_COMMIT", "COMPLETE_ABORT"])
def test_init_by_what_the_producer_held(state: str) -> None:
    metadata = metadata_in(state, previous_producer_id=6)
    assert check_init(metadata, None) is ErrorCode.NONE
    assert check_init(metadata, ProducerIdAndEpoch(PRODUCER_ID, 0)) is ErrorCode.NONE, "the epoch is looked at later"
    assert check_init(metadata, ProducerIdAndEpoch(6, MAX_EPOCH - 1)) is ErrorCode.NONE
    assert check_init(metadata, ProducerIdAndEpoch(6, MAX_EPOCH - 2)) is FENCED
    assert check_init(metadata, ProducerIdAndEpoch(99, MAX_EPOCH - 1)) is FENCED


def test_init_while_a_transaction_runs() -> None:
    metadata = metadata_in("ONGOING", previous_producer_id=6)
    assert check_init(metadata, None) is ErrorCode.NONE
    assert check_init(metadata, ProducerIdAndEpoch(PRODUCER_ID, EPOCH)) is ErrorCode.NONE
    assert check_init(metadata, ProducerIdAndEpoch(PRODUCER_ID, EPOCH - 1)) is FENCED
    assert check_init(metadata, ProducerIdAndEpoch(6, MAX_EPOCH - 1)) is FENCED


def test_old_versions_do_not_know_fenced_producers() -> None:
    assert for_version(FENCED, 1) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert for_version(FENCED, 2) is FENCED
    assert for_version(FENCED, 3, fenced_since=4) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert for_version(INVALID, 0) is INVALID
