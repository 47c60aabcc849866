"""Each rule of replication is needed: without it, its transcript comes out differently.

A mutant takes one rule out of the code; a transcript that it still passes would not guard the rule.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from transcript_replication import Player

from barnabas.machines.partition.follower import Follower
from barnabas.machines.partition.state import PartitionState
from barnabas.machines.replica_fetch import ReplicaFetch
from barnabas.server import leader_fetcher, reading
from barnabas.server.hosted_partition import HostedPartition
from barnabas.server.leader_fetcher import LeaderFetcher
from barnabas.server.replicas import Replicas

FOLDER = Path(__file__).parent / "replication"
Mutate = Callable[[pytest.MonkeyPatch], None]
MUTANTS: list[Any] = []


def mutant(transcript: str) -> Callable[[Mutate], Mutate]:
    def register(mutate: Mutate) -> Mutate:
        MUTANTS.append(pytest.param(transcript, mutate, id=mutate.__name__))
        return mutate

    return register


@mutant("kip_101_truncation_by_epoch")
def a_follower_cuts_its_log_at_the_high_watermark(patch: pytest.MonkeyPatch) -> None:
    follow = LeaderFetcher.follow

    def cut_and_follow(self: LeaderFetcher, hosted: HostedPartition) -> None:
        hosted.log.truncate_to(hosted.log.high_watermark, 0)
        hosted.on_truncated()
        follow(self, hosted)

    patch.setattr(LeaderFetcher, "follow", cut_and_follow)


@mutant("kip_279_fast_elections")
def a_leader_knows_only_epochs_with_records(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(HostedPartition, "end_offset_for_epoch", lambda self, epoch: self.log.end_offset_for_epoch(epoch))


@mutant("kip_279_later_epochs")
@mutant("kip_279_unknown_epochs")
def a_follower_does_not_ask_its_own_epochs(patch: pytest.MonkeyPatch) -> None:
    def cut_at(leader_epoch: int, leader_end: int, own_epoch: int, own_end: int, log_end: int) -> int:
        return min(leader_end, log_end)

    patch.setattr(leader_fetcher, "cut_at", cut_at)


@mutant("kip_320_late_responses")
def late_responses_are_taken(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ReplicaFetch, "current", lambda self, key, number: self.partitions.get(key))


@mutant("kip_320_fencing")
def leader_epochs_are_not_checked(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PartitionState, "check_leader_epoch", lambda self, epoch: None)


@mutant("kip_320_recreated_topic")
def a_topic_is_known_by_its_name(patch: pytest.MonkeyPatch) -> None:
    def current(self: ReplicaFetch, key: tuple[bytes, int], number: int) -> Any:
        return next((each for each in self.partitions.values() if each.key[1] == key[1]), None)

    original = LeaderFetcher._take_partition

    def take(self: LeaderFetcher, followed: Any, hosted: Any, fetched: Any) -> None:
        original(self, followed, self._hosted[followed.key], fetched)

    class AnyTopic(dict):  # type: ignore[type-arg]
        def __missing__(self, key: object) -> Any:
            return next(iter(self.values()))

    follow = LeaderFetcher.follow

    def follow_by_name(self: LeaderFetcher, hosted: HostedPartition) -> None:
        self._hosted = AnyTopic(self._hosted)
        follow(self, hosted)

    patch.setattr(LeaderFetcher, "follow", follow_by_name)
    patch.setattr(LeaderFetcher, "_take_partition", take)
    patch.setattr(ReplicaFetch, "current", current)


@mutant("kafka_7128_joins_past_the_epochs_start")
def a_follower_joins_at_the_high_watermark(patch: pytest.MonkeyPatch) -> None:
    propose = PartitionState.propose_isr_expansion

    def without_epoch_start(self: PartitionState, *arguments: Any) -> Any:
        self.leader_epoch_start_offset = 0
        return propose(self, *arguments)

    patch.setattr(PartitionState, "propose_isr_expansion", without_epoch_start)


@mutant("kafka_19996_no_flapping_under_min_isr")
def a_follower_joins_under_min_isr_before_it_has_caught_up(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Follower, "is_caught_up", lambda self, end, now_ms, max_lag_ms: True)


@mutant("kip_497_proposed_members_count")
def only_the_committed_isr_counts(patch: pytest.MonkeyPatch) -> None:
    original = PartitionState._on_members_changed

    def without_proposed(self: PartitionState) -> None:
        proposed, self._proposed_isr = self._proposed_isr, None
        for follower in self._followers.values():
            follower.joins = False
        original(self)
        self._proposed_isr = proposed

    patch.setattr(PartitionState, "_on_members_changed", without_proposed)


@mutant("kip_497_proposed_members_count")
def only_the_proposed_isr_counts(patch: pytest.MonkeyPatch) -> None:
    original = PartitionState._on_members_changed

    def with_proposed_alone(self: PartitionState) -> None:
        committed = self.in_sync_replicas
        if self._proposed_isr is not None:
            self.in_sync_replicas = self._proposed_isr
        original(self)
        self.in_sync_replicas = committed

    patch.setattr(PartitionState, "_on_members_changed", with_proposed_alone)


@mutant("kafka_15583_under_min_isr")
def the_high_watermark_moves_under_min_isr(patch: pytest.MonkeyPatch) -> None:
    original = PartitionState._advance

    def advance(self: PartitionState) -> int:
        required, self.min_in_sync_replicas = self.min_in_sync_replicas, 0
        try:
            return original(self)
        finally:
            self.min_in_sync_replicas = required

    patch.setattr(PartitionState, "_advance", advance)


@mutant("kafka_15583_under_min_isr")
def waiting_produces_are_not_refused(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PartitionState, "is_under_min_isr", property(lambda self: False))


@mutant("kip_841_and_903_who_may_join")
def everybody_may_join(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Replicas, "_may_join_isr", lambda self, replica_id, broker_epoch: True)


@mutant("kafka_8400_failed_reads_do_not_count")
def progress_is_noted_before_the_read(patch: pytest.MonkeyPatch) -> None:
    original = reading._read_as_follower

    def note_first(replicas: Replicas, hosted: HostedPartition, wanted: Any, limits: Any, *arguments: Any) -> Any:
        replicas.on_follower_fetch(hosted, limits.replica_id, limits.broker_epoch, wanted.fetch_offset)
        return original(replicas, hosted, wanted, limits, *arguments)

    patch.setattr(reading, "_read_as_follower", note_first)


@mutant("log_start")
def the_leaders_log_start_is_ignored(patch: pytest.MonkeyPatch) -> None:
    original = HostedPartition.append_as_follower

    def append(
        self: HostedPartition, records: Any, leader_epoch: int, high_watermark: int, _start: int, now_ms: int
    ) -> None:
        original(self, records, leader_epoch, high_watermark, 0, now_ms)

    patch.setattr(HostedPartition, "append_as_follower", append)


def played(transcript: str) -> tuple[str, str]:
    """(as it is written, as it comes out)"""
    text = (FOLDER / f"{transcript}.txt").read_text(encoding="utf-8")
    player, lines = Player(), []
    for line in text.splitlines():
        if line.startswith(">"):
            lines += [line, *player.play(line[1:].strip())]
        elif line.startswith("#") or not line:
            lines.append(line)
    return text, "\n".join(lines) + "\n"


@mutant("log_start_in_a_batch")
def an_empty_follower_begins_at_the_log_start(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(HostedPartition, "_begin_with_whole_batch", lambda self, records, now_ms: None)


@pytest.mark.parametrize(("transcript", "mutate"), MUTANTS)
def test_a_mutant_is_caught(transcript: str, mutate: Mutate, monkeypatch: pytest.MonkeyPatch) -> None:
    expected, unchanged = played(transcript)
    assert expected == unchanged
    mutate(monkeypatch)
    try:
        _, mutated = played(transcript)
    except AssertionError:
        return  # an invariant has noticed
    assert mutated != expected


def test_every_trap_has_a_mutant() -> None:
    guarded = {each.values[0] for each in MUTANTS}
    assert guarded == {path.stem for path in FOLDER.glob("*.txt")}
