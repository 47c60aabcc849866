"""Leadership of one partition: epochs, ISR, high watermark."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.controller.image import PartitionImage
from barnabas.machines.partition import PartitionState


def image(
    leader: int = 0, epoch: int = 0, partition_epoch: int = 0, isr: tuple[int, ...] = (0, 1, 2)
) -> PartitionImage:
    return PartitionImage(0, (0, 1, 2), isr, leader, epoch, partition_epoch)


def leader_of_three(log_end_offset: int = 0) -> PartitionState:
    state = PartitionState(0)
    state.apply(image(), log_end_offset, 0)
    return state


def code_of(call: object, *arguments: object) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        call(*arguments)  # type: ignore[operator]
    return caught.value.code


def test_a_lone_leader_commits_what_it_appends() -> None:
    state = PartitionState(0)
    assert state.apply(PartitionImage(0, (0,), (0,), 0, 3, 7), 10, 4)
    assert state.is_leader
    assert state.high_watermark == 10
    assert state.on_append(25) == 25
    state.check()


def test_a_new_state_knows_no_leader() -> None:
    assert code_of(PartitionState(0).check_leader) is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_epochs_are_checked_before_leadership() -> None:
    state = PartitionState(1)
    state.apply(image(leader=0, epoch=5), 0, 0)
    assert code_of(state.check_leader_epoch, 4) is ErrorCode.FENCED_LEADER_EPOCH
    assert code_of(state.check_leader_epoch, 6) is ErrorCode.UNKNOWN_LEADER_EPOCH
    assert code_of(state.check_leader_epoch, 5) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert code_of(state.check_leader_epoch, -1) is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_the_leader_serves_its_epoch_and_clients_that_name_none() -> None:
    state = leader_of_three()
    state.check_leader_epoch(0)
    state.check_leader_epoch(-1)


def test_high_watermark_is_the_slowest_in_sync_replica() -> None:
    state = leader_of_three()
    assert state.on_append(10) == 0
    assert state.on_follower_fetch(1, 10, 1) == 0
    assert state.on_follower_fetch(2, 6, 1) == 6
    assert state.on_follower_fetch(2, 4, 2) == 6, "committed stays committed"


def test_min_in_sync_replicas() -> None:
    state = PartitionState(0)
    state.apply(image(isr=(0, 1)), 0, 0)
    state.set_min_in_sync_replicas(2)
    state.check_min_in_sync_replicas()
    state.set_min_in_sync_replicas(3)
    assert code_of(state.check_min_in_sync_replicas) is ErrorCode.NOT_ENOUGH_REPLICAS


def test_no_more_replicas_can_be_required_than_there_are() -> None:
    state = PartitionState(0)
    state.apply(PartitionImage(0, (0,), (0,), 0, 3, 7), 10, 4)
    state.set_min_in_sync_replicas(2)
    state.check_min_in_sync_replicas()
    assert state.on_append(12) == 12


def test_under_min_isr_the_high_watermark_stands_still() -> None:
    state = leader_of_three()
    state.set_min_in_sync_replicas(2)
    state.on_append(10)
    for replica in (1, 2):
        state.on_follower_fetch(replica, 10, 1)
    state.apply(image(partition_epoch=1, isr=(0,)), 10, 10)
    assert state.is_under_min_isr
    assert state.on_append(12) == 10
    assert state.on_follower_fetch(1, 12, 2) == 10
    assert state.set_min_in_sync_replicas(1) == 12
    state.set_min_in_sync_replicas(2)
    assert state.on_append(13) == 12
    state.on_follower_fetch(1, 13, 3)
    state.apply(image(partition_epoch=2, isr=(0, 1)), 13, 12)
    assert state.high_watermark == 13


def test_under_min_isr_only_a_follower_that_has_caught_up_joins() -> None:
    state = PartitionState(0)
    state.set_min_in_sync_replicas(2)
    state.apply(image(isr=(0,)), 10, 10)
    state.on_append(50)  # with acks 1; the high watermark stays
    state.on_follower_fetch(1, 20, 1)
    assert state.propose_isr_expansion(1, 1, 1000) is None, "it would lag, leave, join, leave"
    state.on_follower_fetch(1, 50, 2)
    assert state.propose_isr_expansion(1, 2, 1000) == (0, 1)


def test_an_equal_partition_epoch_says_nothing_about_a_change_on_its_way() -> None:
    state = leader_of_three()
    state.on_append(10)
    state.on_follower_fetch(1, 10, 100)
    state.on_follower_fetch(2, 3, 100)
    assert state.propose_isr_shrink(5000, 1000) == (0, 1)
    assert not state.apply(image(), 10, 0, 5001)
    assert state.proposed_isr == (0, 1)
    assert state.followers[1].log_end_offset == 10
    state.apply(image(partition_epoch=1, isr=(0, 1)), 10, 0, 5002)
    assert state.proposed_isr is None and state.high_watermark == 10


def test_a_fetch_from_before_a_restart_is_refused() -> None:
    state = leader_of_three()
    state.on_append(10)
    state.on_follower_fetch(1, 10, 1, broker_epoch=7)
    assert code_of(state.on_follower_fetch, 1, 4, 2, 6) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert state.followers[1].log_end_offset == 10
    state.on_follower_fetch(1, 3, 2, broker_epoch=8)
    assert state.broker_epochs((0, 1, 2), 5) == (5, 8, -1)


def test_an_idle_follower_is_not_removed_at_the_next_append() -> None:
    """It has everything and does not fetch the partition: that it was caught up so far must not be forgotten."""
    state = leader_of_three(10)
    for replica in (1, 2):
        state.on_follower_fetch(replica, 10, 0)
    for now_ms in range(0, 100_000, 500):
        assert state.propose_isr_shrink(now_ms, 1000) is None
    state.on_append(11)
    assert state.propose_isr_shrink(100_000, 1000) is None
    assert state.propose_isr_shrink(101_000, 1000) == (0,)


def test_the_high_watermark_waits_for_one_that_is_about_to_join() -> None:
    state = PartitionState(0)
    state.apply(image(isr=(0, 1)), 10, 10)
    state.on_follower_fetch(2, 5, 1)
    state.on_append(12)
    assert state.on_follower_fetch(1, 12, 2) == 12, "one that is far behind holds up nobody"
    state.on_follower_fetch(2, 12, 3)
    state.on_append(14)
    assert state.on_follower_fetch(1, 14, 4) == 12
    assert state.on_follower_fetch(2, 14, 5) == 14
    state.on_append(15)
    state.on_follower_fetch(1, 15, 5)
    assert state.propose_isr_shrink(5000, 1000) is None
    assert state.high_watermark == 15, "it did not come in time"


def test_the_high_watermark_does_not_wait_for_one_that_cannot_join_any_more() -> None:
    state = PartitionState(0)
    state.apply(image(isr=(0, 1)), 10, 0)
    assert state.on_follower_fetch(2, 10, 1000) == 0
    assert state.followers[2].joins
    state.on_append(20)
    assert state.on_follower_fetch(1, 20, 1000) == 10
    assert state.on_follower_ineligible(2) == 20
    state.check()


def test_one_that_joined_and_was_removed_by_the_controller_holds_up_nobody() -> None:
    """A dead broker leaves the ISR in the leader epoch in which it had joined."""
    state = PartitionState(0)
    state.apply(image(isr=(0, 1)), 10, 0)
    state.on_follower_fetch(2, 10, 1000)
    state.propose_isr_expansion(2, 1000)
    state.apply(image(isr=(0, 1, 2), partition_epoch=1), 10, 0)
    state.apply(image(isr=(0, 1), partition_epoch=2), 10, 0)
    state.on_append(20)
    assert state.on_follower_fetch(1, 20, 2000) == 20


def test_a_broker_that_may_not_join_holds_up_nobody() -> None:
    state = PartitionState(0)
    state.apply(image(isr=(0, 1)), 10, 10)
    state.on_follower_fetch(2, 10, 1, eligible=False)
    state.on_append(12)
    assert state.on_follower_fetch(1, 12, 2) == 12


def test_a_lagging_follower_holds_the_high_watermark_until_the_controller_agrees() -> None:
    state = leader_of_three()
    state.on_append(10)
    state.on_follower_fetch(1, 10, 100)
    state.on_follower_fetch(2, 3, 100)
    assert state.propose_isr_shrink(100, 1000) is None
    state.on_follower_fetch(1, 10, 2000)
    assert state.propose_isr_shrink(2000, 1000) == (0, 1)
    assert state.propose_isr_shrink(2000, 1000) is None, "one proposal at a time"
    assert state.on_follower_fetch(1, 10, 2001) == 3
    state.apply(image(partition_epoch=1, isr=(0, 1)), 10, 0)
    assert state.high_watermark == 10
    state.check()


def test_a_follower_joins_only_past_the_start_of_the_epoch() -> None:
    state = PartitionState(0)
    state.apply(image(epoch=1, isr=(0, 1)), 10, 4)
    state.on_follower_fetch(2, 9, 1)
    assert state.propose_isr_expansion(2) is None
    state.on_follower_fetch(2, 10, 2)
    assert state.propose_isr_expansion(2) == (0, 1, 2)
    state.on_append(12)
    state.on_follower_fetch(1, 12, 3)
    assert state.high_watermark == 10, "the one that may have joined counts already"
    assert state.on_isr_change_rejected() == 12


def test_a_lone_leader_waits_for_the_one_that_may_have_joined() -> None:
    state = PartitionState(0)
    state.apply(image(isr=(0,)), 10, 10)
    state.on_follower_fetch(1, 10, 1)
    assert state.propose_isr_expansion(1) == (0, 1)
    assert state.on_append(12) == 10
    assert state.on_isr_change_rejected() == 12
    assert state.on_append(13) == 13


def test_strangers_may_not_fetch_as_followers() -> None:
    assert code_of(leader_of_three().on_follower_fetch, 9, 0, 0) is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_an_older_state_is_ignored() -> None:
    state = PartitionState(0)
    state.apply(image(epoch=2, partition_epoch=5), 0, 0)
    assert not state.apply(image(leader=1, epoch=1, partition_epoch=4), 0, 0)
    assert state.is_leader


def test_a_follower_never_knows_of_more_than_it_has() -> None:
    state = PartitionState(1)
    state.apply(image(), 5, 2)
    assert state.on_leader_high_watermark(9, 5) == 5
    state.on_truncate(3)
    assert state.high_watermark == 3
    state.check()


@given(
    st.lists(
        st.tuples(st.sampled_from(["append", "fetch1", "fetch2", "shrink", "expand", "refuse"]), st.integers(0, 30))
    )
)
def test_high_watermark_never_goes_back_nor_past_the_in_sync_replicas(steps: list[tuple[str, int]]) -> None:
    state = leader_of_three()
    ends = {1: -1, 2: -1}
    for now_ms, (step, number) in enumerate(steps):
        before = state.high_watermark
        if step == "append":
            state.on_append(state.log_end_offset + number)
        elif step.startswith("fetch"):
            replica = int(step[-1])
            ends[replica] = min(number, state.log_end_offset)
            state.on_follower_fetch(replica, ends[replica], now_ms)
        elif step == "shrink":
            state.propose_isr_shrink(now_ms, number)
        elif step == "expand":
            state.propose_isr_expansion(2)
        else:
            state.on_isr_change_rejected()
        state.check()
        assert state.high_watermark >= before
        if state.high_watermark > before:
            assert state.high_watermark <= min(ends[each] for each in state.in_sync_replicas if each)


def test_a_leader_without_a_disk_leaves_the_isr_to_the_others() -> None:
    state = leader_of_three()
    assert state.propose_resignation() == (1, 2)
    assert state.propose_resignation() is None, "one proposal at a time"
    alone = PartitionState(0)
    alone.apply(image(isr=(0,)), 0, 0)
    assert alone.propose_resignation() is None, "nobody else has what was committed"
