"""How admin calls reach the broker that answers them, and what is tried again.

A call is about keys: topics, partitions, groups. Each round finds the node of every unfinished key, asks the nodes at
the same time, and keeps the keys whose error passes by itself (a moved leader, coordinator or controller, a lost
connection, a quota) for the next round, until the time is over. What a mixin of `AdminCore` adds is one request a node
and how its answer is read; no mixin retries on its own.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import Any, TypeVar

from barnabas.client.admin.attempts import AnswerLost, Attempts, K, Outcome, V
from barnabas.client.admin.errors import admin_error
from barnabas.client.cluster import ClusterClient, CoordinatorKind
from barnabas.client.environment import environment
from barnabas.client.errors import ClientTimeoutError, UnreachableError
from barnabas.client.metadata import Node
from barnabas.client.node_connections import coordinator_id, is_coordinator_id
from barnabas.client.options import AdminOptions
from barnabas.client.retry import Deadline, retrying
from barnabas.clock import Clock
from barnabas.errors import ErrorCode, KafkaError
from barnabas.types import TopicPartition

T = TypeVar("T")

Answers = Mapping[K, V | KafkaError]
Locate = Callable[[list[K]], Awaitable[Mapping[K, "int | KafkaError"]]]
Ask = Callable[[int, list[K]], Awaitable[Answers[K, V]]]


class GivenDeadline(Deadline):
    """One that the user has chosen for the call."""

    __slots__ = ()


class AdminCalls:
    """The part of `AdminCore` that all mixins stand on."""

    def __init__(self, cluster: ClusterClient, options: AdminOptions, clock: Clock | None = None) -> None:
        self._cluster = cluster
        self._options = options
        self._clock: Clock = clock or environment().clock
        self._reached = False
        self._controller_moved = False

    async def close(self) -> None:
        await self._cluster.close()

    def _deadline(self, timeout: float | None) -> Deadline:
        if timeout is not None:
            return GivenDeadline(timeout * 1000, self._clock)
        return Deadline(self._options.default_api_timeout_ms, self._clock)

    def _request_timeout_ms(self, deadline: Deadline) -> int:
        """How long a broker may take for one request, and the client waits for the answer."""
        return min(self._options.request_timeout_ms, deadline.remaining_ms)

    async def _send(self, node_id: int, request: Any, deadline: Deadline, **versions: int) -> Any:
        """Tells a request that never left from one whose answer was lost (`AnswerLost`)."""
        await _within(deadline, self._cluster.connect(node_id), f"connecting to broker {node_id}")
        timeout_ms = self._request_timeout_ms(deadline)
        try:
            return await self._cluster.send(node_id, request, timeout_ms=timeout_ms, **versions)
        except (UnreachableError, ClientTimeoutError) as error:
            raise AnswerLost(error) from error

    async def _call(
        self,
        locate: Callable[[], Awaitable[int]],
        ask: Callable[[int], Awaitable[T]],
        deadline: Deadline,
        *,
        moved: Callable[[None, KafkaError], None] = lambda key, error: None,
        already: Callable[[KafkaError], T | None] | None = None,
    ) -> T:
        """One request with one answer, from whichever node `locate` names."""

        async def locate_one(keys: list[None]) -> Mapping[None, int | KafkaError]:
            return {None: await locate()}

        async def ask_one(node_id: int, keys: list[None]) -> Answers[None, T]:
            return {None: await ask(node_id)}

        def already_one(key: None, error: KafkaError) -> T | None:
            return None if already is None else already(error)

        outcome: Outcome[None, T] = await self._drive(
            [None], locate_one, ask_one, deadline, moved=moved, already=already and already_one
        )
        return outcome.only(None)

    async def _drive(
        self,
        keys: Iterable[K],
        locate: Locate[K],
        ask: Ask[K, V],
        deadline: Deadline,
        *,
        also_passes: Collection[ErrorCode] = (),
        soon: Collection[ErrorCode] = (),
        moved: Callable[[K, KafkaError], None] = lambda key, error: None,
        already: Callable[[K, KafkaError], V | None] | None = None,
    ) -> Outcome[K, V]:
        """Ask for every key until each has a result or an error that stays; see `Attempts` for which is which.

        `moved` hears of every error that is tried again.
        """
        await self._reach(deadline)
        attempts: Attempts[K, V] = Attempts(keys, deadline, also_passes, soon, already)
        backoff = self._cluster.new_backoff()
        while attempts.pending:
            for key, answer in (await self._round(attempts.pending, locate, ask, deadline)).items():
                error = attempts.take(key, answer)
                if error is not None:
                    moved(key, error)
            if attempts.pending:
                pause_ms = backoff.next_ms()
                if pause_ms >= deadline.remaining_ms or backoff.attempts > self._options.retries:
                    attempts.give_up()
                else:
                    await asyncio.sleep(pause_ms / 1000)
        return attempts.outcome()

    async def _round(
        self, keys: list[K], locate: Locate[K], ask: Ask[K, V], deadline: Deadline
    ) -> dict[K, V | KafkaError]:
        """One attempt for each key; a key that a node left out of its answer counts as an error of that node."""
        answers: dict[K, V | KafkaError] = {}
        by_node: dict[int, list[K]] = defaultdict(list)
        try:
            places = await _within(deadline, locate(keys), "finding the broker to ask")
        except KafkaError as error:
            return dict.fromkeys(keys, error)
        for key in keys:
            place = places[key]
            if isinstance(place, KafkaError):
                answers[key] = place
            else:
                by_node[place].append(key)

        async def ask_node(node_id: int, asked: list[K]) -> None:
            try:
                given: Answers[K, V] = await ask(node_id, asked)
            except KafkaError as error:
                given = dict.fromkeys(asked, error)
            for key in asked:
                missing = f"broker {node_id} left {key} out of its answer (is it a Kafka broker?)"
                answers[key] = given.get(key, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, missing))

        failures = await asyncio.gather(
            *(ask_node(node_id, asked) for node_id, asked in by_node.items()), return_exceptions=True
        )
        for failure in failures:
            if failure is not None:
                raise failure
        return answers

    async def _reach(self, deadline: Deadline) -> None:
        """The first call says at once that no bootstrap server can be reached, instead of trying for a minute.

        A cluster that is away for a moment is waited for later on, and by a call that was given a time.
        """
        if self._reached:
            return
        failure: UnreachableError | None = None

        async def reach() -> None:
            nonlocal failure
            try:
                await _within(deadline, self._cluster.start(), "reaching a bootstrap server")
            except UnreachableError as error:
                failure = error
                raise
            except ClientTimeoutError as error:
                raise failure or error from None  # it says which address, and why

        if isinstance(deadline, GivenDeadline):
            await retrying(reach, deadline=deadline, backoff=self._cluster.new_backoff())
        else:
            await reach()
        self._reached = True

    async def _any_node(self) -> int:
        return await self._cluster.any_node()

    async def _controller(self) -> int:
        if self._controller_moved:
            await self._cluster.refresh_metadata()
            self._controller_moved = False
        return await self._cluster.controller()

    async def _on_controller(self, keys: list[K]) -> Mapping[K, int | KafkaError]:
        return dict.fromkeys(keys, await self._controller())

    async def _on_any_node(self, keys: list[K]) -> Mapping[K, int | KafkaError]:
        return dict.fromkeys(keys, await self._any_node())

    async def _on_itself(self, keys: list[int]) -> Mapping[int, int | KafkaError]:
        """The keys are brokers: each answers for itself."""
        known = self._cluster.metadata.brokers
        if any(key not in known for key in keys):
            await self._cluster.refresh_metadata()
            known = self._cluster.metadata.brokers
        return {key: key if key in known else _no_such_broker(key, known) for key in keys}

    async def _brokers(self, deadline: Deadline) -> list[int]:
        """The brokers that are there now."""

        async def ask(node_id: int) -> list[int]:
            await self._cluster.refresh_metadata()
            return sorted(self._cluster.metadata.brokers)

        return await self._call(self._any_node, ask, deadline)

    async def _on_leaders(self, keys: list[TopicPartition]) -> Mapping[TopicPartition, int | KafkaError]:
        """Leaders as of now: what was known before may be why this is another round."""
        await self._cluster.refresh_metadata({key.topic for key in keys})
        return {key: self._leader(key) for key in keys}

    def _leader(self, key: TopicPartition) -> int | KafkaError:
        metadata = self._cluster.metadata
        topic = metadata.topics.get(key.topic)
        if topic is None:
            code = metadata.invalid_topics.get(key.topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            return admin_error(code, topic=key.topic)
        if not 0 <= key.partition < len(topic.partitions):
            has = f"the topic has {len(topic.partitions)} partitions"
            return admin_error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, has, topic=key.topic, partition=key.partition)
        leader = metadata.leader(key)
        if leader is None:
            return admin_error(ErrorCode.LEADER_NOT_AVAILABLE, topic=key.topic, partition=key.partition)
        return leader.node_id

    def _on_coordinators(self, kind: CoordinatorKind, deadline: Deadline) -> Locate[str]:
        async def one(key: str) -> int | KafkaError:
            try:
                return await self._cluster.coordinator(kind, key, deadline)
            except KafkaError as error:
                return error

        async def locate(keys: list[str]) -> Mapping[str, int | KafkaError]:
            return dict(zip(keys, await asyncio.gather(*map(one, keys))))

        return locate

    def _node(self, node_id: int) -> Node:
        """The broker behind an id that `coordinator` gave."""
        real_id = coordinator_id(node_id) if is_coordinator_id(node_id) else node_id
        return self._cluster.metadata.brokers.get(real_id) or Node(real_id, "", -1)

    def _forget_coordinator(self, kind: CoordinatorKind) -> Callable[[str, KafkaError], None]:
        """After an error of a coordinator that passes, the next round looks for it anew."""

        def moved(key: str, error: KafkaError) -> None:
            if error.code is not ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                self._cluster.forget_coordinator(kind, key)

        return moved

    def _look_for_controller(self, key: object, error: KafkaError) -> None:
        self._controller_moved = True


def _no_such_broker(broker_id: int, known: Collection[int]) -> KafkaError:
    there = ", ".join(str(each) for each in sorted(known))
    return KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"there is no broker {broker_id} (there are: {there})")


async def _within(deadline: Deadline, work: Awaitable[T], doing: str) -> T:
    """What has no time-out of its own ends at the deadline too."""
    try:
        async with asyncio.timeout(deadline.remaining_s):
            return await work
    except TimeoutError as error:
        if isinstance(error, KafkaError):
            raise
        raise ClientTimeoutError(f"{doing} took longer than the call may take") from None


def several(keys: Iterable[T]) -> list[T]:
    """A single name in place of a list would be taken letter by letter: `delete_topics("abc")` must not delete a."""
    if isinstance(keys, str | bytes):
        raise TypeError(f"expected several, in a list: [{keys!r}] instead of {keys!r}")
    return list(keys)
