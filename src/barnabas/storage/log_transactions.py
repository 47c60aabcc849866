"""The transaction indexes of a log: looked at only through here, where a damaged one is built anew.

An index that misses an entry would show aborted records to read_committed consumers, so damage is never taken for an
empty index; and it may not come up after a marker has been written. Runs on the event-loop thread.
"""

import logging

from barnabas.storage.log_state import LogState
from barnabas.storage.producer_replay import find_aborted_transactions
from barnabas.storage.segment import Segment
from barnabas.storage.shortages import PASSING
from barnabas.storage.sparse_index import CorruptIndexError
from barnabas.storage.transaction_index import TransactionIndex

logger = logging.getLogger(__name__)


class LogTransactions(LogState):
    __slots__ = ()

    def transaction_index(self, segment: Segment) -> TransactionIndex:
        """A segment's index, read and whole. Raises OSError, or BrokenChainError if the log file is damaged too."""
        index = segment.transaction_index
        if index.read_entries is None:
            try:
                self.transaction_checksums.check(
                    segment.base_offset, index.entries(), may_have_grown=segment is self.active
                )
            except CorruptIndexError as error:
                logger.warning("a transaction index of %s is built again: %s", self.topic_partition, error)
                index.forget()
                self._rebuild_transaction_index(segment)
        return index

    def _rebuild_transaction_index(self, segment: Segment) -> None:
        entries = find_aborted_transactions(self, segment)
        try:
            segment.transaction_index.replace(entries)
            self.note_transactions([segment])
        except OSError as error:
            if error.errno not in PASSING:
                raise
            # It is right in memory; the next start finds the old file and builds it once more.
            logger.warning("a transaction index of %s is not written for now: %s", self.topic_partition, error)
