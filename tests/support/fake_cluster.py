"""A ClusterClient without a network: brokers are functions that the test gives, and every request is kept.

    cluster = FakeCluster(topics={"orders": 3})
    cluster.answer(ApiKey.HEARTBEAT, HeartbeatResponse(error_code=27), HeartbeatResponse())    # one after the other
    cluster.always(ApiKey.OFFSET_COMMIT, lambda node_id, request: OffsetCommitResponse(...))   # sync or async
    cluster.answer(ApiKey.PRODUCE, UnreachableError("broker", "gone"))                         # is raised
    cluster.requests                                                                           # [(node_id, request)]

A frame (`send_frame`) is decoded before it is handed to the function, whose response is encoded again. With nothing
scripted for an API, Metadata, FindCoordinator and ApiVersions-like questions are answered from the fake's own tables,
and anything else fails the test.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from barnabas.client.coordinators import CoordinatorKind
from barnabas.client.errors import UnknownTopicError, UnreachableError, UnsupportedVersionError, error_for
from barnabas.client.metadata import MetadataCache, Node, NodeAndEpoch, TopicMetadata
from barnabas.client.metrics.meters import NetworkMeters
from barnabas.client.node_connections import coordinator_id
from barnabas.client.options import AdminOptions, CommonOptions
from barnabas.client.retry import Backoff, Deadline
from barnabas.clock import Clock, SystemClock
from barnabas.errors import ErrorCode
from barnabas.protocol import ApiKey, decode, encode
from barnabas.protocol.message_types import request_type, response_type
from barnabas.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from barnabas.types import TopicPartition

Answer = Any
"""A response, an exception to raise, or a function (node_id, request) -> one of these, awaitable or not."""


class FakeCluster:
    def __init__(
        self,
        options: CommonOptions | None = None,
        *,
        brokers: int = 1,
        topics: Mapping[str, int] | None = None,
        clock: Clock | None = None,
    ) -> None:
        """`brokers` have the ids 0, 1, ...; `topics` gives each name its number of partitions."""
        self.options: CommonOptions = options or AdminOptions.of(
            "fake:9092", retry_backoff_ms=1, retry_backoff_max_ms=1
        )
        self.clock: Clock = clock or SystemClock()
        self.metadata = MetadataCache()
        self.features: dict[str, int] = {"transaction.version": 2, "group.version": 1}
        self.requests: list[tuple[int, Any]] = []
        self.refreshes: list[Collection[str] | None] = []
        """What each call of refresh_metadata asked for."""
        self.versions: dict[ApiKey, int] = {}
        """Highest version that the brokers speak, where it is not the newest; -1 is not at all."""
        self.coordinators: dict[tuple[CoordinatorKind, str], int] = {}
        """Node by kind and key; node 0 where there is none."""
        self.throttled: list[tuple[int, int]] = []
        self.followed: Collection[str] | None = ()
        self.meters = NetworkMeters()
        self.closed = False
        self.disconnected = False
        self._sent = asyncio.Event()
        self._in_flight: Counter[int] = Counter()
        self._brokers = {node_id: Node(node_id, f"broker-{node_id}", 9092) for node_id in range(brokers)}
        self._topics: dict[str, MetadataResponseTopic] = {}
        self._scripts: dict[ApiKey, deque[Answer]] = defaultdict(deque)
        self._standing: dict[ApiKey, Answer] = {}
        self._listeners: list[Callable[[MetadataCache], None]] = []
        self._known_coordinators: set[tuple[CoordinatorKind, str]] = set()
        for name, partitions in (topics or {}).items():
            self.add_topic(name, partitions)
        self.publish()

    def requests_in_flight(self) -> int:
        return sum(self._in_flight.values())

    def metadata_age_ms(self) -> int | None:
        return None

    def connected_node(self) -> int | None:
        """Nobody's metrics are pushed here."""
        return None

    # --- the script ---

    def answer(self, api_key: ApiKey, *answers: Answer) -> None:
        """The next requests of this API get these, in this order."""
        self._scripts[api_key].extend(answers)

    def always(self, api_key: ApiKey, answer: Answer) -> None:
        """What a request of this API gets when nothing is left of `answer`."""
        self._standing[api_key] = answer

    def requests_of(self, api_key: ApiKey) -> list[Any]:
        return [request for _, request in self.requests if type(request).__schema__.api_key == api_key]

    async def request_of(self, api_key: ApiKey, number: int = 0) -> Any:
        """The request of that number (from 0), as soon as it has been sent."""
        while len(self.requests_of(api_key)) <= number:
            self._sent.clear()
            await self._sent.wait()
        return self.requests_of(api_key)[number]

    # --- the cluster's state ---

    def add_topic(self, name: str, partitions: int = 1, *, topic_id: bytes | None = None) -> None:
        """Partition p is led by node p modulo the number of brokers. `publish` tells the client."""
        made = MetadataResponseTopic(
            name=name,
            topic_id=topic_id or name.encode().ljust(16, b"-")[:16],
            partitions=[
                MetadataResponsePartition(
                    partition_index=number,
                    leader_id=number % len(self._brokers),
                    leader_epoch=0,
                    replica_nodes=list(self._brokers),
                    isr_nodes=list(self._brokers),
                )
                for number in range(partitions)
            ],
        )
        self._topics[name] = made

    def remove_topic(self, name: str) -> None:
        del self._topics[name]

    def set_leader(self, topic: str, partition: int, leader: int, leader_epoch: int) -> None:
        found = self._topics[topic].partitions[partition]
        found.leader_id, found.leader_epoch = leader, leader_epoch

    def publish(self, topics: Collection[str] | None = None) -> None:
        """Let the client know the cluster as it is now, as an answer to Metadata would."""
        self.metadata.update(self._metadata_response(topics), all_topics=topics is None)
        for callback in self._listeners:
            callback(self.metadata)

    # --- ClusterClient ---

    async def start(self) -> None:
        return

    async def close(self) -> None:
        self.closed = True

    def disconnect(self) -> None:
        self.disconnected = True

    async def send(
        self,
        node_id: int,
        request: Any,
        *,
        timeout_ms: int | None = None,
        max_version: int | None = None,
        min_version: int = 0,
    ) -> Any:
        version = await self.version_of(
            node_id, request.__schema__.api_key, max_version=max_version, min_version=min_version
        )
        encode(request, version)  # what cannot be sent in this version must fail here as it does in earnest
        return await self._ask(node_id, request)

    async def send_frame(
        self,
        node_id: int,
        api_key: ApiKey,
        version: int,
        parts: Sequence[Any],
        *,
        timeout_ms: int | None = None,
        expect_response: bool = True,
    ) -> memoryview:
        return await self.post_frame(
            node_id, api_key, version, parts, timeout_ms=timeout_ms, expect_response=expect_response
        )

    def post_frame(
        self,
        node_id: int,
        api_key: ApiKey,
        version: int,
        parts: Sequence[Any],
        *,
        timeout_ms: int | None = None,
        expect_response: bool = True,
    ) -> asyncio.Future[memoryview]:
        body = b"".join(bytes(part) for part in parts)
        request, end = decode(request_type(api_key), version, body)
        assert end == len(body), f"{len(body) - end} bytes after the request"
        self._note(node_id, request)
        if expect_response:
            return asyncio.ensure_future(self._answer_frame(node_id, request, version))
        done: asyncio.Future[memoryview] = asyncio.get_running_loop().create_future()
        done.set_result(memoryview(b""))
        return done

    def ready_version(self, node_id: int, api_key: ApiKey, *, max_version: int | None = None) -> int:
        return self._version(api_key, max_version)

    async def version_of(
        self, node_id: int, api_key: ApiKey, *, max_version: int | None = None, min_version: int = 0
    ) -> int:
        version = self._version(api_key, max_version)
        if version < min_version:
            raise UnsupportedVersionError(f"{api_key.name} v{version}, needed is v{min_version}")
        return version

    def _version(self, api_key: ApiKey, max_version: int | None) -> int:
        newest = request_type(api_key).__schema__.max_version
        return min(newest, self.versions.get(api_key, newest), newest if max_version is None else max_version)

    async def connect(self, node_id: int, *, timeout_ms: int | None = None) -> None:
        return

    def is_ready(self, node_id: int) -> bool:
        return True

    def in_flight_count(self, node_id: int) -> int:
        return self._in_flight[node_id]

    def throttle(self, node_id: int, throttle_time_ms: int) -> None:
        self.throttled.append((node_id, throttle_time_ms))

    async def any_node(self) -> int:
        return next(iter(self.metadata.brokers))

    async def controller(self) -> int:
        return self.metadata.controller_id

    async def coordinator(self, kind: CoordinatorKind, key: str, deadline: Deadline | None = None) -> int:
        self._known_coordinators.add((kind, key))
        node_id = self.coordinators.get((kind, key), 0)
        return coordinator_id(node_id) if kind is CoordinatorKind.GROUP else node_id

    def forget_coordinator(self, kind: CoordinatorKind, key: str) -> None:
        self._known_coordinators.discard((kind, key))

    def knows_coordinator(self, kind: CoordinatorKind, key: str) -> bool:
        """Whether it was asked for and not forgotten since."""
        return (kind, key) in self._known_coordinators

    async def refresh_metadata(
        self, topics: Collection[str] | None = (), *, allow_auto_topic_creation: bool = False
    ) -> None:
        self.refreshes.append(topics)
        await asyncio.sleep(0)
        if allow_auto_topic_creation:
            for name in set(topics or ()) - self._topics.keys():
                self.add_topic(name)
        self.publish(None if topics is None else topics or list(self.metadata.topics))

    async def topic_metadata(
        self, topic: str, deadline: Deadline, *, allow_auto_topic_creation: bool = False
    ) -> TopicMetadata:
        if topic not in self.metadata.topics:
            await self.refresh_metadata((topic,), allow_auto_topic_creation=allow_auto_topic_creation)
        found = self.metadata.topics.get(topic)
        if found is None:
            raise UnknownTopicError(f"topic {topic}")
        return found

    async def leader(self, tp: TopicPartition, deadline: Deadline) -> NodeAndEpoch:
        await self.topic_metadata(tp.topic, deadline)
        found = self.metadata.leader(tp)
        if found is None:
            raise error_for(ErrorCode.LEADER_NOT_AVAILABLE, topic=tp.topic, partition=tp.partition)
        return found

    def touch(self, topics: Collection[str]) -> None:
        return

    def follow(self, topics: Collection[str] | None) -> None:
        self.followed = topics

    def on_metadata(self, callback: Callable[[MetadataCache], None]) -> None:
        self._listeners.append(callback)

    def new_backoff(self) -> Backoff:
        return Backoff(self.options.retry_backoff_ms, self.options.retry_backoff_max_ms)

    # --- inside ---

    def _note(self, node_id: int, request: Any) -> None:
        """It has been sent."""
        self.requests.append((node_id, request))
        self._sent.set()

    async def _ask(self, node_id: int, request: Any) -> Any:
        self._note(node_id, request)
        return await self._answered(node_id, request)

    async def _answer_frame(self, node_id: int, request: Any, version: int) -> memoryview:
        # In a buffer of its own that may be written to, as on a connection.
        return memoryview(bytearray(encode(await self._answered(node_id, request), version)))

    async def _answered(self, node_id: int, request: Any) -> Any:
        """As on a connection, a request that nobody waits for any more is in flight until it is answered."""
        self._in_flight[node_id] += 1
        try:
            answer = await self._answer_to(node_id, request)
        except Exception:
            self._in_flight[node_id] -= 1
            raise
        self._in_flight[node_id] -= 1
        return answer

    async def _answer_to(self, node_id: int, request: Any) -> Any:
        api_key: ApiKey = type(request).__schema__.api_key
        await asyncio.sleep(0)
        script = self._scripts[api_key]
        if script:
            answer = script.popleft()
        elif api_key in self._standing:
            answer = self._standing[api_key]
        elif api_key is ApiKey.METADATA:
            answer = self._metadata_response(
                None if request.topics is None else [topic.name for topic in request.topics]
            )
        else:
            raise AssertionError(f"nothing is scripted for {api_key.name}: {request!r}")
        return await self._resolve(answer, node_id, request, response_type(api_key))

    async def _resolve(self, answer: Answer, node_id: int, request: Any, wanted: type[Any]) -> Any:
        while not isinstance(answer, wanted):
            if isinstance(answer, BaseException):
                raise answer
            if inspect.isawaitable(answer):
                answer = await answer
            elif callable(answer):
                answer = answer(node_id, request)
            else:
                raise AssertionError(f"{answer!r} is no {wanted.__name__}")
        return answer

    def _metadata_response(self, topics: Collection[str] | None) -> MetadataResponse:
        names = list(self._topics) if topics is None else list(topics)
        unknown = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return MetadataResponse(
            brokers=[
                MetadataResponseBroker(node_id=node.id, host=node.host, port=node.port)
                for node in self._brokers.values()
            ],
            cluster_id="fake",
            controller_id=next(iter(self._brokers)),
            topics=[self._topics.get(name) or MetadataResponseTopic(name=name, error_code=unknown) for name in names],
        )


def lost(address: str = "broker-0:9092") -> UnreachableError:
    """What a lost connection looks like to the caller."""
    return UnreachableError(address, "it closed the connection")
