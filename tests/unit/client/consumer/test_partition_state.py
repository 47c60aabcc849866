import pytest

from barnabas.client.consumer.offsets import EARLIEST, LATEST, NONE, OffsetAndMetadata, OffsetReset
from barnabas.client.consumer.partition_state import FetchState, PartitionState, Truncation
from barnabas.types import NO_TOPIC_ID, TopicPartition

TP = TopicPartition("orders", 3)
TOPIC_ID = b"a" * 16


def fetching(offset: int = 100, epoch: int = 5, *, leader: int = 1, leader_epoch: int = 5) -> PartitionState:
    state = PartitionState(TP)
    state.seek(offset, epoch)
    state.leader, state.leader_epoch = leader, leader_epoch
    state.topic_id = TOPIC_ID
    return state


def test_a_new_partition_has_no_position() -> None:
    state = PartitionState(TP)
    assert not state.has_position
    assert not state.is_fetchable
    assert state.lag(False) is None


def test_a_seek_waits_for_its_leader_and_voids_what_was_asked_for() -> None:
    state = fetching()
    version = state.version
    state.on_fetched(150, 5, 1000)
    state.seek(7)
    assert state.version > version
    assert (state.offset, state.fetch_offset, state.buffered_bytes) == (7, 7, 0)
    assert not state.is_fetchable
    state.check_leader(1, 5, TOPIC_ID)
    assert state.is_fetchable


@pytest.mark.parametrize("flag", ["paused", "pending_callback", "blocked"])
def test_what_keeps_a_partition_from_being_fetched(flag: str) -> None:
    state = fetching()
    assert state.is_fetchable
    setattr(state, flag, True)
    assert not state.is_fetchable


def test_fetching_runs_ahead_of_the_position() -> None:
    state = fetching(100)
    state.on_fetched(150, 6, 1000)
    assert (state.offset, state.fetch_offset, state.fetch_epoch, state.buffered_bytes) == (100, 150, 6, 1000)


def test_a_reset_is_taken_once_and_only_if_still_wanted() -> None:
    state = PartitionState(TP)
    state.request_reset(EARLIEST)
    assert not state.complete_reset(LATEST, 9)
    assert state.complete_reset(EARLIEST, 0)
    assert state.offset == 0
    assert not state.complete_reset(EARLIEST, 5)
    state.request_reset(LATEST)
    state.seek(42)
    assert not state.complete_reset(LATEST, 9)
    assert state.offset == 42


def test_a_new_leader_means_validation_only_if_the_epoch_is_known() -> None:
    state = fetching(100, epoch=5)
    state.prefer_read_replica(9, 1 << 60)
    state.check_leader(1, 5, TOPIC_ID)
    assert state.state is FetchState.FETCHING
    assert state.preferred_read_replica == 9
    state.check_leader(2, 6, TOPIC_ID)
    assert state.state is FetchState.AWAIT_VALIDATION
    assert state.preferred_read_replica == -1
    blind = fetching(100, epoch=-1)
    blind.check_leader(2, 6, TOPIC_ID)
    assert blind.state is FetchState.FETCHING
    assert blind.leader == 2


def test_no_leader_at_the_moment_changes_nothing() -> None:
    state = fetching()
    state.check_leader(-1, 6, TOPIC_ID)
    assert (state.leader, state.state) == (1, FetchState.FETCHING)


def test_another_topic_id_is_another_topic() -> None:
    state = fetching()
    assert not state.check_leader(1, 5, NO_TOPIC_ID)
    assert state.topic_id == TOPIC_ID
    assert state.check_leader(1, 0, b"b" * 16)
    assert not state.check_leader(1, 0, b"b" * 16)


def validating(position: int = 100, fetched_to: int = 150) -> PartitionState:
    state = fetching(position)
    state.on_fetched(fetched_to, 5, 1000)
    state.check_leader(2, 6, TOPIC_ID)
    assert state.state is FetchState.AWAIT_VALIDATION
    return state


def test_a_valid_position_goes_on_with_what_is_buffered() -> None:
    state = validating()
    version = state.version
    assert state.complete_validation(version, 150, 150, 5, NONE) is None
    assert state.is_fetchable
    assert (state.version, state.fetch_offset, state.buffered_bytes) == (version, 150, 1000)


def test_a_truncation_beyond_the_position_is_fetched_again_without_an_error() -> None:
    state = validating()
    version = state.version
    assert state.complete_validation(version, 150, 120, 5, NONE) is None
    assert state.version > version
    assert (state.offset, state.fetch_offset, state.state) == (100, 100, FetchState.AWAIT_VALIDATION)
    assert state.complete_validation(state.version, 100, 120, 5, NONE) is None
    assert state.is_fetchable


def test_a_truncation_below_the_position_moves_it_or_is_reported() -> None:
    state = validating()
    told = state.complete_validation(state.version, 150, 80, 4, NONE)
    assert told == Truncation(TP, 100, OffsetAndMetadata(80, "", 4))
    assert state.state is FetchState.AWAIT_VALIDATION
    assert state.complete_validation(state.version, 150, 80, 4, LATEST) is None
    assert (state.offset, state.offset_epoch, state.leader, state.is_fetchable) == (80, 4, 2, True)


def test_an_unknown_epoch_is_a_truncation_to_who_knows_where() -> None:
    state = validating()
    assert state.complete_validation(state.version, 150, -1, -1, NONE) == Truncation(TP, 100, None)
    assert state.complete_validation(state.version, 150, -1, -1, EARLIEST) is None
    assert (state.state, state.reset) == (FetchState.AWAIT_RESET, EARLIEST)


def test_a_late_response_of_a_validation_is_ignored() -> None:
    state = validating()
    assert state.complete_validation(state.version - 1, 150, 0, 5, NONE) is None
    assert state.complete_validation(state.version, 149, 0, 5, NONE) is None
    assert state.state is FetchState.AWAIT_VALIDATION
    state.seek(3)
    assert state.complete_validation(state.version, 150, 0, 5, NONE) is None
    assert state.offset == 3


def test_a_preferred_replica_expires() -> None:
    state = fetching(leader=1)
    state.prefer_read_replica(2, 1000)
    state.prefer_read_replica(2, 9999)
    assert state.read_replica(999) == 2
    assert state.read_replica(1000) == 1
    assert not state.clear_preferred_read_replica()
    state.prefer_read_replica(2, 5000)
    assert state.clear_preferred_read_replica()
    assert state.read_replica(0) == 1


def test_lag_is_to_the_last_stable_offset_for_those_who_read_committed() -> None:
    state = fetching(100)
    state.on_watermarks(150, 120, 10)
    assert (state.lag(False), state.lag(True)) == (50, 20)
    state.on_watermarks(-1, -1, -1)
    assert (state.high_watermark, state.last_stable_offset, state.log_start_offset) == (150, 120, 10)


def test_reset_policies() -> None:
    assert OffsetReset.of("earliest").timestamp(5000) == -2
    assert OffsetReset.of("latest").timestamp(5000) == -1
    assert OffsetReset.of("by_duration:PT2S").timestamp(5000) == 3000
    assert OffsetReset.of("by_duration:P1D").timestamp(5000) == 0
    with pytest.raises(ValueError, match="none"):
        OffsetReset.of("none").timestamp(5000)
