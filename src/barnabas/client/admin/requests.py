"""How admin calls reach the right broker, and what is retried.

A call is about keys: topics, partitions, groups. Each round locates the node of every pending key, sends one request
per node in parallel, and keeps the keys with a retriable error (a moved leader, coordinator or controller, a lost
connection, a quota) for the next round, until the deadline. Every part of `AdminCore` owns one `AdminRequests` and adds
the request per node and how to read its response. No part retries on its own.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import Any, TypeVar

from barnabas.client.admin.attempts import Attempts, K, Outcome, ResponseLost, V
from barnabas.client.admin.errors import admin_error
from barnabas.client.cluster_client import ClusterClient, CoordinatorKind
from barnabas.client.errors import ClientTimeoutError, UnreachableError
from barnabas.client.metadata import Node
from barnabas.client.node_connections import coordinator_id, is_coordinator_id
from barnabas.client.options import AdminOptions
from barnabas.client.retry import Deadline, retrying
from barnabas.clock import Clock
from barnabas.errors import ErrorCode, KafkaError
from barnabas.types import TopicPartition

T = TypeVar("T")

Results = Mapping[K, V | KafkaError]
Locate = Callable[[list[K]], Awaitable[Mapping[K, "int | KafkaError"]]]
SendTo = Callable[[int, list[K]], Awaitable[Results[K, V]]]


class GivenDeadline(Deadline):
    """A deadline that the user has set for the call."""

    __slots__ = ()


class AdminRequests:
    """Sends the requests of admin calls. On the I/O thread."""

    def __init__(self, cluster: ClusterClient, options: AdminOptions, clock: Clock) -> None:
        self.cluster = cluster
        self._options = options
        self.clock = clock
        self._reached = False
        self._controller_moved = False

    def deadline(self, timeout: float | None) -> Deadline:
        if timeout is not None:
            return GivenDeadline(timeout * 1000, self.clock)
        return Deadline(self._options.default_api_timeout_ms, self.clock)

    def request_timeout_ms(self, deadline: Deadline) -> int:
        """How long a broker may take for one request, and how long the client waits for the response."""
        return min(self._options.request_timeout_ms, deadline.remaining_ms)

    async def send(self, node_id: int, request: Any, deadline: Deadline, **versions: int) -> Any:
        """Raises `ResponseLost` if the request was sent but no response came; with other errors it was not sent."""
        await _within(deadline, self.cluster.connect(node_id), f"connecting to broker {node_id}")
        timeout_ms = self.request_timeout_ms(deadline)
        try:
            return await self.cluster.send(node_id, request, timeout_ms=timeout_ms, **versions)
        except (UnreachableError, ClientTimeoutError) as error:
            raise ResponseLost(error) from error

    async def call(
        self,
        locate: Callable[[], Awaitable[int]],
        send_to: Callable[[int], Awaitable[T]],
        deadline: Deadline,
        *,
        on_retry: Callable[[None, KafkaError], None] = lambda key, error: None,
        already: Callable[[KafkaError], T | None] | None = None,
    ) -> T:
        """One request with one response, from the node that `locate` returns."""

        async def locate_one(keys: list[None]) -> Mapping[None, int | KafkaError]:
            return {None: await locate()}

        async def send_one(node_id: int, keys: list[None]) -> Results[None, T]:
            return {None: await send_to(node_id)}

        def already_one(key: None, error: KafkaError) -> T | None:
            return None if already is None else already(error)

        outcome: Outcome[None, T] = await self.call_each(
            [None], locate_one, send_one, deadline, on_retry=on_retry, already=already and already_one
        )
        return outcome.only(None)

    async def call_each(
        self,
        keys: Iterable[K],
        locate: Locate[K],
        send_to: SendTo[K, V],
        deadline: Deadline,
        *,
        also_retried: Collection[ErrorCode] = (),
        retried_briefly: Collection[ErrorCode] = (),
        on_retry: Callable[[K, KafkaError], None] = lambda key, error: None,
        already: Callable[[K, KafkaError], V | None] | None = None,
    ) -> Outcome[K, V]:
        """Request every key until each has a result or a permanent error; `Attempts` distinguishes them.

        `on_retry` is called with every error that is retried.
        """
        await self._reach(deadline)
        attempts: Attempts[K, V] = Attempts(keys, deadline, also_retried, retried_briefly, already)
        backoff = self.cluster.new_backoff()
        while attempts.pending:
            for key, result in (await self._round(attempts.pending, locate, send_to, deadline)).items():
                error = attempts.take(key, result)
                if error is not None:
                    on_retry(key, error)
            if attempts.pending:
                pause_ms = backoff.next_ms()
                if pause_ms >= deadline.remaining_ms or backoff.attempts > self._options.retries:
                    attempts.give_up()
                else:
                    await asyncio.sleep(pause_ms / 1000)
        return attempts.outcome()

    async def _round(
        self, keys: list[K], locate: Locate[K], send_to: SendTo[K, V], deadline: Deadline
    ) -> dict[K, V | KafkaError]:
        """One attempt per key; a key that is missing from the response of its node is an error of that node."""
        results: dict[K, V | KafkaError] = {}
        by_node: dict[int, list[K]] = defaultdict(list)
        try:
            places = await _within(deadline, locate(keys), "finding the broker")
        except KafkaError as error:
            return dict.fromkeys(keys, error)
        for key in keys:
            place = places[key]
            if isinstance(place, KafkaError):
                results[key] = place
            else:
                by_node[place].append(key)

        async def send_to_node(node_id: int, requested: list[K]) -> None:
            try:
                given: Results[K, V] = await send_to(node_id, requested)
            except KafkaError as error:
                given = dict.fromkeys(requested, error)
            for key in requested:
                missing = f"broker {node_id} left {key} out of its response (is it a Kafka broker?)"
                results[key] = given.get(key, KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, missing))

        failures = await asyncio.gather(
            *(send_to_node(node_id, requested) for node_id, requested in by_node.items()), return_exceptions=True
        )
        for failure in failures:
            if failure is not None:
                raise failure
        return results

    async def _reach(self, deadline: Deadline) -> None:
        """Fail the first call at once if no bootstrap server can be reached, instead of retrying for a minute.

        Later calls, and a call with a timeout of its own, wait for a cluster that is away.
        """
        if self._reached:
            return
        failure: UnreachableError | None = None

        async def reach() -> None:
            nonlocal failure
            try:
                await _within(deadline, self.cluster.start(), "reaching a bootstrap server")
            except UnreachableError as error:
                failure = error
                raise
            except ClientTimeoutError as error:
                raise failure or error from None  # it names the address and the cause

        if isinstance(deadline, GivenDeadline):
            await retrying(reach, deadline=deadline, backoff=self.cluster.new_backoff())
        else:
            await reach()
        self._reached = True

    async def any_node(self) -> int:
        return await self.cluster.any_node()

    async def controller(self) -> int:
        if self._controller_moved:
            await self.cluster.refresh_metadata()
            self._controller_moved = False
        return await self.cluster.controller()

    async def on_controller(self, keys: list[K]) -> Mapping[K, int | KafkaError]:
        return dict.fromkeys(keys, await self.controller())

    async def on_any_node(self, keys: list[K]) -> Mapping[K, int | KafkaError]:
        return dict.fromkeys(keys, await self.any_node())

    async def on_brokers(self, keys: list[int]) -> Mapping[int, int | KafkaError]:
        """The keys are broker ids: each request goes to that broker."""
        known = self.cluster.metadata.brokers
        if any(key not in known for key in keys):
            await self.cluster.refresh_metadata()
            known = self.cluster.metadata.brokers
        return {key: key if key in known else _no_such_broker(key, known) for key in keys}

    async def brokers(self, deadline: Deadline) -> list[int]:
        """The ids of the registered brokers."""

        async def send_to(node_id: int) -> list[int]:
            await self.cluster.refresh_metadata()
            return sorted(self.cluster.metadata.brokers)

        return await self.call(self.any_node, send_to, deadline)

    async def on_leaders(self, keys: list[TopicPartition]) -> Mapping[TopicPartition, int | KafkaError]:
        """Current leaders: stale metadata may be the reason for this round."""
        await self.cluster.refresh_metadata({key.topic for key in keys})
        return {key: self._leader(key) for key in keys}

    def _leader(self, key: TopicPartition) -> int | KafkaError:
        metadata = self.cluster.metadata
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

    def on_coordinators(self, kind: CoordinatorKind, deadline: Deadline) -> Locate[str]:
        async def one(key: str) -> int | KafkaError:
            try:
                return await self.cluster.coordinator(kind, key, deadline)
            except KafkaError as error:
                return error

        async def locate(keys: list[str]) -> Mapping[str, int | KafkaError]:
            return dict(zip(keys, await asyncio.gather(*map(one, keys))))

        return locate

    def node(self, node_id: int) -> Node:
        """The broker behind an id that `coordinator` returned."""
        real_id = coordinator_id(node_id) if is_coordinator_id(node_id) else node_id
        return self.cluster.metadata.brokers.get(real_id) or Node(real_id, "", -1)

    def forget_coordinator(self, kind: CoordinatorKind) -> Callable[[str, KafkaError], None]:
        """After a retriable error of a coordinator, the next round looks it up again."""

        def on_retry(key: str, error: KafkaError) -> None:
            if error.code is not ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                self.cluster.forget_coordinator(kind, key)

        return on_retry

    def forget_controller(self, key: object, error: KafkaError) -> None:
        self._controller_moved = True


def _no_such_broker(broker_id: int, known: Collection[int]) -> KafkaError:
    there = ", ".join(str(each) for each in sorted(known))
    return KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"there is no broker {broker_id} (there are: {there})")


async def _within(deadline: Deadline, work: Awaitable[T], doing: str) -> T:
    """Apply the deadline to work that has no time-out of its own."""
    try:
        async with asyncio.timeout(deadline.remaining_s):
            return await work
    except TimeoutError as error:
        if isinstance(error, KafkaError):
            raise
        raise ClientTimeoutError(f"{doing} took longer than the call may take") from None


def several(keys: Iterable[T]) -> list[T]:
    """Reject a single name in place of a list: `delete_topics("abc")` must not delete the topics a, b and c."""
    if isinstance(keys, str | bytes):
        raise TypeError(f"expected several, in a list: [{keys!r}] instead of {keys!r}")
    return list(keys)
