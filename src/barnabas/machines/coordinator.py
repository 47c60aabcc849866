"""The contract between a coordinator (groups, transactions) and its driver, `server/runtime.py`.

A machine holds what one partition of `__consumer_offsets` or `__transaction_state` says. The driver has one queue per
partition and handles one command at a time: `decide` -> append the records as one batch -> `apply` each -> send the
replies once the batch is committed. Its obligations:

- A decision without records waits as well, until everything applied before it is committed. Otherwise a response could
  show an offset that a failover takes back.
- If an append fails, every pending token (those of this decision and those the machine had parked) gets an error
  from the driver, and the machine is rebuilt from the log. A machine never undoes a decision. The exception: if a
  decision with `if_too_large` has records too large for the log, only it is rejected, and `when_refused` is called.
- Replay is `apply` and `apply_marker` for each record in the order of the log, then `on_loaded` once, then `on_image`
  once; only then is there a first `decide`.
- `requests` are also carried out after the records are committed.
- Timers live in the driver: a later deadline for a key replaces the one before, None cancels it, and a timer that fires
  just as it is cancelled is harmless.

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
    """Sessions and deadlines use monotonic time; records use wall time."""

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
    """The position of a record in the log."""

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
    """Further requests to the driver, such as sending the markers of a transaction."""
    if_too_large: ErrorCode | None = None
    """The error for the tokens if the records do not fit into the log, so that one client's large request does not fail
    others. Only for decisions that changed nothing in memory but timers (which are set in any case), or that undo it in
    `when_refused`."""
    when_refused: Callable[[Now], "CoordinatorDecision"] | None = None
    """Decides what follows if the records did not fit; called immediately."""


NOTHING = CoordinatorDecision()


class CoordinatorMachine(Protocol):
    def decide(self, command: Any, token: Token, now: Now) -> CoordinatorDecision:
        """Change soft state only. A request that must wait is a token that a later decision replies to."""
        ...

    def apply(self, key: Any, value: Any | None, context: ApplyContext) -> None:
        """The only writer of durable state; also used on reload."""
        ...

    def apply_encoded(self, key: bytes, value: bytes, record_offset: int, timestamp: int) -> bool:
        """Tried first on reload, outside of transactions: a machine may apply very frequent records without decoding
        them. False: nothing has changed, decode it for `apply`, which leads to the same state."""
        ...

    def apply_marker(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        """A transaction has ended: its records take effect, or are dropped."""
        ...

    def expire(self, key: str, now: Now) -> CoordinatorDecision:
        """A timer fired."""
        ...

    def on_loaded(self, now: Now) -> CoordinatorDecision:
        """The log has been replayed: arm timers, restart sessions."""
        ...

    def on_image(self, image: ClusterImage, now: Now) -> CoordinatorDecision:
        """Topics or partitions have changed."""
        ...

    def check(self) -> None:
        """Asserts every invariant."""
        ...
