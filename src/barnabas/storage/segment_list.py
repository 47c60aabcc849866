"""The segments of one log, oldest first. The last one is the active one, which appends write to.

Changed on the event-loop thread only. The list is replaced, never changed in place, so that the flush thread and the
cleaner can take it without a lock.
"""

import random
from bisect import bisect_right
from dataclasses import dataclass, field

from barnabas.errors import ErrorCode, KafkaError
from barnabas.storage.deletion_queue import DeletionQueue
from barnabas.storage.file_names import DELETED_SUFFIX, SWAP_SUFFIX
from barnabas.storage.files import Files
from barnabas.storage.log_state import LogState
from barnabas.storage.segment import Segment

POSITIONS_REMEMBERED = 64


@dataclass(slots=True, eq=False)
class SegmentList:
    files: Files
    deletions: DeletionQueue
    state: LogState
    all: list[Segment] = field(default_factory=list)
    base_offsets: list[int] = field(default_factory=list)
    active: Segment = field(init=False)
    positions: dict[int, tuple[Segment, int]] = field(default_factory=dict)
    """Where recent reads and appends ended: offset -> segment and position. A sequential reader continues there."""
    _replacing: tuple[list[Segment], list[Segment]] | None = None
    """(new, old) segments of a compaction: already swapped in the list, but not all files are renamed yet."""

    def set(self, segments: list[Segment]) -> None:
        """Replaces the list. Remembered positions may be wrong afterwards, so they are dropped."""
        self.all = segments
        self.base_offsets = [segment.base_offset for segment in segments]
        self.active = segments[-1]
        self.positions = {}

    @property
    def size_in_bytes(self) -> int:
        return sum(segment.size for segment in self.all)

    def number(self, offset: int) -> int:
        """Index of the segment that holds `offset`; 0 if the offset is below the first one."""
        return max(bisect_right(self.base_offsets, offset) - 1, 0)

    def starting_at(self, offset: int) -> list[Segment]:
        """The segment that holds `offset`, and all after it."""
        return self.all[self.number(offset) :]

    def remember(self, offset: int, segment: Segment, position: int) -> None:
        positions = self.positions
        positions[offset] = (segment, position)
        if len(positions) > POSITIONS_REMEMBERED:
            del positions[next(iter(positions))]

    # ---- creating and dropping

    def new(self, base_offset: int, now_ms: int, state_suffix: str = "", size: int = 0) -> Segment:
        """A segment object. Its files are not touched."""
        config = self.state.config
        segment = Segment(
            self.files,
            self.state.directory,
            base_offset,
            index_interval_bytes=config.index_interval_bytes,
            max_index_bytes=config.segment_index_bytes,
            size=size,
            now_ms=now_ms,
            state_suffix=state_suffix,
        )
        jitter = min(config.segment_jitter_ms, config.segment_ms)
        segment.roll_jitter_ms = random.Random().randrange(jitter) if jitter > 0 else 0
        return segment

    def create(self, base_offset: int, now_ms: int) -> Segment:
        """A segment with new, empty files. A failure leaves none: an empty file would look like a later segment."""
        segment = self.new(base_offset, now_ms)
        config = self.state.config
        try:
            segment.create(config.segment_bytes if config.preallocate else 0)
        except OSError:
            self._remove_files(segment)
            raise
        return segment

    def _remove_files(self, segment: Segment) -> None:
        for path in segment.existing_paths():
            self.files.remove(path)

    def drop(self, segments: list[Segment], now_ms: int) -> None:
        """Renames the files to .deleted, to be removed later. The caller has taken the segments out of the list."""
        for segment in segments:
            segment.change_suffix(DELETED_SUFFIX)
            for path in segment.existing_paths():
                self.deletions.add_file(path, now_ms + self.state.config.file_delete_delay_ms)

    # ---- compaction

    def check_replaceable(self, new: list[Segment], old: list[Segment]) -> None:
        """Raises KafkaError, and removes the files of `new`, if one of the old segments has left the log meanwhile."""
        if self.active in old or any(segment not in self.all for segment in old):
            for segment in new:
                self._remove_files(segment)
            message = f"segments of {self.state.topic_partition} changed while cleaned"
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message)

    def replace(self, new: list[Segment], old: list[Segment], now_ms: int) -> None:
        """Swaps `old` for `new` and renames the new files to .swap; `finish_replacing` does the rest."""
        self.state.was_cleaned = True
        self.finish_replacing(now_ms)
        for segment in sorted(new, key=lambda segment: segment.base_offset, reverse=True):
            segment.change_suffix(SWAP_SUFFIX)
        kept = [segment for segment in self.all if segment not in old]
        self.set(sorted([*kept, *new], key=lambda segment: segment.base_offset))
        self._replacing = (new, old)

    def finish_replacing(self, now_ms: int) -> None:
        """The last step of `replace`: the old files are dropped, the new ones get their final names.

        Whatever removes segments does this first. Otherwise a crash could bring back the old ones.
        """
        if self._replacing is None or self.state.closed:
            return
        new, old = self._replacing
        self.drop(old, now_ms)
        for segment in new:
            segment.change_suffix("")
        self._replacing = None
