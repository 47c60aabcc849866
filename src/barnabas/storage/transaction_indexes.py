"""The transaction indexes of one log. They are read only through here, where a damaged one is rebuilt.

An index that lacks an entry would show aborted records to read_committed consumers, so a damaged index never counts as
an empty one. The damage must be found before an abort marker is written, not after. Runs on the event-loop thread.
"""

import logging
from dataclasses import dataclass

from barnabas.storage.log_state import LogState
from barnabas.storage.producer_history import ProducerHistory
from barnabas.storage.segment import Segment
from barnabas.storage.segment_list import SegmentList
from barnabas.storage.shortages import PASSING
from barnabas.storage.sparse_index import CorruptIndexError
from barnabas.storage.transaction_checksums import TransactionChecksums
from barnabas.storage.transaction_index import AbortedTransaction, TransactionIndex

logger = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class TransactionIndexes:
    state: LogState
    segments: SegmentList
    history: ProducerHistory
    checksums: TransactionChecksums

    def index(self, segment: Segment) -> TransactionIndex:
        """A segment's index, read and checked. Raises OSError, or BrokenChainError if the log file is damaged too."""
        index = segment.transaction_index
        if index.read_entries is None:
            try:
                self.checksums.check(
                    segment.base_offset, index.entries(), may_have_grown=segment is self.segments.active
                )
            except CorruptIndexError as error:
                logger.warning("a transaction index of %s is built again: %s", self.state.topic_partition, error)
                index.forget()
                self._rebuild(segment)
        return index

    def _rebuild(self, segment: Segment) -> None:
        entries = self.history.find_aborted_transactions(segment)
        try:
            segment.transaction_index.replace(entries)
            self.note([segment])
        except OSError as error:
            if error.errno not in PASSING:
                raise
            # It is correct in memory. The next start finds the old file and rebuilds it again.
            logger.warning("a transaction index of %s is not written for now: %s", self.state.topic_partition, error)

    def collect(self, first_offset: int, upper_offset: int) -> list[AbortedTransaction]:
        """The aborted transactions that overlap the offsets."""
        found: list[AbortedTransaction] = []
        for segment in self.segments.starting_at(first_offset):
            some, complete = self.index(segment).collect(first_offset, upper_offset)
            found += some
            if complete:
                break
        return found

    def note(self, segments: list[Segment]) -> None:
        """Saves checksums of those indexes that are in memory; the others have not changed."""
        for segment in segments:
            entries = segment.transaction_index.read_entries
            if entries is not None:
                self.checksums.note(segment.base_offset, entries)
        self.checksums.write(self.segments.base_offsets)
