"""Offsets of a group: in whose name they are committed, what is tried again, what is said when it fails."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from fake_cluster import FakeCluster, lost

from barnabas.client.consumer.group import GroupMetadata, GroupOptions, OffsetCommitter
from barnabas.client.consumer.offsets import OffsetAndMetadata
from barnabas.client.coordinators import CoordinatorKind
from barnabas.client.errors import (
    AuthorizationError,
    ClientTimeoutError,
    CommitFailedError,
    FencedError,
    RebalanceInProgressError,
    UnknownTopicError,
)
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol import ApiKey
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from barnabas.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from barnabas.types import TopicPartition

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
OFFSETS = {T0: OffsetAndMetadata(5, "note", 3)}
QUICK: dict[str, Any] = {"group_id": "g", "retry_backoff_ms": 1, "retry_backoff_max_ms": 1}


class Membership:
    """What a committer asks of a membership, as the test wants it."""

    def __init__(self) -> None:
        self.identity = GroupMetadata("g", 4, "me", None)
        self.is_lost = self.is_rebalancing = False
        self.failure: KafkaError | None = None
        self.is_subscribed = True
        self.owned = {T0}
        self.refused: list[GroupMetadata] = []
        self.rejoins: list[str] = []
        self.on_refused = lambda: None

    def group_metadata(self) -> GroupMetadata:
        return self.identity

    def owns(self, partitions: Any) -> bool:
        return self.owned.issuperset(partitions)

    def on_commit_refused(self, identity: GroupMetadata) -> None:
        self.refused.append(identity)
        self.on_refused()

    def request_rejoin(self, reason: str) -> None:
        self.rejoins.append(reason)


def committer(cluster: FakeCluster, membership: Membership | None, **options: Any) -> OffsetCommitter:
    return OffsetCommitter(cluster, GroupOptions(**QUICK | options), membership)  # type: ignore[arg-type]


def committed(code: ErrorCode = ErrorCode.NONE) -> OffsetCommitResponse:
    partition = OffsetCommitResponsePartition(partition_index=0, error_code=code)
    return OffsetCommitResponse(topics=[OffsetCommitResponseTopic(name="t", partitions=[partition])])


def found(offset: int = 7, code: ErrorCode = ErrorCode.NONE, group: ErrorCode = ErrorCode.NONE) -> OffsetFetchResponse:
    partition = OffsetFetchResponsePartitions(
        partition_index=0, committed_offset=offset, committed_leader_epoch=2, metadata="note", error_code=code
    )
    topics = [OffsetFetchResponseTopics(name="t", partitions=[partition])]
    return OffsetFetchResponse(groups=[OffsetFetchResponseGroup(group_id="g", topics=topics, error_code=group)])


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


def test_a_commit_is_made_in_the_name_of_the_member() -> None:
    cluster = FakeCluster()
    cluster.answer(ApiKey.OFFSET_COMMIT, committed())
    run(committer(cluster, Membership()).commit(OFFSETS))
    (request,) = cluster.requests_of(ApiKey.OFFSET_COMMIT)
    assert isinstance(request, OffsetCommitRequest)
    assert (request.member_id, request.generation_id_or_member_epoch) == ("me", 4)
    (partition,) = request.topics[0].partitions
    assert (partition.committed_offset, partition.committed_metadata, partition.committed_leader_epoch) == (
        5,
        "note",
        3,
    )


def test_without_a_membership_in_nobodys_name() -> None:
    cluster = FakeCluster()
    cluster.always(ApiKey.OFFSET_COMMIT, committed())
    unsubscribed = Membership()
    unsubscribed.is_subscribed, unsubscribed.is_lost = False, True
    run(committer(cluster, None).commit(OFFSETS))
    run(committer(cluster, unsubscribed).commit(OFFSETS))
    seen = [(each.member_id, each.generation_id_or_member_epoch) for each in cluster.requests_of(ApiKey.OFFSET_COMMIT)]
    assert seen == [("", -1), ("", -1)]


def test_while_it_gives_up_after_unsubscribing_it_still_speaks_for_itself() -> None:
    cluster = FakeCluster()
    cluster.answer(ApiKey.OFFSET_COMMIT, committed())
    leaving = Membership()
    leaving.is_subscribed = False
    run(committer(cluster, leaving).commit(OFFSETS))
    assert cluster.requests_of(ApiKey.OFFSET_COMMIT)[0].member_id == "me"


def test_what_passes_is_tried_again_and_the_coordinator_looked_up() -> None:
    cluster = FakeCluster()
    forgotten: list[Any] = []
    cluster.forget_coordinator = lambda kind, key: forgotten.append(key)  # type: ignore[method-assign]
    cluster.answer(
        ApiKey.OFFSET_COMMIT,
        committed(ErrorCode.NOT_COORDINATOR),
        committed(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        lost(),
        committed(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        committed(),
    )
    run(committer(cluster, Membership()).commit(OFFSETS))
    assert forgotten == ["g", "g"]
    assert len(cluster.requests_of(ApiKey.OFFSET_COMMIT)) == 5


@pytest.mark.parametrize("code", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION])
def test_the_error_of_a_member_that_was_thrown_out_says_what_to_do(code: ErrorCode) -> None:
    cluster = FakeCluster()
    cluster.answer(ApiKey.OFFSET_COMMIT, committed(code))
    membership = Membership()
    with pytest.raises(CommitFailedError, match=r"(?s)Do not try again.*max\.poll\.interval\.ms") as caught:
        run(committer(cluster, membership).commit(OFFSETS))
    assert caught.value.code is code and not caught.value.retriable
    assert membership.refused == [membership.identity]


def test_a_lost_member_does_not_even_ask() -> None:
    cluster = FakeCluster()
    membership = Membership()
    membership.is_lost = True
    with pytest.raises(CommitFailedError, match="Call poll, which joins again"):
        run(committer(cluster, membership).commit(OFFSETS))
    assert not cluster.requests


def test_between_two_generations_poll_comes_first() -> None:
    cluster = FakeCluster()
    membership = Membership()
    cluster.answer(ApiKey.OFFSET_COMMIT, committed(ErrorCode.REBALANCE_IN_PROGRESS))
    with pytest.raises(RebalanceInProgressError, match="Call poll"):
        run(committer(cluster, membership).commit(OFFSETS))
    assert len(membership.rejoins) == 1
    membership.is_rebalancing = True
    with pytest.raises(RebalanceInProgressError) as caught:
        run(committer(cluster, membership).commit(OFFSETS))
    assert caught.value.retriable and len(cluster.requests) == 1


@pytest.mark.parametrize("still_ours", [True, False])
def test_a_retry_after_a_rebalance_only_for_what_is_still_ours(still_ours: bool) -> None:
    cluster = FakeCluster()
    membership = Membership()

    def rebalance(_node_id: int, _request: Any) -> OffsetCommitResponse:
        membership.identity = membership.identity._replace(generation_id=5)
        if not still_ours:
            membership.owned = {T1}
        return committed(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)

    cluster.answer(ApiKey.OFFSET_COMMIT, rebalance, committed())
    if still_ours:
        run(committer(cluster, membership).commit(OFFSETS))
        assert cluster.requests_of(ApiKey.OFFSET_COMMIT)[1].generation_id_or_member_epoch == 5
    else:
        with pytest.raises(CommitFailedError, match="rebalanced since generation 4"):
            run(committer(cluster, membership).commit(OFFSETS))


def test_a_stale_epoch_waits_for_the_next_one() -> None:
    cluster = FakeCluster()
    membership = Membership()

    def heartbeat() -> None:
        membership.identity = membership.identity._replace(generation_id=6)

    membership.on_refused = heartbeat
    cluster.answer(ApiKey.OFFSET_COMMIT, committed(ErrorCode.STALE_MEMBER_EPOCH), committed())
    run(committer(cluster, membership, group_protocol="consumer").commit(OFFSETS))
    assert [each.generation_id_or_member_epoch for each in cluster.requests_of(ApiKey.OFFSET_COMMIT)] == [4, 6]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, AuthorizationError),
        (ErrorCode.GROUP_AUTHORIZATION_FAILED, AuthorizationError),
        (ErrorCode.FENCED_INSTANCE_ID, FencedError),
        (ErrorCode.OFFSET_METADATA_TOO_LARGE, KafkaError),
    ],
)
def test_what_does_not_pass_is_raised(code: ErrorCode, expected: type[KafkaError]) -> None:
    cluster = FakeCluster()
    cluster.answer(ApiKey.OFFSET_COMMIT, committed(code))
    with pytest.raises(expected) as caught:
        run(committer(cluster, Membership()).commit(OFFSETS))
    assert caught.value.code is code


def test_what_does_not_pass_counts_more_than_what_does() -> None:
    cluster = FakeCluster()
    codes = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.OFFSET_METADATA_TOO_LARGE)
    partitions = [OffsetCommitResponsePartition(partition_index=n, error_code=code) for n, code in enumerate(codes)]
    topics = [OffsetCommitResponseTopic(name="t", partitions=partitions)]
    cluster.always(ApiKey.OFFSET_COMMIT, OffsetCommitResponse(topics=topics))
    with pytest.raises(KafkaError, match="t-1") as caught:
        run(committer(cluster, Membership()).commit({**OFFSETS, T1: OffsetAndMetadata(1)}))
    assert caught.value.code is ErrorCode.OFFSET_METADATA_TOO_LARGE


def test_at_the_deadline_the_last_reason_is_given() -> None:
    cluster = FakeCluster()
    cluster.always(ApiKey.OFFSET_COMMIT, committed(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
    with pytest.raises(UnknownTopicError, match="t-0"):
        run(committer(cluster, None).commit(OFFSETS, timeout_ms=20))


def test_fetch_gives_what_there_is() -> None:
    cluster = FakeCluster()
    cluster.answer(ApiKey.OFFSET_FETCH, found())
    fetched = run(committer(cluster, Membership()).fetch([T0, T1]))
    assert fetched == {T0: OffsetAndMetadata(7, "note", 2), T1: None}
    request: OffsetFetchRequest = cluster.requests_of(ApiKey.OFFSET_FETCH)[0]
    assert request.groups[0].member_id is None and not request.require_stable
    cluster.answer(ApiKey.OFFSET_FETCH, found(offset=-1))
    assert run(committer(cluster, None).fetch([T0])) == {T0: None}


def test_fetch_names_the_member_only_in_the_new_protocol() -> None:
    cluster = FakeCluster()
    membership = Membership()
    membership.on_refused = lambda: setattr(membership, "is_lost", True)
    cluster.answer(ApiKey.OFFSET_FETCH, found(group=ErrorCode.STALE_MEMBER_EPOCH), found())
    run(committer(cluster, membership, group_protocol="consumer").fetch([T0]))
    groups = [each.groups[0] for each in cluster.requests_of(ApiKey.OFFSET_FETCH)]
    assert [(each.member_id, each.member_epoch) for each in groups] == [("me", 4), (None, -1)]


def test_read_committed_waits_for_open_transactions() -> None:
    cluster = FakeCluster()
    cluster.answer(ApiKey.OFFSET_FETCH, found(code=ErrorCode.UNSTABLE_OFFSET_COMMIT), found(8))
    fetched = run(committer(cluster, None, isolation_level="read_committed").fetch([T0]))
    assert fetched[T0].offset == 8
    assert all(each.require_stable for each in cluster.requests_of(ApiKey.OFFSET_FETCH))


@pytest.mark.parametrize("version", [1, 5, 7])
def test_older_brokers_are_asked_for_one_group(version: int) -> None:
    cluster = FakeCluster()
    cluster.versions[ApiKey.OFFSET_FETCH] = version
    partition = OffsetFetchResponsePartition(partition_index=0, committed_offset=7, metadata="", error_code=0)
    topics = [OffsetFetchResponseTopic(name="t", partitions=[partition])]
    cluster.answer(
        ApiKey.OFFSET_FETCH, OffsetFetchResponse(topics=topics, error_code=16), OffsetFetchResponse(topics=topics)
    )
    fetched = run(committer(cluster, None, isolation_level="read_committed").fetch([T0]))
    assert fetched == {T0: OffsetAndMetadata(7)}
    assert cluster.requests_of(ApiKey.OFFSET_FETCH)[0].group_id == "g"
    assert cluster.knows_coordinator(CoordinatorKind.GROUP, "g")


def test_nothing_to_do_asks_nobody() -> None:
    cluster = FakeCluster()
    run(committer(cluster, None).commit({}))
    assert run(committer(cluster, None).fetch([])) == {}
    assert not cluster.requests


def offsets_of(request: OffsetCommitRequest) -> dict[int, int]:
    return {each.partition_index: each.committed_offset for topic in request.topics for each in topic.partitions}


def test_a_retry_leaves_out_what_a_later_commit_is_about() -> None:
    """Else an older offset would be stored last."""
    cluster = FakeCluster()

    async def both() -> None:
        commits = committer(cluster, None)
        later: list[asyncio.Task[None]] = []

        def fail(*_: Any) -> OffsetCommitResponse:
            later.append(asyncio.get_running_loop().create_task(commits.commit({T0: OffsetAndMetadata(9)})))
            return response(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)

        cluster.answer(ApiKey.OFFSET_COMMIT, fail)
        cluster.always(ApiKey.OFFSET_COMMIT, committed())
        await commits.commit({T0: OffsetAndMetadata(5), T1: OffsetAndMetadata(6)})
        await asyncio.gather(*later)

    run(both())
    seen = [offsets_of(each) for each in cluster.requests_of(ApiKey.OFFSET_COMMIT)]
    assert sorted(seen[1:], key=str) == [{0: 9}, {1: 6}]


def test_one_that_waits_for_a_connection_is_not_sent_after_a_later_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """When a broker comes back, each commit that waits for it wakes up by itself, in whatever order."""
    cluster = FakeCluster()
    cluster.answer(ApiKey.OFFSET_COMMIT, committed(), committed())

    async def main() -> None:
        commits = committer(cluster, Membership())
        connected, waits = asyncio.Event(), asyncio.Event()

        async def connect(node_id: int, *, timeout_ms: int | None = None) -> None:
            monkeypatch.undo()
            waits.set()
            await connected.wait()

        async def send(node_id: int, request: Any, **options: Any) -> Any:
            await connect(node_id)  # what a real one does where it is not connected
            return await cluster.send(node_id, request, **options)

        monkeypatch.setattr(cluster, "connect", connect)
        monkeypatch.setattr(cluster, "send", send)
        earlier = asyncio.create_task(commits.commit({T0: OffsetAndMetadata(5)}))
        await waits.wait()
        await commits.commit({T0: OffsetAndMetadata(9)})
        connected.set()
        await earlier

    run(main())
    sent = [request.topics[0].partitions[0].committed_offset for request in cluster.requests_of(ApiKey.OFFSET_COMMIT)]
    assert sent == [9]


def test_only_what_was_not_stored_is_committed_again() -> None:
    cluster = FakeCluster()
    cluster.answer(ApiKey.OFFSET_COMMIT, response(ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), committed())
    run(committer(cluster, None).commit({T0: OffsetAndMetadata(5), T1: OffsetAndMetadata(6)}))
    assert [offsets_of(each) for each in cluster.requests_of(ApiKey.OFFSET_COMMIT)] == [{0: 5, 1: 6}, {1: 6}]


def response(*codes: ErrorCode) -> OffsetCommitResponse:
    partitions = [OffsetCommitResponsePartition(partition_index=n, error_code=code) for n, code in enumerate(codes)]
    return OffsetCommitResponse(topics=[OffsetCommitResponseTopic(name="t", partitions=partitions)])


async def superseded(cluster: FakeCluster, commits: OffsetCommitter, offset: int) -> asyncio.Task[None]:
    """A commit that is refused for now, and that knows of a later one before it is tried again: not done."""
    loading = committed(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    cluster.always(ApiKey.OFFSET_COMMIT, loading)
    earlier = asyncio.create_task(commits.commit({T0: OffsetAndMetadata(offset)}))
    await cluster.request_of(ApiKey.OFFSET_COMMIT)
    return earlier


@pytest.mark.parametrize("ends_by", ["cancellation", "failure"])
def test_one_left_to_a_later_commit_is_made_if_that_comes_to_nothing(ends_by: str) -> None:
    """Else its callback hears of a success, and nothing is stored."""
    cluster = FakeCluster()

    async def main() -> None:
        commits = committer(cluster, None)
        earlier = await superseded(cluster, commits, 10)
        later = asyncio.create_task(commits.commit({T0: OffsetAndMetadata(20)}))
        for number in range(1, 6):
            await cluster.request_of(ApiKey.OFFSET_COMMIT, number)
        assert not earlier.done()
        if ends_by == "cancellation":
            later.cancel()
            await asyncio.wait([later])
        else:
            cluster.answer(ApiKey.OFFSET_COMMIT, committed(ErrorCode.GROUP_AUTHORIZATION_FAILED))
            with pytest.raises(AuthorizationError):
                await later
        cluster.always(ApiKey.OFFSET_COMMIT, committed())
        await earlier

    run(main())
    assert offsets_of(cluster.requests_of(ApiKey.OFFSET_COMMIT)[-1]) == {0: 10}


def test_one_left_to_a_later_commit_is_done_with_it() -> None:
    cluster = FakeCluster()

    async def main() -> None:
        commits = committer(cluster, None)
        earlier = await superseded(cluster, commits, 10)
        later = asyncio.create_task(commits.commit({T0: OffsetAndMetadata(20)}))
        await cluster.request_of(ApiKey.OFFSET_COMMIT, 2)
        cluster.always(ApiKey.OFFSET_COMMIT, committed())
        await asyncio.gather(earlier, later)

    run(main())
    assert [offsets_of(each)[0] for each in cluster.requests_of(ApiKey.OFFSET_COMMIT)].count(10) <= 2
    assert offsets_of(cluster.requests_of(ApiKey.OFFSET_COMMIT)[-1]) == {0: 20}


def test_one_left_to_a_later_commit_waits_no_longer_than_it_may() -> None:
    cluster = FakeCluster()

    async def main() -> None:
        commits = committer(cluster, None, default_api_timeout_ms=50)
        earlier = await superseded(cluster, commits, 10)
        later = asyncio.create_task(commits.commit({T0: OffsetAndMetadata(20)}, timeout_ms=60_000))
        with pytest.raises(ClientTimeoutError, match="later commit"):
            await earlier
        later.cancel()
        await asyncio.wait([later])

    run(main())
