"""The states of a transaction, with the numbers of `__transaction_state` and the names of ListTransactions.

    Empty --> Ongoing --> PrepareCommit --> CompleteCommit --> Ongoing or Empty ...
                     \\--> PrepareAbort  --> CompleteAbort

`Dead` and `PrepareEpochFence` are steps that Kafka takes in memory only. They have numbers and names, so that a filter
may ask for them, but nothing is ever found in them.
"""

from enum import IntEnum


class TransactionState(IntEnum):
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


STATES_BY_TEXT = {state.text: state for state in TransactionState}

PREPARED = frozenset({TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT})
"""The outcome is decided, its markers are being written: everything else has to wait."""

AT_REST = frozenset({TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT})
"""No transaction is under way: the next may begin, and the transactional id may expire."""
