"""What a rebalance reports to the consumer, taken by poll in the user's thread.

The membership waits for `done` before it goes on: nothing is given up or taken over while the user's callback runs,
and heartbeats go on meanwhile. At most one event is out at a time.
"""

from collections.abc import Callable, Iterable

from barnabas.types import TopicPartition


class RebalanceEvent:
    """A change of the assignment that the consumer has to carry out."""

    __slots__ = ("_on_done", "partitions")

    def __init__(self, partitions: Iterable[TopicPartition]) -> None:
        self.partitions: tuple[TopicPartition, ...] = tuple(sorted(partitions))
        self._on_done: Callable[[RebalanceEvent, BaseException | None], None] | None = None

    def bind(self, on_done: Callable[["RebalanceEvent", BaseException | None], None]) -> None:
        self._on_done = on_done

    def done(self, error: BaseException | None = None) -> None:
        """The consumer has carried it out; `error` is what the user's callback raised. Thread-safe; once is enough."""
        on_done, self._on_done = self._on_done, None
        if on_done is not None:
            on_done(self, error)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({names_of(self.partitions)})"


class Revoked(RebalanceEvent):
    """To be given up, and still ours: offsets may be committed before `done`."""

    __slots__ = ()


class Assigned(RebalanceEvent):
    """To be taken over in addition to what is there. Empty when a rebalance ended without anything new."""

    __slots__ = ()


class Lost(RebalanceEvent):
    """Gone without notice: somebody else may read them already, a commit would be refused."""

    __slots__ = ()


def names_of(partitions: Iterable[TopicPartition]) -> str:
    """For people: `orders-0, orders-1`, or `nothing`."""
    return ", ".join(str(partition) for partition in sorted(partitions)) or "nothing"
