"""ClusterClient against our broker, in this process, and through a proxy that misbehaves."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from faulty_proxy import FaultyProxy

from barnabas.client.cluster_client import ClusterClient, CoordinatorKind
from barnabas.client.errors import (
    ClientTimeoutError,
    ClosedError,
    UnknownTopicError,
    UnreachableError,
    UnsupportedVersionError,
)
from barnabas.client.node_connections import coordinator_id
from barnabas.client.options import AdminOptions
from barnabas.client.retry import Deadline
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol import ApiKey, decode, encode
from barnabas.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequest
from barnabas.testing import Broker
from barnabas.types import TopicPartition

QUICK = {"reconnect_backoff_ms": 1, "reconnect_backoff_max_ms": 20, "retry_backoff_ms": 1, "retry_backoff_max_ms": 20}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as started:
        yield started


@pytest.fixture
def proxy(broker: Broker) -> Iterator[FaultyProxy]:
    with FaultyProxy(broker.bootstrap) as started:
        yield started


def run(bootstrap: object, use: Callable[[ClusterClient], Awaitable[None]], **options: object) -> None:
    async def main() -> None:
        cluster = ClusterClient(AdminOptions.of(bootstrap, **{**QUICK, **options}))
        try:
            await use(cluster)
        finally:
            await cluster.close()

    asyncio.run(main(), debug=True)


async def create(cluster: ClusterClient, name: str, partitions: int = 1) -> None:
    wanted = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    response = await cluster.send(await cluster.controller(), CreateTopicsRequest(topics=[wanted], timeout_ms=10_000))
    assert response.topics[0].error_code in (0, ErrorCode.TOPIC_ALREADY_EXISTS)


def connections(cluster: ClusterClient) -> dict[int, int]:
    """Requests in flight by the id of each connection."""
    return {node_id: each.in_flight_count for node_id, each in cluster._connections.connected()}


# --- the straight way ---


def test_it_learns_of_the_cluster_and_sends(broker: Broker) -> None:
    async def use(cluster: ClusterClient) -> None:
        await cluster.start()
        assert list(cluster.metadata.brokers) == [0]
        assert cluster.features["transaction.version"] == 2
        assert await cluster.any_node() == await cluster.controller() == 0
        await create(cluster, "learn", 3)
        topic = await cluster.topic_metadata("learn", Deadline(10_000))
        assert topic.partition_count == 3
        assert cluster.metadata.names[topic.topic_id] == "learn"
        assert (await cluster.leader(TopicPartition("learn", 2), Deadline(10_000))).node_id == 0
        assert connections(cluster) == {0: 0}, "the bootstrap connection goes on as that of the node"

    run(broker.bootstrap, use)


def test_a_frame_goes_out_in_parts_and_its_response_is_a_view(broker: Broker) -> None:
    async def use(cluster: ClusterClient) -> None:
        version = await cluster.version_of(0, ApiKey.LIST_GROUPS, max_version=4)
        assert version == 4
        body = encode(ListGroupsRequest(), version)
        response = await cluster.send_frame(0, ApiKey.LIST_GROUPS, version, [body[:1], memoryview(body)[1:]])
        assert decode(ListGroupsResponse, version, response)[0].error_code == 0

    run(broker.bootstrap, use)


def test_a_frame_whose_order_matters_leaves_on_the_connection_that_is_there_or_not_at_all(proxy: FaultyProxy) -> None:
    async def use(cluster: ClusterClient) -> None:
        await cluster.start()
        version = cluster.ready_version(0, ApiKey.LIST_GROUPS, max_version=4)
        body = encode(ListGroupsRequest(), version)
        response = await cluster.post_frame(0, ApiKey.LIST_GROUPS, version, [body])
        assert decode(ListGroupsResponse, version, response)[0].error_code == 0
        proxy.drop_answer("ListGroups")
        with pytest.raises(UnreachableError):
            await cluster.post_frame(0, ApiKey.LIST_GROUPS, version, [body])
        taken = proxy.connection_count
        with pytest.raises(UnreachableError, match="lost before the request left"):
            cluster.post_frame(0, ApiKey.LIST_GROUPS, version, [body])
        with pytest.raises(UnreachableError):
            cluster.ready_version(0, ApiKey.LIST_GROUPS)
        assert proxy.connection_count == taken and not cluster.is_ready(0), "it connected anew"

    run(proxy.bootstrap, use)


def test_many_requests_on_one_connection_get_responses_in_order(broker: Broker) -> None:
    async def use(cluster: ClusterClient) -> None:
        await cluster.start()
        responses = await asyncio.gather(*(cluster.send(0, ListGroupsRequest()) for _ in range(200)))
        assert [response.error_code for response in responses] == [0] * 200
        assert list(connections(cluster)) == [0]

    run(broker.bootstrap, use)


def test_a_group_coordinator_has_a_connection_of_its_own(broker: Broker) -> None:
    async def use(cluster: ClusterClient) -> None:
        node_id = await cluster.coordinator(CoordinatorKind.GROUP, "g")
        assert node_id == coordinator_id(0)
        response = await cluster.send(node_id, HeartbeatRequest(group_id="g", generation_id=1, member_id="m"))
        assert response.error_code == ErrorCode.UNKNOWN_MEMBER_ID
        assert set(connections(cluster)) == {0, coordinator_id(0)}
        assert await cluster.coordinator(CoordinatorKind.TRANSACTION, "t") == 0

    run(broker.bootstrap, use)


def test_a_coordinator_is_remembered_until_forgotten(proxy: FaultyProxy) -> None:
    async def use(cluster: ClusterClient) -> None:
        await cluster.coordinator(CoordinatorKind.GROUP, "g")
        await cluster.coordinator(CoordinatorKind.GROUP, "g")
        assert proxy.requests.count("FindCoordinator") == 1
        cluster.forget_coordinator(CoordinatorKind.GROUP, "g")
        await cluster.coordinator(CoordinatorKind.GROUP, "g")
        assert proxy.requests.count("FindCoordinator") == 2

    run(proxy.bootstrap, use)


def test_a_coordinator_that_is_not_there_yet_is_waited_for(proxy: FaultyProxy) -> None:
    def unavailable(response: object) -> None:
        response.error_code = int(ErrorCode.COORDINATOR_NOT_AVAILABLE)  # type: ignore[attr-defined]

    async def use(cluster: ClusterClient) -> None:
        proxy.on_answer("FindCoordinator", unavailable, count=3)
        assert await cluster.coordinator(CoordinatorKind.GROUP, "g") == coordinator_id(0)
        assert proxy.requests.count("FindCoordinator") == 4
        proxy.on_answer("FindCoordinator", unavailable, count=None)
        with pytest.raises(KafkaError, match="COORDINATOR_NOT_AVAILABLE"):
            await cluster.coordinator(CoordinatorKind.GROUP, "other", Deadline(100))

    run(proxy.bootstrap, use)


def test_versions_that_the_broker_does_not_speak(broker: Broker) -> None:
    async def use(cluster: ClusterClient) -> None:
        with pytest.raises(UnsupportedVersionError, match="AlterPartition"):
            await cluster.version_of(0, ApiKey.ALTER_PARTITION)
        with pytest.raises(UnsupportedVersionError, match="Heartbeat"):
            await cluster.send(0, HeartbeatRequest(), max_version=2, min_version=3)
        with pytest.raises(UnsupportedVersionError, match="too old"):
            await cluster.send(0, HeartbeatRequest(group_instance_id="i"), max_version=1)

    run(broker.bootstrap, use)


@pytest.mark.parametrize(("given", "words"), [("5", "integer"), (1.5, "integer"), (2**31, "number|range")])
def test_a_value_that_no_version_can_hold_is_not_blamed_on_the_broker(broker: Broker, given: Any, words: str) -> None:
    async def use(cluster: ClusterClient) -> None:
        for max_version in (None, 1):
            with pytest.raises(TypeError, match=words):
                await cluster.send(0, HeartbeatRequest(generation_id=given), max_version=max_version)
        with pytest.raises(TypeError, match="encode"):  # later versions name topics elsewhere, and would not look
            await cluster.send(0, DeleteTopicsRequest(topic_names=[5]), max_version=5)

    run(broker.bootstrap, use)


def test_null_where_only_later_versions_take_it_is_a_matter_of_age(broker: Broker) -> None:
    async def use(cluster: ClusterClient) -> None:
        with pytest.raises(UnsupportedVersionError, match="too old"):
            await cluster.send(0, OffsetFetchRequest(group_id="g", topics=None), max_version=1)

    run(broker.bootstrap, use)


# --- topics ---


def test_a_topic_that_does_not_exist(broker: Broker) -> None:
    async def use(cluster: ClusterClient) -> None:
        await cluster.start()
        with pytest.raises(UnknownTopicError, match="topic nowhere: there is no such topic"):
            await cluster.topic_metadata("nowhere", Deadline(300))
        await create(cluster, "one")
        with pytest.raises(UnknownTopicError, match="one-7: the topic has 1 partitions"):
            await cluster.leader(TopicPartition("one", 7), Deadline(300))
        with pytest.raises(KafkaError, match="INVALID_TOPIC"):
            await cluster.topic_metadata("no/slash", Deadline(60_000))

    run(broker.bootstrap, use)


def test_a_topic_is_created_by_asking_for_it_if_that_is_wished(broker: Broker) -> None:
    async def use(cluster: ClusterClient) -> None:
        await cluster.start()
        with pytest.raises(UnknownTopicError):
            await cluster.topic_metadata("made-by-asking", Deadline(300))
        found = await cluster.topic_metadata("made-by-asking", Deadline(10_000), allow_auto_topic_creation=True)
        assert found.partition_count == 1

    run(broker.bootstrap, use)


def test_a_topic_that_was_deleted_and_made_again_is_another_one(broker: Broker) -> None:
    async def use(cluster: ClusterClient) -> None:
        await create(cluster, "again", 2)
        old = await cluster.topic_metadata("again", Deadline(10_000))
        await cluster.send(0, DeleteTopicsRequest(topics=[DeleteTopicState(name="again")], timeout_ms=10_000))
        await create(cluster, "again", 1)
        await cluster.refresh_metadata()
        new = await cluster.topic_metadata("again", Deadline(10_000))
        assert new.topic_id != old.topic_id
        assert new.partition_count == 1
        assert old.topic_id not in cluster.metadata.names

    run(broker.bootstrap, use)


def test_refreshes_at_the_same_time_share_a_request(proxy: FaultyProxy) -> None:
    async def use(cluster: ClusterClient) -> None:
        await cluster.start()
        before = proxy.requests.count("Metadata")
        await asyncio.gather(*(cluster.refresh_metadata([f"topic-{number}"]) for number in range(50)))
        assert proxy.requests.count("Metadata") - before == 1
        proxy.delay_answer("Metadata", seconds=0.05)
        first = asyncio.create_task(cluster.refresh_metadata())
        await asyncio.to_thread(proxy.wait_for, lambda: proxy.requests.count("Metadata") - before == 2)
        await asyncio.gather(*(cluster.refresh_metadata() for _ in range(50)))
        await first
        assert proxy.requests.count("Metadata") - before == 3, "those who came too late for the first share a second"

    run(proxy.bootstrap, use)


def test_old_metadata_is_asked_for_again_by_itself(proxy: FaultyProxy) -> None:
    async def use(cluster: ClusterClient) -> None:
        seen: list[int] = []
        enough = asyncio.Event()
        cluster.on_metadata(lambda cache: seen.append(cache.version))
        cluster.on_metadata(lambda cache: enough.set() if len(seen) >= 4 else None)
        await cluster.start()
        await asyncio.wait_for(enough.wait(), 20)
        assert seen == sorted(set(seen))

    run(proxy.bootstrap, use, metadata_max_age_ms=20)


def test_following_all_topics_and_then_one(broker: Broker) -> None:
    async def use(cluster: ClusterClient) -> None:
        await create(cluster, "followed")
        await create(cluster, "also-there")
        cluster.follow(None)
        await cluster.refresh_metadata()
        assert {"followed", "also-there"} <= set(cluster.metadata.topics)
        cluster.follow(["followed"])
        await create(cluster, "made-later")
        await cluster.refresh_metadata()
        assert "made-later" not in cluster.metadata.topics

    run(broker.bootstrap, use)


# --- addresses ---


def test_one_good_bootstrap_address_is_enough(broker: Broker) -> None:
    async def use(cluster: ClusterClient) -> None:
        await cluster.start()
        assert list(cluster.metadata.brokers) == [0]

    run(["127.0.0.1:1", "no-such-host.invalid:9092", broker.bootstrap], use)


def test_a_name_with_several_addresses(broker: Broker) -> None:
    async def use(cluster: ClusterClient) -> None:
        await cluster.start()

    # localhost may stand for ::1 as well, where nothing listens.
    run(f"localhost:{broker.port}", use)


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("127.0.0.1:1", "127.0.0.1:1: connection refused"),
        ("[::1]:1", r"\[::1\]:1: "),
        ("no-such-host.invalid:9092", "the name no-such-host.invalid is not known"),
    ],
)
def test_an_address_where_nobody_is(address: str, words: str) -> None:
    async def use(cluster: ClusterClient) -> None:
        with pytest.raises(UnreachableError, match=words) as raised:
            await cluster.start()
        assert raised.value.retriable
        assert raised.value.address == address
        with pytest.raises(UnreachableError):
            await cluster.topic_metadata("t", Deadline(300))

    run(address, use)


def test_all_addresses_are_named_if_none_responds() -> None:
    async def use(cluster: ClusterClient) -> None:
        with pytest.raises(UnreachableError, match="no broker responds") as raised:
            await cluster.start()
        assert "127.0.0.1:1: " in str(raised.value) and "127.0.0.1:2: " in str(raised.value)

    run("127.0.0.1:1,127.0.0.1:2", use)


def test_a_start_that_fails_when_nobody_waits_any_more_is_nobodys_trouble(caplog: pytest.LogCaptureFixture) -> None:
    async def use(cluster: ClusterClient) -> None:
        started = asyncio.ensure_future(cluster.start())
        await asyncio.sleep(0)
        assert cluster._starting is not None
        started.cancel()
        await asyncio.wait([cluster._starting])
        cluster._starting = None
        gc.collect()

    run("127.0.0.1:1", use)
    assert "never retrieved" not in caplog.text


def test_canonical_names(broker: Broker) -> None:
    async def use(cluster: ClusterClient) -> None:
        await cluster.start()

    run(broker.bootstrap, use, client_dns_lookup="resolve_canonical_bootstrap_servers_only")


# --- faults on the way ---


def test_a_response_that_is_lost_with_its_connection(proxy: FaultyProxy) -> None:
    async def use(cluster: ClusterClient) -> None:
        await cluster.start()
        proxy.drop_answer("ListGroups")
        with pytest.raises(UnreachableError) as raised:
            await cluster.send(0, ListGroupsRequest())
        assert raised.value.code == ErrorCode.NETWORK_EXCEPTION
        assert (await cluster.send(0, ListGroupsRequest())).error_code == 0

    run(proxy.bootstrap, use)


def test_all_that_waits_on_a_connection_hears_of_its_end(proxy: FaultyProxy) -> None:
    async def use(cluster: ClusterClient) -> None:
        await cluster.start()
        proxy.swallow_answers("ListGroups")
        responses = await asyncio.gather(
            cluster.send(0, ListGroupsRequest(), timeout_ms=100),
            *(cluster.send(0, ListGroupsRequest()) for _ in range(4)),
            return_exceptions=True,
        )
        assert [type(response) for response in responses] == [ClientTimeoutError] + [UnreachableError] * 4

    run(proxy.bootstrap, use)


def test_a_response_that_never_comes(proxy: FaultyProxy) -> None:
    async def use(cluster: ClusterClient) -> None:
        await cluster.start()
        proxy.swallow_answers("ListGroups")
        with pytest.raises(ClientTimeoutError, match="no response to LIST_GROUPS within 100 ms") as raised:
            await cluster.send(0, ListGroupsRequest(), timeout_ms=100)
        assert isinstance(raised.value, TimeoutError)
        assert (await cluster.send(0, ListGroupsRequest())).error_code == 0, "on a new connection"

    run(proxy.bootstrap, use)


def test_a_response_that_breaks_off(proxy: FaultyProxy) -> None:
    async def use(cluster: ClusterClient) -> None:
        await cluster.start()
        proxy.cut_answer("ListGroups", after_bytes=6)
        with pytest.raises(UnreachableError):
            await cluster.send(0, ListGroupsRequest())

    run(proxy.bootstrap, use)


def test_responses_that_come_one_byte_at_a_time(proxy: FaultyProxy) -> None:
    async def use(cluster: ClusterClient) -> None:
        proxy.slice_answers(1)
        await create(cluster, "slices", 5)
        assert (await cluster.topic_metadata("slices", Deadline(60_000))).partition_count == 5

    run(proxy.bootstrap, use)


def test_a_broker_that_takes_connections_and_says_nothing(proxy: FaultyProxy) -> None:
    async def use(cluster: ClusterClient) -> None:
        proxy.black_hole()
        with pytest.raises(UnreachableError, match="it takes connections, but does not respond"):
            await cluster.start()
        proxy.heal()
        await cluster.start()

    run(proxy.bootstrap, use, request_timeout_ms=100)


def test_a_broker_that_was_away_and_comes_back(proxy: FaultyProxy) -> None:
    async def use(cluster: ClusterClient) -> None:
        await create(cluster, "back")
        await asyncio.to_thread(proxy.refuse)
        with pytest.raises(UnreachableError, match="connection refused"):
            await cluster.send(0, ListGroupsRequest())
        with pytest.raises(UnreachableError):
            await cluster.refresh_metadata()
        await asyncio.to_thread(proxy.accept)
        assert (await cluster.leader(TopicPartition("back", 0), Deadline(20_000))).node_id == 0
        assert (await cluster.send(0, ListGroupsRequest())).error_code == 0

    run(proxy.bootstrap, use)


def test_when_all_known_brokers_are_gone_it_starts_again_from_the_bootstrap_servers(broker: Broker) -> None:
    """KIP-899. The broker's own port is known from the metadata; then it moves behind another one."""

    async def use(cluster: ClusterClient) -> None:
        await cluster.start()
        old = cluster.metadata.brokers[0]
        first.refuse()
        bootstrap_only.accept()
        await cluster.refresh_metadata()
        assert cluster.metadata.brokers[0].port != old.port

    with FaultyProxy(broker.bootstrap) as first, FaultyProxy(broker.bootstrap) as bootstrap_only:
        bootstrap_only.refuse()
        run([first.bootstrap, bootstrap_only.bootstrap], use)


def test_a_coordinator_is_looked_for_where_the_bootstrap_servers_say(broker: Broker) -> None:
    """Nobody else may be asking for metadata: a transaction that only wants to end, for instance."""
    with FaultyProxy(broker.bootstrap) as first, FaultyProxy(broker.bootstrap) as second:

        async def use(cluster: ClusterClient) -> None:
            await cluster.start()
            gone, other = (first, second) if first.requests.count("Metadata") else (second, first)
            await asyncio.to_thread(gone.refuse)
            await cluster.coordinator(CoordinatorKind.TRANSACTION, "t", Deadline(10_000))
            assert "FindCoordinator" in other.requests

        run([first.bootstrap, second.bootstrap], use)


def test_a_coordinator_that_has_moved_since_the_last_metadata(broker: Broker, proxy: FaultyProxy) -> None:
    with FaultyProxy(broker.bootstrap) as elsewhere:

        def moved(response: Any) -> None:
            response.port = int(elsewhere.bootstrap.rpartition(":")[2])

        async def use(cluster: ClusterClient) -> None:
            await cluster.start()
            proxy.on_answer("FindCoordinator", moved)
            node_id = await cluster.coordinator(CoordinatorKind.TRANSACTION, "t")
            await cluster.send(node_id, ListGroupsRequest())
            assert "ListGroups" in elsewhere.requests
            await cluster.refresh_metadata()
            await cluster.send(node_id, ListGroupsRequest())

        run(proxy.bootstrap, use)


def test_without_recovery_it_keeps_to_the_brokers_it_knows(broker: Broker) -> None:
    async def use(cluster: ClusterClient) -> None:
        await cluster.start()
        first.refuse()
        bootstrap_only.accept()
        with pytest.raises(UnreachableError):
            await cluster.refresh_metadata()

    with FaultyProxy(broker.bootstrap) as first, FaultyProxy(broker.bootstrap) as bootstrap_only:
        bootstrap_only.refuse()
        run([first.bootstrap, bootstrap_only.bootstrap], use, metadata_recovery_strategy="none")


def test_a_broker_may_ask_for_a_new_start(proxy: FaultyProxy) -> None:
    """KIP-1102."""

    def start_over(response: object) -> None:
        response.error_code = int(ErrorCode.REBOOTSTRAP_REQUIRED)  # type: ignore[attr-defined]

    async def use(cluster: ClusterClient) -> None:
        await cluster.start()
        before = proxy.requests.count("Metadata")
        proxy.on_answer("Metadata", start_over)
        await cluster.refresh_metadata()
        assert proxy.requests.count("Metadata") - before == 2

    run(proxy.bootstrap, use)


def test_a_throttled_connection_is_left_alone(proxy: FaultyProxy) -> None:
    """KIP-219: the response comes at once and says how long to be quiet."""

    def throttled(response: object) -> None:
        response.throttle_time_ms = 150  # type: ignore[attr-defined]

    async def use(cluster: ClusterClient) -> None:
        await cluster.start()
        loop = asyncio.get_running_loop()
        proxy.on_answer("ListGroups", throttled)
        await cluster.send(0, ListGroupsRequest())
        assert not cluster.is_ready(0)
        started = loop.time()
        await cluster.send(0, ListGroupsRequest())
        assert loop.time() - started >= 0.1
        cluster.throttle(0, 100)
        assert not cluster.is_ready(0)

    run(proxy.bootstrap, use)


def test_an_idle_connection_is_closed_and_opened_again(proxy: FaultyProxy) -> None:
    async def use(cluster: ClusterClient) -> None:
        await cluster.start()
        while connections(cluster):  # noqa: ASYNC110 - the end of a connection has no event of its own
            await asyncio.sleep(0.01)
        assert (await cluster.send(0, ListGroupsRequest())).error_code == 0
        assert proxy.connection_count == 2

    run(proxy.bootstrap, use, connections_max_idle_ms=50)


def test_a_closed_cluster_says_so(broker: Broker) -> None:
    async def use(cluster: ClusterClient) -> None:
        await cluster.start()
        await cluster.close()
        with pytest.raises(ClosedError):
            await cluster.send(0, ListGroupsRequest())
        with pytest.raises(ClosedError):
            await cluster.start()

    run(broker.bootstrap, use)
