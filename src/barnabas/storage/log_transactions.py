"""The transaction indexes of a log: looked at only through here, where a damaged one is built anew.

An index that misses an entry would show aborted records to read_committed consumers, so damage is never taken for an
empty index; and it may not come up after a marker has been written. Runs on the event-loop thread.
"""

import logging

from barnabas.storage.log_state import LogState
from barnabas.storage.producer_replay import find_aborted_transactions
from barnabas.storage.segment import Segment
from barnabas.storage.sparse_index import CorruptIndexError
from barnabas.storage.transaction_index import TransactionIndex

logger = logging.getLogger(__name__)


class LogTransactions(LogState):
    __slots__ = ()

    def transaction_index(self, segment: Segment) -> TransactionIndex:
        """A segment's index, read and whole. Raises OSError, or BrokenChainError if the log file is damaged too."""
        index = segment.transaction_index
        try:
            index.entries()
        except CorruptIndexError as error:
            logger.warning("a transaction index of %s is built anew: %s", self.topic_partition, error)
            index.replace(find_aborted_transactions(self, segment))
        return index
