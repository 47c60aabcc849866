"""The keys of one admin call on their way: which are done, which failed for good, and which are asked for again.

A lost answer leaves open whether the change was made. Where the next attempt is refused because it was ("exists
already"), the caller's `already` says so and the key counts as done.
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

PASSES_BY_ITSELF = frozenset(
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
SOON_KNOWN = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})
SOON_MS = 2000
"""A topic made a moment ago may not be known to every broker yet; one that does not exist is not worth a minute."""


@dataclass(slots=True)
class Outcome(Generic[K, V]):
    """What became of each key, in the order in which they were given."""

    results: dict[K, V] = field(default_factory=dict)
    errors: dict[K, KafkaError] = field(default_factory=dict)

    def all(self) -> dict[K, V]:
        if self.errors:
            raise AdminError(self.errors, self.results)
        return self.results

    def only(self, key: K) -> V:
        if key in self.errors:
            raise self.errors[key]
        return self.results[key]


class AnswerLost(ClientError):
    """A request left and no answer came: it may have been carried out. `failure` is what the user hears of."""

    def __init__(self, failure: KafkaError) -> None:
        self.failure = failure
        super().__init__(failure.message, failure.code)


class Attempts(Generic[K, V]):
    """`also_passes`: errors to try again besides those that always are; `soon`: they pass in a moment or never."""

    def __init__(
        self,
        keys: Iterable[K],
        deadline: Deadline,
        also_passes: Collection[ErrorCode],
        soon: Collection[ErrorCode],
        already: Callable[[K, KafkaError], V | None] | None,
    ) -> None:
        self._wanted = list(dict.fromkeys(keys))
        self._done: Outcome[K, V] = Outcome()
        self._again = dict.fromkeys(self._wanted)
        self._why: dict[K, KafkaError] = {}
        self._unsure: set[K] = set()
        self._passes = PASSES_BY_ITSELF.union(also_passes)
        self._soon = soon
        self._soon_until = deadline.sooner(SOON_MS)
        self._already = already

    @property
    def pending(self) -> list[K]:
        """What is still to be asked for."""
        return list(self._again)

    def take(self, key: K, answer: V | KafkaError) -> KafkaError | None:
        """The answer for a key; gives the error if it is one to try again after."""
        self._again.pop(key, None)
        if not isinstance(answer, KafkaError):
            self._done.results[key] = answer
            return None
        made = self._already(key, answer) if self._already is not None and key in self._unsure else None
        if made is not None:
            self._done.results[key] = made
            return None
        if isinstance(answer, AnswerLost):
            answer = answer.failure
            self._unsure.add(key)
        if answer.code in self._passes or (answer.code in self._soon and not self._soon_until.expired):
            self._again[key] = None
            if key not in self._why or not isinstance(answer, ClientTimeoutError):
                # That the last attempt had no time left says less than what the one before it met.
                self._why[key] = answer
            return answer
        self._done.errors[key] = answer
        return None

    def give_up(self) -> None:
        """The time is over: the last failure of each unfinished key stays."""
        for key in self._again:
            error = self._why[key]
            self._done.errors[key] = error if error.code in self._soon else _out_of_time(error)
        self._again.clear()

    def outcome(self) -> Outcome[K, V]:
        results, errors = self._done.results, self._done.errors
        return Outcome(
            {key: results[key] for key in self._wanted if key in results},
            {key: errors[key] for key in self._wanted if key in errors},
        )


def _out_of_time(error: KafkaError) -> KafkaError:
    """The last failure says why; a time-out in its place would not."""
    if isinstance(error, UnreachableError | ClientTimeoutError):
        return error
    return ClientTimeoutError(f"tried until default.api.timeout.ms was over; the last answer was {error}")
