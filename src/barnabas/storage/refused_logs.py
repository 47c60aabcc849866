"""Which logs of a log directory are refused as damaged: the file refused-logs, with one `topic partition` per line.

A refused log is scanned again at every start, as strictly as after a crash, although the last stop was clean: only
then the clean-shutdown marker can stand for all the other logs. Its entries in the checkpoints stay as they were, since
they say what has been flushed. It is served again when its files have been restored, or when an operator accepts the
loss (`acceptance.py`). Apache Kafka ignores the file.
"""

import logging
import os
from collections.abc import Iterable
from typing import Final

from barnabas.storage.checkpoints import CorruptCheckpointError, decode_checkpoint, encode_checkpoint
from barnabas.storage.files import Files
from barnabas.types import TopicPartition

logger = logging.getLogger(__name__)

REFUSED_LOGS: Final = "refused-logs"


class RefusedLogs:
    def __init__(self, files: Files, log_directory: str) -> None:
        self._files = files
        self.path = os.path.join(log_directory, REFUSED_LOGS)
        self.written: set[TopicPartition] | None = set()
        """As it stands in the file; None: not known."""

    def read(self) -> bool:
        """Whether the file, if there is one, can be read. If not, every log may have been refused."""
        try:
            entries = decode_checkpoint(self._files.read(self.path))
            self.written = {TopicPartition(topic, int(partition)) for topic, partition in entries}
        except FileNotFoundError:
            self.written = set()
        except (CorruptCheckpointError, ValueError) as error:
            logger.error("%s is damaged, so every log is scanned as after a crash: %s", self.path, error)
            self.written = None
        return self.written is not None

    def __contains__(self, topic_partition: TopicPartition) -> bool:
        return self.written is None or topic_partition in self.written

    def write(self, refused: Iterable[TopicPartition]) -> None:
        """Brings the file up to date, if it is not. Raises OSError."""
        wanted = set(refused)
        if wanted == self.written:
            return
        if wanted:
            lines = [f"{topic} {partition}" for topic, partition in sorted(wanted)]
            self._files.write_whole(self.path, encode_checkpoint(lines), sync=True)
        else:
            self._files.remove(self.path)
        self.written = wanted
