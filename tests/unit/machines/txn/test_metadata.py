"""Steps of a transactional id, and its record in the log."""

from hypothesis import given
from hypothesis import strategies as st

from barnabas.config.broker import BrokerConfig
from barnabas.machines.txn.metadata import MAX_EPOCH, TransactionMetadata, is_exhausted
from barnabas.machines.txn.settings import TransactionSettings
from barnabas.machines.txn.state import STATES_BY_TEXT, TransactionLogState
from barnabas.protocol.messages.transaction_log_record import PartitionsSchema, TransactionLogValue
from barnabas.protocol.versioned import decode_versioned, encode_versioned
from barnabas.types import TopicPartition

IDS = st.integers(-1, 2**63 - 1)
PARTITIONS = st.lists(st.builds(TopicPartition, st.sampled_from(["t", "u", "__consumer_offsets"]), st.integers(0, 99)))


@given(
    metadata=st.builds(
        TransactionMetadata,
        transactional_id=st.text(max_size=5),
        producer_id=st.integers(0, 2**63 - 1),
        producer_epoch=st.integers(0, MAX_EPOCH),
        timeout_ms=st.integers(1, 2**31 - 1),
        state=st.sampled_from([state for state in TransactionLogState if state is not TransactionLogState.EMPTY]),
        last_update_ms=st.integers(0, 2**63 - 1),
        start_ms=st.integers(-1, 2**63 - 1),
        partitions=PARTITIONS.map(lambda each: dict.fromkeys(sorted(each))),
        previous_producer_id=IDS,
        next_producer_id=IDS,
        client_transaction_version=st.integers(0, 2),
    )
)
def test_everything_survives_the_log(metadata: TransactionMetadata) -> None:
    key, value, version = metadata.record()
    decoded, _ = decode_versioned(TransactionLogValue, encode_versioned(value, version))
    assert TransactionMetadata.of(key.transactional_id, decoded) == metadata


def test_a_record_of_an_older_broker() -> None:
    value = TransactionLogValue(
        producer_id=5,
        producer_epoch=3,
        transaction_timeout_ms=1000,
        transaction_status=1,
        transaction_partitions=[PartitionsSchema(topic="t", partition_ids=[2, 1])],
        transaction_last_update_timestamp_ms=20,
        transaction_start_timestamp_ms=10,
    )
    decoded, _ = decode_versioned(TransactionLogValue, encode_versioned(value, 0))
    partitions = {TopicPartition("t", 2): None, TopicPartition("t", 1): None}
    expected = TransactionMetadata("a", 5, 3, 1000, TransactionLogState.ONGOING, 20, 10, partitions)
    assert TransactionMetadata.of("a", decoded) == expected


def test_an_empty_one_has_no_list_of_partitions() -> None:
    empty = TransactionMetadata("a", 5, 0, 1000, TransactionLogState.EMPTY, 20)
    assert empty.record().value.transaction_partitions is None
    assert empty._replace(state=TransactionLogState.COMPLETE_ABORT).record().value.transaction_partitions == []


def test_steps_leave_the_value_before_alone() -> None:
    empty = TransactionMetadata("a", 5, 0, 1000, TransactionLogState.EMPTY, 20)
    first = empty.with_partitions([TopicPartition("t", 0)], 2, 30)
    second = first.with_partitions([TopicPartition("t", 1)], 2, 40)
    assert not empty.partitions
    assert list(first.partitions) == [TopicPartition("t", 0)]
    assert list(second.partitions) == [TopicPartition("t", 0), TopicPartition("t", 1)]
    assert (second.start_ms, second.last_update_ms) == (30, 40)


def test_the_last_epoch_is_for_fencing() -> None:
    assert not is_exhausted(MAX_EPOCH - 2)
    assert is_exhausted(MAX_EPOCH - 1)
    ongoing = TransactionMetadata("a", 5, MAX_EPOCH, 1000, TransactionLogState.ONGOING, 20, 10)
    assert ongoing.prepared_with_bump(False, 6, 30).producer_epoch == MAX_EPOCH, "as a log by Kafka 4.1 may have it"


def test_names_of_states() -> None:
    assert list(STATES_BY_TEXT) == [
        "Empty",
        "Ongoing",
        "PrepareCommit",
        "PrepareAbort",
        "CompleteCommit",
        "CompleteAbort",
        "Dead",
        "PrepareEpochFence",
    ]


def test_settings_of_a_broker() -> None:
    config = BrokerConfig(
        transaction_max_timeout_ms=1,
        transactional_id_expiration_ms=2,
        transaction_remove_expired_transaction_cleanup_interval_ms=3,
    )
    assert TransactionSettings.of(config) == TransactionSettings(1, 2, 3)
    assert TransactionSettings.of(BrokerConfig()) == TransactionSettings()
