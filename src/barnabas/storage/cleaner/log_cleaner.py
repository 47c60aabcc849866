"""The cleaner of a broker: picks the filthiest log that is due, has it cleaned, and remembers how far it is clean.

The broker starts it and reports truncated or deleted logs to it; it finds new logs by itself. Methods are called
on the event loop, except `join`; the work runs in daemon threads. A fault in one log never stops the others: a damaged
log is left alone until the next start, as Kafka does, a full disk is tried again later.
"""

import logging
import os
import threading
from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from barnabas.clock import Clock
from barnabas.errors import KafkaError
from barnabas.storage.cleaner.candidates import cleanable_offsets, filthiest, log_to_clean
from barnabas.storage.cleaner.checkpoint import CleanerCheckpoint
from barnabas.storage.cleaner.cleaner import CallOnLoop, Cleaner, CleaningAbortedError, CleaningStats
from barnabas.storage.cleaner.log_to_clean import LogToClean
from barnabas.storage.cleaner.offset_map import OffsetMap
from barnabas.storage.cleaner.throttle import Throttle
from barnabas.storage.log import Log
from barnabas.storage.segment_scan import BrokenChainError
from barnabas.storage.shortages import PASSING
from barnabas.storage.sparse_index import CorruptIndexError
from barnabas.types import TopicPartition

logger = logging.getLogger(__name__)


class CleanerSettings(NamedTuple):
    """The log.cleaner.* settings of the broker that are its own rather than a topic's."""

    threads: int = 1
    dedupe_buffer_size: int = 128 * 1024 * 1024
    io_buffer_load_factor: float = 0.9
    io_max_bytes_per_second: float = float("inf")
    backoff_ms: int = 15_000


class LogCleaner:
    def __init__(
        self, logs: Callable[[], Iterable[Log]], settings: CleanerSettings, clock: Clock, call_on_loop: CallOnLoop
    ) -> None:
        """`logs` returns all logs that are online; it is called on the event loop."""
        self._logs = logs
        self._settings = settings
        self._clock = clock
        self._call_on_loop = call_on_loop
        self._checkpoints: dict[str, CleanerCheckpoint] = {}
        self._in_progress: set[TopicPartition] = set()
        self._paused: dict[TopicPartition, int] = {}
        self._uncleanable: set[TopicPartition] = set()
        self._stopping = threading.Event()
        self._wake = threading.Event()
        self._throttle = Throttle(settings.io_max_bytes_per_second, clock, self._stopping.wait)
        self._threads: list[threading.Thread] = []

    # ---- start and stop

    def start(self) -> None:
        for number in range(self._settings.threads):
            thread = threading.Thread(target=self._run, name=f"log-cleaner-{number}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def stop(self) -> None:
        """Requests the threads to end, and aborts a running cleaning. `join` needs a running event loop."""
        self._stopping.set()
        self._wake.set()

    def join(self) -> None:
        for thread in self._threads:
            thread.join()

    def wake(self) -> None:
        """Something may be due (a segment was rolled, a setting changed): look now instead of after the back-off."""
        self._wake.set()

    def set_io_max_bytes_per_second(self, bytes_per_second: float) -> None:
        self._throttle.set_rate(bytes_per_second)

    # ---- what happens to logs

    def pause(self, topic_partition: TopicPartition) -> None:
        """Gives up a cleaning under way without waiting for it, and starts none, until `resume` was called as often."""
        self._paused[topic_partition] = self._paused.get(topic_partition, 0) + 1

    def resume(self, topic_partition: TopicPartition) -> None:
        count = self._paused.pop(topic_partition)
        if count > 1:
            self._paused[topic_partition] = count - 1

    def on_truncated(self, log: Log, offset: int) -> None:
        self._checkpoint(log).truncate(log.topic_partition, offset)

    def on_deleted(self, log: Log) -> None:
        self._checkpoint(log).remove(log.topic_partition)
        self._uncleanable.discard(log.topic_partition)

    def copy_checkpoint(self, log: Log, copy: Log) -> Callable[[], None]:
        """For a copy in another directory; the returned function writes it. Recovery must know of gaps in offsets."""
        topic_partition, checkpoint = log.topic_partition, self._checkpoint(copy)
        offset = self._checkpoint(log).get(topic_partition)
        if offset is not None or log.state.was_cleaned:
            checkpoint.set(topic_partition, log.log_start_offset if offset is None else offset)
        else:
            checkpoint.remove(topic_partition)

        def write() -> None:
            try:
                checkpoint.write_if_changed()
            except OSError as error:
                copy.state.raise_write_error(error, "noting how far it is clean for")

        return write

    @property
    def uncleanable(self) -> frozenset[TopicPartition]:
        """Logs that failed to be cleaned and are left alone."""
        return frozenset(self._uncleanable)

    def clean_offset(self, log: Log) -> int | None:
        return self._checkpoint(log).get(log.topic_partition)

    def _checkpoint(self, log: Log) -> CleanerCheckpoint:
        directory = os.path.dirname(log.directory)
        checkpoint = self._checkpoints.get(directory)
        if checkpoint is None:
            checkpoint = self._checkpoints[directory] = CleanerCheckpoint(log.files, directory)
        return checkpoint

    # ---- a cleaner thread

    def _run(self) -> None:
        cleaner = self.new_cleaner()
        while not self._stopping.is_set():
            try:
                busy = self.clean_filthiest(cleaner)
            except Exception:
                if self._stopping.is_set():
                    return
                logger.exception("the log cleaner failed and tries again")
                busy = False
            if not busy:
                self._wake.wait(self._settings.backoff_ms / 1000)
                self._wake.clear()

    def new_cleaner(self) -> Cleaner:
        memory = self._settings.dedupe_buffer_size // max(self._settings.threads, 1)
        offset_map = OffsetMap(memory, self._settings.io_buffer_load_factor)
        return Cleaner(offset_map, self._throttle, self._call_on_loop, self._check_may_continue)

    def clean_filthiest(self, cleaner: Cleaner) -> bool:
        """Cleans one log, if one is due; whether it did. Called by a cleaner thread, and by tests in its stead."""
        target = self._call_on_loop(self._grab)
        if target is None:
            self._write_checkpoints()
            return False
        topic_partition = target.log.topic_partition
        try:
            return self._clean(cleaner, target)
        finally:
            self._call_on_loop(lambda: self._in_progress.discard(topic_partition))

    def _grab(self) -> LogToClean | None:
        """On the event loop. The log is marked as in progress, so that no second thread takes it."""
        now_ms = self._clock.now_ms()
        target = filthiest(candidate for log in self._logs() if (candidate := self._candidate(log, now_ms)))
        if target is not None:
            self._in_progress.add(target.log.topic_partition)
        return target

    def _candidate(self, log: Log, now_ms: int) -> LogToClean | None:
        if "compact" not in log.config.cleanup_policy or len(log.segments) < 2 or log.failure is not None:
            return None
        topic_partition = log.topic_partition
        if any(topic_partition in group for group in (self._in_progress, self._paused, self._uncleanable)):
            return None
        checkpoint = self._checkpoint(log)
        try:
            offsets = cleanable_offsets(log, checkpoint.get(topic_partition), now_ms)
            if offsets.checkpoint_is_wrong:
                checkpoint.set(topic_partition, offsets.first_dirty_offset)
            return log_to_clean(log, offsets, now_ms)
        except (BrokenChainError, CorruptIndexError, OSError) as error:
            if not isinstance(error, OSError) or error.errno not in PASSING:
                self._give_up(topic_partition, error)
            return None

    def _clean(self, cleaner: Cleaner, target: LogToClean) -> bool:
        log = target.log
        try:
            self._note_before_first_swap(target)
            end_offset, stats = cleaner.clean(target, self._clock.now_ms())
        except CleaningAbortedError as aborted:
            logger.info("cleaning of %s was aborted: %s", log.topic_partition, aborted)
            return False
        except (BrokenChainError, CorruptIndexError, KafkaError) as error:
            self._call_on_loop(partial(self._give_up, log.topic_partition, error))
            return True
        except OSError as error:
            return self._call_on_loop(partial(self._on_os_error, log, error))
        self._call_on_loop(lambda: self._checkpoint(log).set(log.topic_partition, end_offset))
        self._write_checkpoints()
        _report(target, end_offset, stats)
        return end_offset > target.first_dirty_offset

    def _note_before_first_swap(self, target: LogToClean) -> None:
        """An entry in the checkpoint marks gaps in the offsets as the cleaner's work, not damage, for recovery."""
        checkpoint = self._checkpoint(target.log)
        if checkpoint.get(target.log.topic_partition) is None:
            checkpoint.set(target.log.topic_partition, target.first_dirty_offset)
        checkpoint.write_if_changed()

    def _check_may_continue(self, log: Log) -> None:
        if self._stopping.is_set():
            raise CleaningAbortedError("the broker stops")
        if log.topic_partition in self._paused or log.closed or log.failure is not None:
            raise CleaningAbortedError(f"{log.topic_partition} was paused, closed or taken offline")

    def _give_up(self, topic_partition: TopicPartition, error: Exception) -> None:
        logger.error("%s cannot be compacted and is left as it is: %s", topic_partition, error)
        self._uncleanable.add(topic_partition)

    def _on_os_error(self, log: Log, error: OSError) -> bool:
        """A full disk or too many open files pass; a segment that vanished was deleted; the rest is a broken disk."""
        if error.errno in PASSING or isinstance(error, FileNotFoundError):
            logger.warning("cleaning of %s was postponed: %s", log.topic_partition, error)
        else:
            self._uncleanable.add(log.topic_partition)
            log.state.fail(error, "compacting")
        return False

    def _write_checkpoints(self) -> None:
        for checkpoint in list(self._checkpoints.values()):
            try:
                checkpoint.write_if_changed()
            except OSError as error:
                logger.warning("%s could not be written: %s", checkpoint.path, error)


def _report(target: LogToClean, end_offset: int, stats: CleaningStats) -> None:
    logger.info(
        "cleaned %s, offsets %d to %d: %d of %d bytes and %d of %d records kept, key map %.0f %% full",
        target.log.topic_partition,
        target.first_dirty_offset,
        end_offset,
        stats.bytes_written,
        stats.bytes_read,
        stats.records_written,
        stats.records_read,
        stats.map_utilization * 100,
    )
