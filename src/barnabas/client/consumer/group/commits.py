"""Offsets of a group: committed and fetched at its coordinator, tried again until the deadline.

Used by the consumer (commit, auto-commit, positions, `committed`), on the I/O loop. With a membership every request is
made in the name of the member, so that one that was thrown out cannot overwrite what its successor has committed. A
commit that has to be tried again is given up when the group has moved on and the partitions are not ours any more, and
leaves out what a later commit has stored: offsets do not go back.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, TypeVar

from barnabas.client.cluster_client import ClusterClient
from barnabas.client.consumer.group import refusals
from barnabas.client.consumer.group.commit_order import CommitOrder
from barnabas.client.consumer.group.coordinator_link import CoordinatorLink
from barnabas.client.consumer.group.driver import MembershipDriver
from barnabas.client.consumer.group.machine import GroupMetadata
from barnabas.client.consumer.group.offset_requests import (
    MAX_VERSION,
    commit_errors,
    commit_request,
    fetch_request,
    fetched_offsets,
    group_error,
)
from barnabas.client.consumer.group.options import CONSUMER, GroupOptions
from barnabas.client.consumer.group.refusals import MOVED
from barnabas.client.consumer.offsets import OffsetAndMetadata
from barnabas.client.errors import RebalanceInProgressError, error_code, error_for
from barnabas.client.retry import Backoff, Deadline, retrying
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.api import ApiKey
from barnabas.types import TopicPartition

T = TypeVar("T")
NOT_A_MEMBER = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.FENCED_MEMBER_EPOCH})
LATE_EPOCH = frozenset({ErrorCode.STALE_MEMBER_EPOCH})
"""The next heartbeat brings the epoch; then the same request may succeed."""


class OffsetCommitter:
    """Commits and fetches the offsets of the group, with retries. On the I/O loop."""

    def __init__(self, cluster: ClusterClient, options: GroupOptions, membership: MembershipDriver | None) -> None:
        self._link = CoordinatorLink(cluster, options)
        self._options = options
        self._membership = membership
        self._order = CommitOrder()

    @property
    def failure(self) -> KafkaError | None:
        """The last error in finding or reaching the coordinator; None after a response. From any thread."""
        return self._link.failure

    async def commit(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], *, timeout_ms: int | None = None
    ) -> None:
        """Returns when all of them are stored, or left to a later commit. Default time-out: default.api.timeout.ms."""
        if not offsets:
            return
        started_as = self._committing_identity(None, offsets)
        left = dict(offsets)
        number = self._order.enter(offsets)
        try:
            await self._retrying(lambda deadline: self._commit_left(number, left, started_as, deadline), timeout_ms)
        finally:
            self._order.leave(number, offsets)

    async def _commit_left(
        self, number: int, left: dict[TopicPartition, OffsetAndMetadata], started_as: GroupMetadata, deadline: Deadline
    ) -> None:
        """One attempt; what was stored, by this commit or a later one, is taken out."""
        while left:
            # Before the check for later commits, not after: one of them might overtake this one while it waits.
            await self._link.ready(deadline)
            for partition in [each for each in left if self._order.is_outdated(number, each)]:
                del left[partition]
            due = {each: offset for each, offset in left.items() if self._order.is_due(number, each)}
            if not due:
                if left:
                    await self._order.change(deadline)
                continue
            identity = self._committing_identity(started_as, due)
            response = await self._send(commit_request(identity, due), MAX_VERSION, deadline)
            failed = commit_errors(response)
            stored = [each for each in due if each not in failed]
            self._order.stored(number, stored)
            for partition in stored:
                del left[partition]
            self._check_commit(identity, failed)

    async def fetch(
        self, partitions: Collection[TopicPartition], *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What was committed last; None where nothing was.

        With read_committed an offset that an open transaction may still change is waited for.
        """
        if not partitions:
            return {}

        async def attempt(deadline: Deadline) -> dict[TopicPartition, OffsetAndMetadata | None]:
            return await self._fetch_once(partitions, deadline)

        return await self._retrying(attempt, timeout_ms)

    async def _fetch_once(
        self, partitions: Collection[TopicPartition], deadline: Deadline
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        options = self._options
        version = await self._link.version_of(ApiKey.OFFSET_FETCH, max_version=MAX_VERSION, deadline=deadline)
        member = self._fetching_identity()
        stable = options.isolation_level == "read_committed"
        request = fetch_request(options.group_id, member, partitions, version, require_stable=stable)
        response = await self._send(request, version, deadline)
        self._check_fetch(group_error(response), member)
        found: dict[TopicPartition, OffsetAndMetadata | None] = dict.fromkeys(partitions)
        for partition, code, committed in fetched_offsets(response):
            if partition not in found:
                continue  # not requested
            if code:
                raise error_for(code, topic=partition.topic, partition=partition.partition, group=options.group_id)
            found[partition] = committed
        return found

    # Identity

    def _committing_identity(
        self, started_as: GroupMetadata | None, offsets: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> GroupMetadata:
        membership = self._membership
        if membership is None or (membership.is_lost and not membership.is_subscribed):
            return GroupMetadata(self._options.group_id)  # partitions assigned by hand
        if membership.is_rebalancing:
            raise refusals.rebalancing(self._options, membership.failure)
        if membership.is_lost:
            raise refusals.not_a_member(self._options)
        identity = membership.group_metadata()
        if started_as is not None and identity != started_as and not membership.owns(offsets.keys()):
            raise refusals.moved_on(self._options, started_as, ErrorCode.ILLEGAL_GENERATION)
        return identity

    def _fetching_identity(self) -> GroupMetadata | None:
        membership = self._membership
        if membership is None or self._options.group_protocol != CONSUMER or membership.is_lost:
            return None
        return membership.group_metadata()

    # Answers

    def _check_commit(self, identity: GroupMetadata, errors: Mapping[TopicPartition, int]) -> None:
        failed = [(error_code(number), partition) for partition, number in errors.items()]
        failed.sort(key=lambda each: each[0].retriable)  # permanent errors come first
        for code, partition in failed:
            if code in MOVED:
                self._link.forget()
            elif code is ErrorCode.REBALANCE_IN_PROGRESS:
                if self._membership is not None:
                    self._membership.request_rejoin("a commit was refused: the group is rebalancing")
                raise refusals.rebalancing(self._options)
            elif code in NOT_A_MEMBER:
                self._report_refused(identity)
                raise refusals.moved_on(self._options, identity, code)
            elif code in LATE_EPOCH:
                self._report_refused(identity)
            raise error_for(code, topic=partition.topic, partition=partition.partition, group=self._options.group_id)

    def _check_fetch(self, number: int, member: GroupMetadata | None) -> None:
        code = error_code(number)
        if code in MOVED:
            self._link.forget()
        elif member is not None and (code in NOT_A_MEMBER or code in LATE_EPOCH):
            self._report_refused(member)
            code = ErrorCode.STALE_MEMBER_EPOCH  # tried again under the next epoch, or in nobody's name
        if code is not ErrorCode.NONE:
            raise error_for(code, group=self._options.group_id)

    def _report_refused(self, identity: GroupMetadata) -> None:
        if self._membership is not None:
            self._membership.on_commit_refused(identity)

    async def _send(self, request: Any, max_version: int, deadline: Deadline) -> Any:
        timeout_ms = max(1, min(self._options.request_timeout_ms, deadline.remaining_ms))
        return await self._link.send(request, timeout_ms=timeout_ms, max_version=max_version, deadline=deadline)

    async def _retrying(self, attempt: Callable[[Deadline], Awaitable[T]], timeout_ms: int | None) -> T:
        deadline = Deadline(self._options.default_api_timeout_ms if timeout_ms is None else timeout_ms)
        return await retrying(
            lambda: attempt(deadline),
            deadline=deadline,
            backoff=Backoff(self._options.retry_backoff_ms, self._options.retry_backoff_max_ms),
            retriable=_may_succeed_later,
        )


def _may_succeed_later(error: KafkaError) -> bool:
    if isinstance(error, RebalanceInProgressError):
        return False  # only poll can bring the rebalance to its end
    return error.retriable or error.code in LATE_EPOCH
