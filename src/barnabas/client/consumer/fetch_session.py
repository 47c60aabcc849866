"""Incremental fetch sessions (KIP-227), the client's half, for one broker.

Pure: `build` returns what to put into the next request; `handle_response` or `handle_failure` is called with what
came of it. The broker remembers the partitions of a session, so a request names only those that are new, changed or
gone, and a response only those with something to say. Whenever the two sides may disagree the session starts again.
"""

import logging
from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from barnabas.errors import ErrorCode
from barnabas.types import NO_TOPIC_ID, TopicId, TopicPartition

logger = logging.getLogger("barnabas.client.consumer")

INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
NO_SESSION: Final = 0
MAX_EPOCH: Final = 0x7FFF_FFFF


class SessionPartition(NamedTuple):
    """What a request says about a partition; an unchanged one need not be said again."""

    topic_id: TopicId
    fetch_offset: int
    current_leader_epoch: int
    max_bytes: int


class ForgottenPartition(NamedTuple):
    """A partition to remove from the fetch session."""

    topic_id: TopicId
    topic: str
    partition: int


class FetchPlan(NamedTuple):
    """What the next Fetch request of a session contains."""

    session_id: int
    epoch: int
    send: dict[TopicPartition, SessionPartition]
    forget: list[ForgottenPartition]
    uses_topic_ids: bool


class FetchSession:
    """The fetch session with one broker (KIP-227)."""

    def __init__(self, node_id: int) -> None:
        self.node_id = node_id
        self.session_id = NO_SESSION
        self.epoch = INITIAL_EPOCH
        self.partitions: dict[TopicPartition, SessionPartition] = {}

    @property
    def is_full(self) -> bool:
        """Whether the next request names every partition."""
        return self.epoch in (INITIAL_EPOCH, FINAL_EPOCH)

    def build(self, wanted: Mapping[TopicPartition, SessionPartition]) -> FetchPlan:
        """The next request when `wanted` is all that shall be fetched from this broker."""
        uses_topic_ids = all(entry.topic_id != NO_TOPIC_ID for entry in wanted.values())
        forget: list[ForgottenPartition] = []
        if self.is_full:
            self.partitions = dict(wanted)
            return FetchPlan(self.session_id, self.epoch, dict(wanted), forget, uses_topic_ids)
        send = {}
        for topic_partition, previous in list(self.partitions.items()):
            entry = wanted.get(topic_partition)
            if entry is None:
                del self.partitions[topic_partition]
                forget.append(ForgottenPartition(previous.topic_id, *topic_partition))
                uses_topic_ids = uses_topic_ids and previous.topic_id != NO_TOPIC_ID
            elif entry.topic_id != previous.topic_id and NO_TOPIC_ID not in (entry.topic_id, previous.topic_id):
                # The topic was created again: the broker knows the old one by its id only, and must drop that.
                forget.append(ForgottenPartition(previous.topic_id, *topic_partition))
        for topic_partition, entry in wanted.items():
            if self.partitions.get(topic_partition) != entry:
                send[topic_partition] = entry
                self.partitions[topic_partition] = entry
        return FetchPlan(self.session_id, self.epoch, send, forget, uses_topic_ids)

    def handle_response(
        self, error_code: int, session_id: int, partitions: Collection[TopicPartition], throttle_time_ms: int = 0
    ) -> bool:
        """Whether the response may be used; either way the next `build` fits what the broker now remembers."""
        if error_code:
            self._on_error(error_code)
            return False
        unknown = [entry for entry in partitions if entry not in self.partitions]
        if self.is_full:
            missing = len(partitions) - len(unknown) != len(self.partitions)
            if unknown or missing:
                if partitions or not throttle_time_ms:
                    logger.info("node %d responded to a full fetch with other partitions than requested", self.node_id)
                self._start(NO_SESSION, INITIAL_EPOCH)
                return False
            self._start(session_id, INITIAL_EPOCH if session_id == NO_SESSION else 1)
            return True
        if unknown:
            logger.info("node %d responded with partitions that are not in its session: %s", self.node_id, unknown)
            self.epoch = INITIAL_EPOCH
            return False
        if session_id == NO_SESSION:
            self._start(NO_SESSION, INITIAL_EPOCH)
        else:
            self.epoch = 1 if self.epoch == MAX_EPOCH else self.epoch + 1
        return True

    def handle_failure(self) -> None:
        """No response: the broker may or may not have seen the request. Closes the old session with the next one."""
        self.epoch = INITIAL_EPOCH

    def close(self) -> None:
        """Makes the next request the one that ends the session."""
        self.epoch = FINAL_EPOCH

    def _on_error(self, error_code: int) -> None:
        logger.debug("node %d refused a fetch of session %d: %s", self.node_id, self.session_id, error_code)
        self.epoch = INITIAL_EPOCH
        if error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
            self.session_id = NO_SESSION

    def _start(self, session_id: int, epoch: int) -> None:
        self.session_id = session_id
        self.epoch = epoch
