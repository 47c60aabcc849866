"""One fetch request within its session (KIP-227): what to read, and which results belong in the response.

Made by `FetchSessionCache.open` (fetch_session.py), used by the fetch handler: it reads `context.partitions`, asks
`context.include` for each result whether it belongs in the response, and ends with `context.finish`, which returns the
error and session id of the response. On an error the results are not sent. A request may be parked in between.
Pure: no clock, no randomness, no log access.

A partition is identified by (topic, partition), where the topic is an id (16 bytes, Fetch v13 and later) or a name.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING

from barnabas.errors import ErrorCode
from barnabas.types import NO_LEADER_EPOCH, TopicId

if TYPE_CHECKING:
    from barnabas.machines.fetch_session import FetchSession, FetchSessionCache

NO_SESSION_ID = 0

PartitionKey = tuple[TopicId | str, int]


class FetchPartition:
    """What a client requests of one partition, and what was last sent to it (-1: nothing yet)."""

    __slots__ = (
        "current_leader_epoch",
        "fetch_offset",
        "fetcher_log_start_offset",
        "high_watermark",
        "last_fetched_epoch",
        "log_start_offset",
        "max_bytes",
        "partition",
        "topic",
    )

    def __init__(
        self,
        topic: TopicId | str,
        partition: int,
        fetch_offset: int,
        max_bytes: int,
        current_leader_epoch: int = NO_LEADER_EPOCH,
        last_fetched_epoch: int = NO_LEADER_EPOCH,
        fetcher_log_start_offset: int = -1,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.fetch_offset = fetch_offset
        self.max_bytes = max_bytes
        self.current_leader_epoch = current_leader_epoch
        self.last_fetched_epoch = last_fetched_epoch
        self.fetcher_log_start_offset = fetcher_log_start_offset
        self.high_watermark = -1
        self.log_start_offset = -1

    @property
    def key(self) -> PartitionKey:
        return self.topic, self.partition

    def __repr__(self) -> str:
        return f"FetchPartition({self.topic!r}, {self.partition}, offset={self.fetch_offset})"


class FetchContext:
    """One request, from start to response. This base class is a fetch without a session, or a failed one."""

    __slots__ = ("error", "partitions")

    def __init__(self, partitions: Collection[FetchPartition], error: ErrorCode = ErrorCode.NONE) -> None:
        self.partitions = partitions
        self.error = error

    def include(
        self,
        partition: FetchPartition,
        error: int,
        high_watermark: int,
        log_start_offset: int,
        record_bytes: int,
        redirects: bool = False,
    ) -> bool:
        """Whether this result must be in the response. `redirects`: it has a preferred replica or diverging epoch."""
        return True

    def finish(self, now_ms: int) -> tuple[ErrorCode, int]:
        """(error, session id) of the response; called once, after the last `include`."""
        return self.error, NO_SESSION_ID

    def finish_throttled(self) -> tuple[ErrorCode, int]:
        """(error, session id) of a response without partitions, to a client over its quota."""
        return self.error, NO_SESSION_ID


class FullFetchContext(FetchContext):
    """Names all its partitions and requests a session, which is created with the response if there is room."""

    __slots__ = ("_cache", "_from_follower", "_uses_topic_ids")

    def __init__(
        self, cache: "FetchSessionCache", partitions: Collection[FetchPartition], uses_topic_ids: bool, follower: bool
    ) -> None:
        super().__init__(partitions)
        self._cache = cache
        self._uses_topic_ids = uses_topic_ids
        self._from_follower = follower

    def include(
        self,
        partition: FetchPartition,
        error: int,
        high_watermark: int,
        log_start_offset: int,
        record_bytes: int,
        redirects: bool = False,
    ) -> bool:
        partition.high_watermark = high_watermark
        partition.log_start_offset = log_start_offset
        return True

    def finish(self, now_ms: int) -> tuple[ErrorCode, int]:
        partitions = {partition.key: partition for partition in self.partitions}
        session = self._cache.maybe_create(partitions, self._uses_topic_ids, self._from_follower, now_ms)
        return ErrorCode.NONE, NO_SESSION_ID if session is None else session.id


class IncrementalFetchContext(FetchContext):
    """Continues a session. `partitions` is a live view of it: after parking, read it again."""

    __slots__ = ("_expected_epoch", "_session", "_with_records")

    def __init__(self, session: "FetchSession") -> None:
        super().__init__(session.partitions.values())
        self._session = session
        self._expected_epoch = session.epoch
        self._with_records: list[PartitionKey] = []

    @property
    def session(self) -> "FetchSession":
        return self._session

    def include(
        self,
        partition: FetchPartition,
        error: int,
        high_watermark: int,
        log_start_offset: int,
        record_bytes: int,
        redirects: bool = False,
    ) -> bool:
        if self._session.epoch != self._expected_epoch:
            return False
        must_answer = redirects
        if record_bytes > 0:
            must_answer = True
            self._with_records.append(partition.key)
        if partition.high_watermark != high_watermark:
            must_answer = True
            partition.high_watermark = high_watermark
        if partition.log_start_offset != log_start_offset:
            must_answer = True
            partition.log_start_offset = log_start_offset
        if error:
            must_answer = True
            # Differs from any real value, so that the end of the error is sent too.
            partition.high_watermark = -1
        return must_answer

    def finish(self, now_ms: int) -> tuple[ErrorCode, int]:
        error, session_id = self.finish_throttled()
        if error is ErrorCode.NONE:
            # Partitions with records move to the end: if max bytes is reached, the others come first next time.
            partitions = self._session.partitions
            for key in self._with_records:
                if (partition := partitions.pop(key, None)) is not None:
                    partitions[key] = partition
        return error, session_id

    def finish_throttled(self) -> tuple[ErrorCode, int]:
        # Another request of this session arrived while this one was parked: the client has given this one up.
        if self._session.epoch != self._expected_epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH, self._session.id
        return ErrorCode.NONE, self._session.id
