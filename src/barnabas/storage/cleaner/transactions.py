"""Which transactions are aborted while the cleaner walks through a log, and which markers nobody needs any more.

A marker may go once no batch of its transaction is left: an abort marker without data, or a commit marker whose
transaction showed no batch on the way. The transaction index of the new segment gets the aborted transactions whose
data are still there.
"""

from barnabas.records.control import ControlType, control_type
from barnabas.records.header import BatchHeader
from barnabas.records.record import Record
from barnabas.storage.transaction_index import AbortedTransaction, TransactionIndex


class CleanedTransactions:
    __slots__ = ("_aborted", "_next", "_ongoing_aborted", "_ongoing_committed", "_with_data", "cleaned_index")

    def __init__(self, aborted: list[AbortedTransaction]) -> None:
        """`aborted` by first offset."""
        self._aborted = aborted
        self._next = 0
        self._ongoing_aborted: dict[int, AbortedTransaction] = {}
        self._with_data: set[int] = set()
        self._ongoing_committed: set[int] = set()
        self.cleaned_index: TransactionIndex | None = None
        """Of the segment being written; none while the key map is built."""

    def on_data_batch(self, header: BatchHeader) -> bool:
        """Whether the batch belongs to an aborted transaction and may be dropped."""
        self._begin_up_to(header.last_offset)
        if not header.is_transactional:
            return False
        if header.producer_id in self._ongoing_aborted:
            self._with_data.add(header.producer_id)
            return True
        self._ongoing_committed.add(header.producer_id)
        return False

    def on_control_batch(self, header: BatchHeader, records: list[Record]) -> bool:
        """Whether the marker's transaction has no data left, so that the marker may go in its time."""
        self._begin_up_to(header.last_offset)
        if not records:
            return True  # emptied by an earlier cleaning
        kind = control_type(records[0].key)
        if kind is ControlType.ABORT:
            return self._end_aborted(header.producer_id)
        if kind is ControlType.COMMIT:
            had_data = header.producer_id in self._ongoing_committed
            self._ongoing_committed.discard(header.producer_id)
            return not had_data
        return False

    def _end_aborted(self, producer_id: int) -> bool:
        transaction = self._ongoing_aborted.pop(producer_id, None)
        if transaction is None or producer_id not in self._with_data:
            return True
        self._with_data.discard(producer_id)
        if self.cleaned_index is not None:
            self.cleaned_index.append(transaction)
        return False

    def _begin_up_to(self, offset: int) -> None:
        while self._next < len(self._aborted) and self._aborted[self._next].first_offset <= offset:
            transaction = self._aborted[self._next]
            self._ongoing_aborted.setdefault(transaction.producer_id, transaction)
            self._next += 1
