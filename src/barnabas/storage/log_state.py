"""The state that the parts of one log share: its name, settings, offsets, and whether its disk still works. No I/O.

Written on the event-loop thread only, except `recovery_point` and `failure`, which the flush thread sets too.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NoReturn

from barnabas.config.topic import TopicConfig
from barnabas.errors import ErrorCode, KafkaError, StorageError
from barnabas.storage.append_checks import needs_record_checks
from barnabas.storage.shortages import PASSING
from barnabas.types import TopicPartition

logger = logging.getLogger(__name__)

OnFailure = Callable[[StorageError], None]


@dataclass(slots=True, eq=False)
class LogState:
    directory: str
    topic_partition: TopicPartition
    config: TopicConfig
    on_failure: OnFailure | None = None
    failure: StorageError | None = None
    closed: bool = False
    log_start_offset: int = 0
    log_end_offset: int = 0
    high_watermark: int = 0
    recovery_point: int = 0
    was_cleaned: bool = False
    """Whether the log was ever compacted. The current setting does not say: it may have changed, or be unknown."""
    oldest_pending_offset: int | None = None
    """Of an intake of delayed messages, as leader: retention and compaction stop there."""
    checks_records: bool = field(init=False)
    max_segment_ms: int = field(init=False)

    def __post_init__(self) -> None:
        self.set_config(self.config)

    def set_config(self, config: TopicConfig) -> None:
        self.config = config
        self.checks_records = needs_record_checks(config)
        self.max_segment_ms = config.segment_ms
        if "compact" in config.cleanup_policy:
            # A segment must be closed in time for compaction to reach it within max.compaction.lag.ms.
            self.max_segment_ms = min(config.segment_ms, config.max_compaction_lag_ms)

    @property
    def removable_before(self) -> int:
        """What retention and compaction may remove ends here. A follower of an intake goes by its leader's start."""
        if self.config.delay_target_topic is None:
            return self.high_watermark
        oldest = self.log_start_offset if self.oldest_pending_offset is None else self.oldest_pending_offset
        return min(oldest, self.high_watermark)

    @property
    def may_have_gaps(self) -> bool:
        """Compaction leaves gaps between offsets. In any other log a gap is lost data."""
        return self.was_cleaned or "compact" in self.config.cleanup_policy

    def check_online(self) -> None:
        if self.failure is not None:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(self.failure))

    def fail(self, error: OSError, doing: str) -> StorageError:
        """The disk failed: the log rejects requests from now on and its directory is notified. The caller raises it.

        A log that is closed or deleted does not fail: a thread that still works on it may find its files gone.
        """
        failure = StorageError(f"{doing} {self.topic_partition} in {self.directory}: {error}")
        if self.closed:
            logger.info("after it was closed: %s", failure)
            return failure
        self.failure = failure
        logger.error("%s", failure)
        if self.on_failure is not None:
            self.on_failure(failure)
        return failure

    def raise_write_error(self, error: OSError, doing: str) -> NoReturn:
        """A shortage (disk space, descriptors) is retriable; any other error takes the directory offline."""
        if error.errno in PASSING:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{doing} {self.topic_partition}: {error}") from error
        raise self.fail(error, doing) from error
