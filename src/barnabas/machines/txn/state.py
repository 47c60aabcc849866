"""The states of a transaction, with the numbers of `__transaction_state` and the names of ListTransactions.

    Empty --> Ongoing --> PrepareCommit --> CompleteCommit --> Ongoing or Empty ...
                     \\--> PrepareAbort  --> CompleteAbort

`Dead` and `PrepareEpochFence` are steps that Kafka takes in memory only. They have numbers and names so that a filter
may name them, but no transaction is ever in them.
"""

from enum import IntEnum


class TransactionLogState(IntEnum):
    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def text(self) -> str:
        """As in DescribeTransactions: PrepareCommit, say."""
        return "".join(word.capitalize() for word in self.name.split("_"))


STATES_BY_TEXT = {state.text: state for state in TransactionLogState}

PREPARED = frozenset({TransactionLogState.PREPARE_COMMIT, TransactionLogState.PREPARE_ABORT})
"""The outcome is decided, its markers are being written: other requests have to wait."""

AT_REST = frozenset(
    {TransactionLogState.EMPTY, TransactionLogState.COMPLETE_COMMIT, TransactionLogState.COMPLETE_ABORT}
)
"""No transaction is in progress: the next may begin, and the transactional id may expire."""
