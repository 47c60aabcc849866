"""How far each log is clean: cleaner-offset-checkpoint, one file per log directory.

Kept in memory and written by the cleaner's threads, because a write waits for the disk. The event loop only notes
changes (a truncated or deleted log); a crash before they are written costs a second cleaning, never a record.
"""

import logging
import os
from threading import Lock

from barnabas.storage.checkpoints import (
    CLEANER_OFFSET_CHECKPOINT,
    CorruptCheckpointError,
    read_offsets,
    write_offsets,
)
from barnabas.storage.files import Files
from barnabas.types import TopicPartition

logger = logging.getLogger(__name__)


class CleanerCheckpoint:
    """Of one log directory."""

    def __init__(self, files: Files, log_directory: str) -> None:
        self._files = files
        self.path = os.path.join(log_directory, CLEANER_OFFSET_CHECKPOINT)
        self._lock = Lock()
        self._write_lock = Lock()
        self._changed = False
        try:
            self._offsets = read_offsets(files, self.path)
        except CorruptCheckpointError as error:
            # Without it everything counts as dirty, which is only more work.
            logger.warning("%s is not readable, all logs in it are cleaned again: %s", self.path, error)
            self._offsets = {}

    def get(self, topic_partition: TopicPartition) -> int | None:
        return self._offsets.get(topic_partition)

    def set(self, topic_partition: TopicPartition, offset: int) -> None:
        with self._lock:
            self._offsets[topic_partition] = offset
            self._changed = True

    def truncate(self, topic_partition: TopicPartition, offset: int) -> None:
        """The log was truncated: records after `offset` will be new, and dirty."""
        with self._lock:
            if self._offsets.get(topic_partition, -1) > offset:
                self._offsets[topic_partition] = offset
                self._changed = True

    def remove(self, topic_partition: TopicPartition) -> None:
        """A topic created again under the same name must not start out as clean."""
        with self._lock:
            if self._offsets.pop(topic_partition, None) is not None:
                self._changed = True

    def write_if_changed(self) -> None:
        with self._write_lock:
            with self._lock:
                if not self._changed:
                    return
                offsets = dict(self._offsets)
                self._changed = False
            try:
                write_offsets(self._files, self.path, offsets)
            except OSError:
                self._changed = True
                raise
