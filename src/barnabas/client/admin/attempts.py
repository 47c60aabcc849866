"""The state of the keys of one admin call: which are done, which have failed, and which are requested again.

After a lost response it is unknown whether the change was made. If it was, the next attempt is rejected ("exists
already"): the caller's `already` recognizes that error and the key counts as done.
"""

from collections.abc import Callable, Collection, Hashable, Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from barnabas.client.admin.errors import AdminError
from barnabas.client.errors import ClientError, ClientTimeoutError, UnreachableError
from barnabas.client.retry import Deadline
from barnabas.errors import ErrorCode, KafkaError

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

RETRIED = frozenset(
    {
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.BROKER_NOT_AVAILABLE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.LISTENER_NOT_FOUND,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)
RETRIED_BRIEFLY = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})
BRIEF_RETRY_MS = 2000
"""A topic created a moment ago may not be known to every broker yet. For one that does not exist, stop early."""


@dataclass(slots=True)
class Outcome(Generic[K, V]):
    """The result or the error of each key, in the order given."""

    results: dict[K, V] = field(default_factory=dict)
    errors: dict[K, KafkaError] = field(default_factory=dict)

    def all(self) -> dict[K, V]:
        """The results by key; raises AdminError if any key failed."""
        if self.errors:
            raise AdminError(self.errors, self.results)
        return self.results

    def only(self, key: K) -> V:
        """The result of one key; raises its error if it failed."""
        if key in self.errors:
            raise self.errors[key]
        return self.results[key]


class ResponseLost(ClientError):
    """A request was sent and no response came: it may have been executed. `failure` is the error that the user sees."""

    def __init__(self, failure: KafkaError) -> None:
        self.failure = failure
        super().__init__(failure.message, failure.code)


class Attempts(Generic[K, V]):
    """`also_retried`: errors to retry besides `RETRIED`; `retried_briefly`: retried, but only for BRIEF_RETRY_MS."""

    def __init__(
        self,
        keys: Iterable[K],
        deadline: Deadline,
        also_retried: Collection[ErrorCode],
        retried_briefly: Collection[ErrorCode],
        already: Callable[[K, KafkaError], V | None] | None,
    ) -> None:
        self._wanted = list(dict.fromkeys(keys))
        self._done: Outcome[K, V] = Outcome()
        self._pending = dict.fromkeys(self._wanted)
        self._last_errors: dict[K, KafkaError] = {}
        self._unsure: set[K] = set()
        self._retried = RETRIED.union(also_retried)
        self._retried_briefly = retried_briefly
        self._brief_retry_until = deadline.sooner(BRIEF_RETRY_MS)
        self._already = already

    @property
    def pending(self) -> list[K]:
        """The keys to request next."""
        return list(self._pending)

    def take(self, key: K, result: V | KafkaError) -> KafkaError | None:
        """Record the result of a key. Returns the error if the key will be retried."""
        self._pending.pop(key, None)
        if not isinstance(result, KafkaError):
            self._done.results[key] = result
            return None
        made = self._already(key, result) if self._already is not None and key in self._unsure else None
        if made is not None:
            self._done.results[key] = made
            return None
        if isinstance(result, ResponseLost):
            result = result.failure
            self._unsure.add(key)
        if result.code in self._retried or (
            result.code in self._retried_briefly and not self._brief_retry_until.expired
        ):
            self._pending[key] = None
            if key not in self._last_errors or not isinstance(result, ClientTimeoutError):
                # An earlier error explains more than that the last attempt had no time left.
                self._last_errors[key] = result
            return result
        self._done.errors[key] = result
        return None

    def give_up(self) -> None:
        """The time is over: each unfinished key fails with its last error."""
        for key in self._pending:
            error = self._last_errors[key]
            self._done.errors[key] = error if error.code in self._retried_briefly else _out_of_time(error)
        self._pending.clear()

    def outcome(self) -> Outcome[K, V]:
        results, errors = self._done.results, self._done.errors
        return Outcome(
            {key: results[key] for key in self._wanted if key in results},
            {key: errors[key] for key in self._wanted if key in errors},
        )


def _out_of_time(error: KafkaError) -> KafkaError:
    """Names the last error: a bare time-out would not explain the failure."""
    if isinstance(error, UnreachableError | ClientTimeoutError):
        return error
    return ClientTimeoutError(f"tried until default.api.timeout.ms was over; the last response was {error}")
