"""A store in memory whose writes sometimes end without a word on whether they happened, as over a network."""

from collections.abc import Sequence
from enum import Enum

from barnabas.metadata.store import Node, Operation, OutcomeUnknownError, SessionState, StoreUnavailableError
from barnabas.metadata.stores.memory import MemoryStore, MemoryTree


class Fault(Enum):
    NONE = "none"
    LOST_REQUEST = "lost request"
    """Unknown outcome: it did not happen."""
    LOST_RESPONSE = "lost response"
    """Unknown outcome: it happened."""
    UNAVAILABLE = "unavailable"


class UncertainStore(MemoryStore):
    """`faults` are those of the next writes, in order; `cut_off` makes every call fail."""

    def __init__(self, tree: MemoryTree | None = None) -> None:
        super().__init__(tree)
        self.faults: list[Fault] = []
        self.cut_off = False

    def suspend(self) -> None:
        self.cut_off = True
        self.on_session_state(SessionState.SUSPENDED)

    def resume(self) -> None:
        self.cut_off = False
        self.on_session_state(SessionState.CONNECTED)

    def get_many(self, paths: Sequence[str]) -> list[Node | None]:
        self._check_connection()
        return super().get_many(paths)

    def sync(self) -> None:
        self._check_connection()
        super().sync()

    def multi(self, operations: Sequence[Operation]) -> int:
        self._check_connection()
        fault = self.faults.pop(0) if self.faults else Fault.NONE
        if fault is Fault.UNAVAILABLE:
            raise StoreUnavailableError("no connection")
        if fault is Fault.LOST_REQUEST:
            raise OutcomeUnknownError("the request was lost, which nobody knows")
        revision = super().multi(operations)
        if fault is Fault.LOST_RESPONSE:
            raise OutcomeUnknownError("the response was lost")
        return revision

    def _check_connection(self) -> None:
        if self.cut_off:
            raise StoreUnavailableError("no connection")
