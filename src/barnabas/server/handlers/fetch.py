"""Fetch (key 1), v4-v18: record batches, straight from the segment files.

Incremental sessions (v7, KIP-227), leader epochs (v9, KIP-320), diverging epochs (v12, KIP-595), topic ids (v13,
KIP-516). A fetch that finds fewer than min_bytes waits in the purgatory, unless a partition is in error: the client is
reported at once. A consumer may be sent to a replica in its rack (v11, KIP-392), and learns who leads where this
broker does not (v16, KIP-951). Differs from Kafka: no tiered storage.
"""

from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeGuard, cast

from barnabas.config.areas.replication import RACK_AWARE_SELECTOR
from barnabas.errors import ErrorCode
from barnabas.machines.fetch_context import FetchContext, FetchPartition, IncrementalFetchContext, PartitionKey
from barnabas.machines.partition.follower import NO_BROKER_EPOCH
from barnabas.net.deferred import Deferred, then
from barnabas.net.reply import Parts
from barnabas.protocol.api import ApiKey
from barnabas.protocol.headers import encode_response_parts
from barnabas.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from barnabas.server.dispatch import Handler
from barnabas.server.follower_fetch import fetch_news, has_something_to_say, note_reads, open_news, wait_for_news
from barnabas.server.follower_session import FollowerSession
from barnabas.server.leader_hints import leader_hint
from barnabas.server.purgatory import DelayedFetch
from barnabas.server.reading import CONSUMER, FetchLimits, PartitionRead, read_partitions
from barnabas.server.replica_selection import NO_PREFERENCE, SelectReplica, select_by_rack
from barnabas.server.request import CLUSTER, Operation, RequestContext
from barnabas.server.steps import PARTITIONS_PER_STEP, in_steps, is_one_step

if TYPE_CHECKING:
    from barnabas.server.broker import Broker

FIRST_TOPIC_ID_VERSION = 13
FIRST_REPLICA_STATE_VERSION = 15
FIRST_LEADER_VERSION = 16
HINTED = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
RESPONSE_BYTES, RESPONSE_PARTITION_BYTES = 30, 60
"""What a response takes besides records, roughly, for the quota of consumers."""
PARKED_BYTES = 2000
PARKED_PARTITION_BYTES = 500
"""What a waiting fetch holds, roughly: its request and session, and an entry per partition."""


class Topics(dict[str | bytes, FetchableTopicResponse]):
    """What is in the response so far, and the leaders that it names."""

    __slots__ = ("leaders",)

    def __init__(self) -> None:
        self.leaders: dict[int, NodeEndpoint] = {}


Finish = Callable[[], FetchResponse | Deferred[FetchResponse]]


def handle_fetch(context: RequestContext, request: FetchRequest) -> FetchResponse | Deferred[FetchResponse]:
    if is_one_step(request.topics, _partition_count):
        if _replica_id(context, request) >= 0 and not context.may(Operation.CLUSTER_ACTION, CLUSTER):
            return fail_fetch(context, request, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        wanted = _wanted(request, context.version)
        session, limits = _open(context, request, wanted)
        if _is_followers(session):
            return fetch_news(
                context.broker,
                session,
                limits,
                wanted,
                _forgotten(request, context.version >= FIRST_TOPIC_ID_VERSION),
                min_bytes=request.min_bytes,
                max_wait_ms=request.max_wait_ms,
                respond=partial(_respond, context, session, limits),
            )
        return _fetch(context, request, session, limits)
    return then(context.in_slices(_fetch_in_slices(context, request)), lambda finish: finish())


def _fetch(
    context: RequestContext, request: FetchRequest, session: FetchContext, limits: FetchLimits
) -> FetchResponse | Deferred[FetchResponse]:
    if session.error is not ErrorCode.NONE:
        return FetchResponse(error_code=session.error, responses=[])
    reads, total = read_partitions(context.broker.replicas, session.partitions, limits)
    if _begins_session(context, request, limits) or _is_enough(request, reads, total):
        return _respond(context, session, limits, reads)
    return _park(context, session, request, limits, reads, request.min_bytes - total)


def _begins_session(context: RequestContext, request: FetchRequest, limits: FetchLimits) -> bool:
    """A follower waits in its session, where it can name new partitions meanwhile: so it gets that first."""
    return limits.replica_id >= 0 and request.session_epoch == 0 and context.broker.fetch_sessions.has_room


def _fetch_in_slices(context: RequestContext, request: FetchRequest) -> Generator[None, None, Finish]:
    """The same for very many partitions: others are served in between."""
    wanted: list[FetchPartition] = []
    for topics in in_steps(request.topics, _partition_count, _some_partitions):
        wanted += _wanted(FetchRequest(topics=topics), context.version)
        yield
    session, limits = _open(context, request, wanted)
    if session.error is not ErrorCode.NONE:
        return partial(FetchResponse, error_code=session.error, responses=[])
    reads: list[PartitionRead] = []
    total = 0
    partitions = _to_read(context, request, session, wanted)
    yield
    for start in range(0, len(partitions), PARTITIONS_PER_STEP):
        some, total = read_partitions(
            context.broker.replicas, partitions[start : start + PARTITIONS_PER_STEP], limits, total
        )
        reads += some
        note_reads(session, some)
        yield
    if not _begins_session(context, request, limits) and not _is_enough(request, reads, total):
        missing_bytes = request.min_bytes - total
        if not _is_followers(session):
            return partial(_park, context, session, request, limits, reads, missing_bytes)
        if not has_something_to_say(reads):
            return partial(_wait_for_news, context, session, request, limits, missing_bytes)
    if context.limits is not None and not context.may_fetch(_response_bytes(reads)):
        return partial(_throttled, session)
    topics_read = Topics()
    for start in range(0, len(reads), PARTITIONS_PER_STEP):
        _add(context, topics_read, session, limits, reads[start : start + PARTITIONS_PER_STEP])
        yield
    return partial(_finish, context, session, topics_read)


def _is_followers(session: FetchContext) -> TypeGuard[IncrementalFetchContext]:
    return isinstance(session, IncrementalFetchContext) and session.session.privileged


def _to_read(
    context: RequestContext, request: FetchRequest, session: FetchContext, wanted: list[FetchPartition]
) -> list[FetchPartition]:
    """All partitions; of a follower's session those with news."""
    if not _is_followers(session):
        return list(session.partitions)
    forgotten = _forgotten(request, context.version >= FIRST_TOPIC_ID_VERSION)
    known = session.session.partitions
    keys = open_news(context.broker, session, wanted, forgotten).take()
    return [partition for key in keys if (partition := known.get(key)) is not None]


def _wait_for_news(
    context: RequestContext,
    session: IncrementalFetchContext,
    request: FetchRequest,
    limits: FetchLimits,
    missing_bytes: int,
) -> Deferred[FetchResponse]:
    response = wait_for_news(
        context.broker,
        session,
        limits,
        missing_bytes=missing_bytes,
        max_wait_ms=request.max_wait_ms,
        respond=partial(_respond, context, session, limits),
    )
    news = session.session.news
    if isinstance(news, FollowerSession) and news.records:
        # Appended between the slices, when nobody waited yet.
        news.finish()
    return response


def _partition_count(topic: FetchTopic) -> int:
    return len(topic.partitions)


def _some_partitions(topic: FetchTopic, start: int, end: int) -> FetchTopic:
    return FetchTopic(topic=topic.topic, topic_id=topic.topic_id, partitions=topic.partitions[start:end])


def _is_enough(request: FetchRequest, reads: Sequence[PartitionRead], total: int) -> bool:
    enough = total >= request.min_bytes or request.max_wait_ms <= 0 or not reads
    return enough or any(read.error or read.redirects for read in reads)


def _replica_id(context: RequestContext, request: FetchRequest) -> int:
    if context.version >= FIRST_REPLICA_STATE_VERSION:
        return request.replica_state.replica_id
    return request.replica_id


def _open(
    context: RequestContext, request: FetchRequest, wanted: list[FetchPartition]
) -> tuple[FetchContext, FetchLimits]:
    broker = context.broker
    uses_topic_ids = context.version >= FIRST_TOPIC_ID_VERSION
    replica_id, broker_epoch = _replica_id(context, request), NO_BROKER_EPOCH
    if context.version >= FIRST_REPLICA_STATE_VERSION:
        broker_epoch = request.replica_state.replica_epoch
    if replica_id >= 0 and not context.may_act_as_broker():
        # Followers read what is not committed, and what they claim to have counts.
        error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        return FetchContext((), error), FetchLimits(context.version, replica_id, 0, 0)
    if replica_id >= 0:
        context.meter = broker.dispatcher.meters.fetch_follower
        _end_wait(broker, request.session_id)
    session = broker.fetch_sessions.open(
        request.session_id,
        request.session_epoch,
        wanted,
        _forgotten(request, uses_topic_ids),
        uses_topic_ids=uses_topic_ids,
        follower=replica_id >= 0,
        now_ms=broker.clock.monotonic_ms(),
    )
    max_bytes = min(request.max_bytes, broker.config.fetch_max_bytes)
    if replica_id >= 0:
        context.limits = None  # a follower
    elif context.limits is not None:
        max_bytes = context.fetch_max_bytes(max_bytes)
        request.min_bytes = min(request.min_bytes, max_bytes)
    select = _selection(context, request) if request.rack_id and replica_id == CONSUMER else None
    may_read = None
    if broker.authorizer is not None and replica_id < 0:
        may_read = partial(context.may_topic, Operation.READ)
    return session, FetchLimits(
        context.version, replica_id, max_bytes, request.isolation_level, broker_epoch, select, may_read
    )


def _selection(context: RequestContext, request: FetchRequest) -> SelectReplica | None:
    if context.broker.config.replica_selector_class != RACK_AWARE_SELECTOR:
        return None
    return partial(select_by_rack, context.broker.cluster.image, request.rack_id, context.listener.name)


def _end_wait(broker: "Broker", session_id: int) -> None:
    """A follower sends another request in its session: the one that waits responds first, in its epoch."""
    broker.fetch_purgatory.on_session_request(session_id)
    session = broker.fetch_sessions.get(session_id)
    if session is not None and isinstance(session.news, FollowerSession):
        session.news.finish()


def _park(
    context: RequestContext,
    session: FetchContext,
    request: FetchRequest,
    limits: FetchLimits,
    first_reads: Sequence[PartitionRead],
    missing_bytes: int,
) -> Deferred[FetchResponse]:
    broker = context.broker
    response: Deferred[FetchResponse] = Deferred()

    def read_again(last_chance: bool) -> int:
        reads, total = read_partitions(broker.replicas, session.partitions, limits, again=True)
        if not last_chance and not _is_enough(request, reads, total):
            return request.min_bytes - total
        response.complete(_respond(context, session, limits, reads))
        return 0

    watched = [read.hosted for read in first_reads if read.hosted is not None]
    fetch = DelayedFetch(watched, missing_bytes, read_again, limits.replica_id >= 0, request.session_id)
    broker.fetch_purgatory.park(fetch, request.max_wait_ms)
    if any(read.held_back for read in first_reads):
        broker.replicas.leader_throttle.when_allowed(partial(broker.fetch_purgatory.finish, fetch))
    response.on_abandoned = response.on_input_ended = partial(broker.fetch_purgatory.finish, fetch)
    context.hold(PARKED_BYTES + len(first_reads) * PARKED_PARTITION_BYTES)
    return response


def _respond(
    context: RequestContext, session: FetchContext, limits: FetchLimits, reads: Sequence[PartitionRead]
) -> FetchResponse:
    if context.limits is not None and not context.may_fetch(_response_bytes(reads)):
        return _throttled(session)
    topics = Topics()
    _add(context, topics, session, limits, reads)
    return _finish(context, session, topics)


def _add(
    context: RequestContext,
    topics: Topics,
    session: FetchContext,
    limits: FetchLimits,
    reads: Sequence[PartitionRead],
) -> None:
    included = [
        read
        for read in reads
        if session.include(
            read.wanted,
            read.error,
            read.high_watermark,
            read.log_start_offset,
            read.record_bytes,
            redirects=read.redirects,
        )
    ]
    for read in included:
        topic = read.wanted.topic
        if topic not in topics:
            topics[topic] = _topic_response(topic)
        data = _partition_data(read)
        if read.hosted is not None and read.records is not None:
            if limits.from_consumer:
                read.hosted.traffic.bytes_out += read.record_bytes
            else:
                read.hosted.traffic.replication_bytes_out += read.record_bytes
        if read.throttle is not None:
            read.throttle.record(read.record_bytes)
        if read.error in HINTED and context.version >= FIRST_LEADER_VERSION:
            _add_leader(context, topics, read, data)
        topics[topic].partitions.append(data)


def _response_bytes(reads: Sequence[PartitionRead]) -> int:
    return RESPONSE_BYTES + sum(read.record_bytes + RESPONSE_PARTITION_BYTES for read in reads if read.record_bytes)


def _throttled(session: FetchContext) -> FetchResponse:
    """Empty, and for the session as if nothing had been sent."""
    error, session_id = session.finish_throttled()
    return FetchResponse(error_code=error, session_id=session_id, responses=[])


def _finish(context: RequestContext, session: FetchContext, topics: Topics) -> FetchResponse:
    error, session_id = session.finish(context.broker.clock.monotonic_ms())
    responses = list(topics.values()) if error is ErrorCode.NONE else []
    response = FetchResponse(error_code=error, session_id=session_id, responses=responses)
    if topics.leaders:
        response.node_endpoints = list(topics.leaders.values())
    return response


def _add_leader(context: RequestContext, topics: Topics, read: PartitionRead, data: PartitionData) -> None:
    wanted = read.wanted
    hint = leader_hint(context.broker.cluster.image, wanted.topic, wanted.partition, context.listener.name)
    if hint is not None:
        data.current_leader = LeaderIdAndEpoch(leader_id=hint.node_id, leader_epoch=hint.leader_epoch)
        topics.leaders[hint.node_id] = NodeEndpoint(
            node_id=hint.node_id, host=hint.host, port=hint.port, rack=hint.rack
        )


def _topic_response(topic: str | bytes) -> FetchableTopicResponse:
    if isinstance(topic, bytes):
        return FetchableTopicResponse(topic_id=topic, partitions=[])
    return FetchableTopicResponse(topic=topic, partitions=[])


def _partition_data(read: PartitionRead) -> PartitionData:
    data = PartitionData(
        partition_index=read.wanted.partition,
        error_code=read.error,
        high_watermark=read.high_watermark,
        last_stable_offset=read.last_stable_offset,
        log_start_offset=read.log_start_offset,
        aborted_transactions=None,
        records=b"" if read.records is None else read.records,
    )
    if read.preferred_replica != NO_PREFERENCE:
        data.preferred_read_replica = read.preferred_replica
    if read.aborted is not None:
        data.aborted_transactions = [
            AbortedTransaction(producer_id=producer_id, first_offset=first_offset)
            for producer_id, first_offset in read.aborted
        ]
    if read.diverging_epoch is not None:
        data.diverging_epoch = EpochEndOffset(epoch=read.diverging_epoch[0], end_offset=read.diverging_epoch[1])
    return data


def _wanted(request: FetchRequest, version: int) -> list[FetchPartition]:
    uses_topic_ids = version >= FIRST_TOPIC_ID_VERSION
    return [
        FetchPartition(
            topic.topic_id if uses_topic_ids else topic.topic,
            partition.partition,
            partition.fetch_offset,
            partition.partition_max_bytes,
            partition.current_leader_epoch,
            partition.last_fetched_epoch,
            partition.log_start_offset,
        )
        for topic in request.topics
        for partition in topic.partitions
    ]


def _forgotten(request: FetchRequest, uses_topic_ids: bool) -> list[PartitionKey]:
    return [
        (topic.topic_id if uses_topic_ids else topic.topic, partition)
        for topic in request.forgotten_topics_data
        for partition in topic.partitions
    ]


def _encode(response: FetchResponse, version: int, correlation_id: int) -> Parts:
    """Records stay in their files."""
    return cast(Parts, encode_response_parts(response, version, correlation_id))


def fail_fetch(context: RequestContext, request: FetchRequest, error: ErrorCode) -> FetchResponse:
    response = FetchResponse(responses=[])
    for topic in request.topics:
        topic_response = FetchableTopicResponse(topic=topic.topic, topic_id=topic.topic_id, partitions=[])
        for item in topic.partitions:
            topic_response.partitions.append(
                PartitionData(
                    partition_index=item.partition,
                    error_code=error,
                    high_watermark=-1,
                    aborted_transactions=None,
                    records=b"",
                )
            )
        response.responses.append(topic_response)
    return response


HANDLER = Handler(
    api_key=ApiKey.FETCH,
    min_version=4,
    max_version=18,
    request=FetchRequest,
    handle=handle_fetch,
    fail=fail_fetch,
    encode=_encode,
    checks_access=True,
)
