"""The contract between a coordinator (groups, transactions) and its driver, `server/runtime.py`.

A machine holds what one partition of `__consumer_offsets` or `__transaction_state` says. The driver has one queue a
partition and goes, command by command: `decide` -> append the records as one batch -> `apply` each -> give the replies
once the batch is committed. What it must keep:

- A decision without records waits as well, until everything applied before it is committed. Otherwise an answer could
  show an offset that a failover takes back.
- If an append fails, every token that is unanswered (those of this decision and those the machine had parked) gets an
  error of the driver's, and the machine is built anew from the log. A machine never undoes a decision. The exception
  are records too large for the log, of a decision with `if_too_large`: it alone is refused, and `when_refused` is next.
- Replay is `apply` and `apply_marker` for each record in the order of the log, then `on_loaded` once, then `on_image`
  once; only then is there a first `decide`.
- `requests` are carried out after the records are committed, too.
- Timers live in the driver: a later deadline for a key replaces the one before, None cancels it, and a timer that fires
  just as it is cancelled does no harm.

A machine never does I/O, reads a clock, or draws an id except from the Random that it was given.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from barnabas.errors import ErrorCode
from barnabas.machines.controller.image import ClusterImage
from barnabas.types import NO_PRODUCER_EPOCH, NO_PRODUCER_ID

Token = Hashable


class Now(NamedTuple):
    """Sessions and deadlines are on monotonic time; what goes into a record is wall time."""

    monotonic_ms: int
    wall_ms: int


class ProducerIdAndEpoch(NamedTuple):
    producer_id: int
    producer_epoch: int


class CoordinatorRecord(NamedTuple):
    """Key and value are messages of `barnabas.protocol`; a value of None is a tombstone."""

    key: Any
    value: Any | None
    value_version: int = 0


class ApplyContext(NamedTuple):
    """Where in the log a record stands."""

    offset: int
    timestamp: int
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    is_transactional: bool = False


@dataclass(frozen=True, slots=True)
class CoordinatorDecision:
    records: tuple[CoordinatorRecord, ...] = ()
    replies: tuple[tuple[Token, Any], ...] = ()
    timers: tuple[tuple[str, int | None], ...] = ()
    """(key, deadline on monotonic time, or None to cancel)"""
    transaction: ProducerIdAndEpoch | None = None
    """The records are to be appended as part of this producer's transaction."""
    requests: tuple[Any, ...] = ()
    """What the driver is asked to do besides: send the markers of a transaction, say."""
    if_too_large: ErrorCode | None = None
    """Given by decisions that have changed nothing in memory but timers, which are set in any case, or that make up for
    it by `when_refused`: the error for their tokens should the records not fit into the log. So one client's large
    request is no other client's trouble."""
    when_refused: Callable[[Now], "CoordinatorDecision"] | None = None
    """Decides what follows if the records did not fit, at once and before anything else."""


NOTHING = CoordinatorDecision()


class CoordinatorMachine(Protocol):
    def decide(self, command: Any, token: Token, now: Now) -> CoordinatorDecision:
        """Change soft state only. A request that must wait is a token answered by a later decision."""
        ...

    def apply(self, key: Any, value: Any | None, context: ApplyContext) -> None:
        """The only writer of durable state; also used on reload."""
        ...

    def apply_encoded(self, key: bytes, value: bytes, record_offset: int, timestamp: int) -> bool:
        """Asked first on reload, outside of transactions: a machine may take a kind of record that is very frequent as
        it stands in the log. False: nothing has changed, decode it for `apply`, which would come to the same."""
        ...

    def apply_marker(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        """The end of a transaction stands in the log: its records count from now on, or vanish."""
        ...

    def expire(self, key: str, now: Now) -> CoordinatorDecision:
        """A timer fired."""
        ...

    def on_loaded(self, now: Now) -> CoordinatorDecision:
        """The log has been replayed: arm timers, begin sessions anew."""
        ...

    def on_image(self, image: ClusterImage, now: Now) -> CoordinatorDecision:
        """Topics or partitions have changed."""
        ...

    def check(self) -> None:
        """Asserts every invariant."""
        ...
