"""A follower's fetch in its session: reads the partitions with news, and waits if there are none.

Called by the Fetch handler for every incremental fetch of a follower. What it costs depends on the partitions in the
request and those with news (`follower_session`), not on those in the session.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from barnabas.errors import ErrorCode
from barnabas.machines.fetch_context import FetchContext, FetchPartition, IncrementalFetchContext, PartitionKey
from barnabas.net.deferred import Deferred
from barnabas.protocol.messages.fetch import FetchResponse
from barnabas.server.follower_session import FollowerSession, ParkedFetch
from barnabas.server.reading import FetchLimits, PartitionRead, read_partitions

if TYPE_CHECKING:
    from barnabas.server.broker import Broker

Respond = Callable[[Sequence[PartitionRead]], FetchResponse]


def fetch_news(
    broker: "Broker",
    context: IncrementalFetchContext,
    limits: FetchLimits,
    requested: Iterable[FetchPartition],
    forgotten: Iterable[PartitionKey],
    *,
    min_bytes: int,
    max_wait_ms: int,
    respond: Respond,
) -> FetchResponse | Deferred[FetchResponse]:
    news = open_news(broker, context, requested, forgotten)
    reads, total = _read(broker, context, news, limits, again=False)
    if total >= min_bytes or max_wait_ms <= 0 or any(read.error or read.diverging_epoch for read in reads):
        return respond(reads)
    for read in reads:
        if _is_worth_telling(read):
            news.watermarks[read.wanted.key] = None
    return wait_for_news(
        broker, context, limits, missing_bytes=min_bytes - total, max_wait_ms=max_wait_ms, respond=respond
    )


def open_news(
    broker: "Broker",
    context: IncrementalFetchContext,
    requested: Iterable[FetchPartition],
    forgotten: Iterable[PartitionKey],
) -> FollowerSession:
    """The session's news at the beginning of a fetch: what `take` returns is to be read."""
    session = context.session
    news = session.news
    if not isinstance(news, FollowerSession):
        news = session.news = FollowerSession(asyncio.get_running_loop(), broker.timers, broker.clock)
        session.on_removed = news.close
        # From here on it is notified; what happened before the first fetch in the session it has to see for itself.
        news.records = dict.fromkeys(session.partitions)
    for key in forgotten:
        news.unwatch(key)
    for wanted in requested:
        news.records[wanted.key] = None
    if news.under_replicated:
        news.look_at_under_replicated()
    if news.held_back:
        news.look_at_held_back()
    return news


def wait_for_news(
    broker: "Broker",
    context: IncrementalFetchContext,
    limits: FetchLimits,
    *,
    missing_bytes: int,
    max_wait_ms: int,
    respond: Respond,
) -> Deferred[FetchResponse]:
    """Responds with the news alone, once there are some. What has been read so far has nothing to say."""
    news = context.session.news
    assert isinstance(news, FollowerSession)
    response: Deferred[FetchResponse] = Deferred()

    def respond_later() -> None:
        found, _ = _read(broker, context, news, limits, again=True)
        response.complete(respond(found))

    news.park(ParkedFetch(missing_bytes, broker.clock.monotonic_ms() + max_wait_ms, respond_later))
    if news.held_back:
        broker.replicas.leader_throttle.when_allowed(news.release_all)
    response.on_abandoned = response.on_input_ended = news.finish
    return response


def _read(
    broker: "Broker", context: IncrementalFetchContext, news: FollowerSession, limits: FetchLimits, *, again: bool
) -> tuple[list[PartitionRead], int]:
    partitions = context.session.partitions
    wanted = [partition for key in news.take() if (partition := partitions.get(key)) is not None]
    reads, total = read_partitions(broker.replicas, wanted, limits, again=again)
    _note(news, reads)
    return reads, total


def note_reads(context: FetchContext, reads: Iterable[PartitionRead]) -> None:
    """Partitions that were read elsewhere, because they were very many. In the step that read them."""
    news = context.session.news if isinstance(context, IncrementalFetchContext) else None
    if isinstance(news, FollowerSession):
        _note(news, reads)


def has_something_to_say(reads: Iterable[PartitionRead]) -> bool:
    """Whether a response would have a partition in it, if only for its high watermark."""
    return any(map(_is_worth_telling, reads))


def _note(news: FollowerSession, reads: Iterable[PartitionRead]) -> None:
    """From now on the partitions report to the session."""
    for read in reads:
        hosted = read.hosted
        if hosted is not None:
            news.watch(read.wanted.key, hosted)
            if read.held_back:
                news.held_back[read.wanted.key] = None
            elif read.records is None and read.diverging_epoch is None and _has_more(read):
                # There was no room for it in this response.
                news.records[read.wanted.key] = None
        elif read.error is not ErrorCode.NONE:
            news.unwatch(read.wanted.key)


def _has_more(read: PartitionRead) -> bool:
    return read.hosted is not None and read.hosted.log.log_end_offset > read.wanted.fetch_offset


def _is_worth_telling(read: PartitionRead) -> bool:
    return read.high_watermark != read.wanted.high_watermark or read.log_start_offset != read.wanted.log_start_offset
