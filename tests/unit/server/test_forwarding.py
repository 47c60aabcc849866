"""Requests for the controller that reach another broker: passed on, retried, and answered whatever happens."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from broker_cluster import BrokerCluster

from barnabas.clock import ManualClock
from barnabas.errors import ErrorCode, KafkaError
from barnabas.metadata.image import ClusterImage, Delta
from barnabas.net.deferred import Deferred
from barnabas.net.link import LinkError
from barnabas.protocol.api import ApiKey
from barnabas.protocol.headers import RequestHeader, encode_request
from barnabas.protocol.messages import create_topics as create
from barnabas.protocol.messages import incremental_alter_configs as alter
from barnabas.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest
from barnabas.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from barnabas.protocol.messages.elect_leaders import ElectLeadersRequest
from barnabas.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.protocol.messages.unregister_broker import UnregisterBrokerRequest
from barnabas.server.broker_links import BrokerLinks
from barnabas.server.controller_channel import ControllerChannel
from barnabas.server.envelope import host_of, principal_of
from barnabas.server.forwarding import Forwarding, controller_for_clients
from barnabas.server.request import Principal, RequestContext
from barnabas.types import NodeId


class FakeLinks:
    """Answers are given by the test, in order: an error code, bytes, or an exception."""

    def __init__(self, *answers: object) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[int, EnvelopeRequest]] = []

    def to(self, node_id: int, use: object) -> Any:
        return SimpleNamespace(request=lambda message, timeout_ms: self._answer(node_id, message))

    def _answer(self, node_id: int, message: EnvelopeRequest) -> Deferred[Any]:
        self.asked.append((node_id, message))
        response: Deferred[Any] = Deferred()
        answer = self.answers.pop(0)
        if isinstance(answer, LinkError):
            response.fail(answer)
        elif isinstance(answer, bytes):
            response.complete(EnvelopeResponse(response_data=answer, error_code=0))
        else:
            response.complete(EnvelopeResponse(response_data=None, error_code=answer))
        return response


class Image:
    def __init__(self, controller_id: int) -> None:
        self.now = ClusterImage(controller_id=controller_id)

    def __call__(self) -> ClusterImage:
        return self.now


def forwarding(links: FakeLinks, image: Image, clock: ManualClock | None = None) -> Forwarding:
    return Forwarding(channel(links, image, clock))


def channel(links: FakeLinks, image: Image, clock: ManualClock | None = None) -> ControllerChannel:
    return ControllerChannel(NodeId(1), cast(BrokerLinks, links), image, clock or ManualClock())


def context() -> RequestContext:
    connection = cast(Any, SimpleNamespace(session=None, peer_host="10.1.2.3"))
    return RequestContext(cast(Any, None), connection, RequestHeader(ApiKey.CREATE_TOPICS, 7, 5, "me", 0))


def test_the_envelope_names_the_client_and_the_response_comes_back_as_it_is() -> None:
    links = FakeLinks(b"response")

    async def main() -> bytes | None:
        return await forwarding(links, Image(2)).forward(context(), b"request", 1000)

    assert asyncio.run(main()) == b"\x00\x00\x00\x08response"
    ((node_id, envelope),) = links.asked
    assert (node_id, envelope.request_data) == (2, b"request")
    assert principal_of(envelope) == Principal("User", "ANONYMOUS")
    assert host_of(envelope) == "10.1.2.3"


@pytest.mark.parametrize("fault", [ErrorCode.NOT_CONTROLLER, LinkError("gone", refused=True)])
def test_it_is_sent_again_to_wherever_the_controller_is(fault: object) -> None:
    links, image = FakeLinks(fault, b"ok"), Image(2)

    async def main() -> None:
        passing = channel(links, image)
        task = asyncio.create_task(Forwarding(passing).forward(context(), b"request", 60_000))
        await asyncio.sleep(0)
        assert links.asked
        before, image.now = image.now, ClusterImage(controller_id=3)
        passing.on_delta(Delta.between(before, image.now))
        assert await task is not None

    asyncio.run(main())
    assert [node_id for node_id, _ in links.asked] == [2, 3]


def test_who_becomes_controller_meanwhile_carries_it_out_itself() -> None:
    image = Image(-1)

    async def main() -> None:
        passing = channel(FakeLinks(), image)
        task = asyncio.create_task(Forwarding(passing).forward(context(), b"request", 60_000))
        await asyncio.sleep(0)
        before, image.now = image.now, ClusterImage(controller_id=1)
        passing.on_delta(Delta.between(before, image.now))
        assert await task is None

    asyncio.run(main())


def test_without_a_controller_the_time_runs_out() -> None:
    async def main() -> None:
        clock = ManualClock()
        passing = forwarding(FakeLinks(), Image(-1), clock)
        task = asyncio.create_task(passing.forward(context(), b"request", 5000))
        await asyncio.sleep(0)
        assert not task.done()
        clock.advance(5001)
        with pytest.raises(KafkaError) as caught:
            await task
        assert caught.value.code is ErrorCode.REQUEST_TIMED_OUT

    asyncio.run(main())


def test_a_broker_that_stops_keeps_nobody_waiting() -> None:
    async def main() -> None:
        passing = channel(FakeLinks(), Image(-1))
        task = asyncio.create_task(Forwarding(passing).forward(context(), b"request", 60_000))
        await asyncio.sleep(0)
        passing.stop()
        with pytest.raises(KafkaError) as caught:
            await task
        assert caught.value.code is ErrorCode.NOT_CONTROLLER

    asyncio.run(main())


def test_an_envelope_that_is_refused_is_no_fault_of_the_client(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        with caplog.at_level(logging.CRITICAL), pytest.raises(KafkaError) as caught:
            await forwarding(FakeLinks(ErrorCode.CLUSTER_AUTHORIZATION_FAILED), Image(2)).forward(context(), b"x", 100)
        assert caught.value.code is ErrorCode.UNKNOWN_SERVER_ERROR

    asyncio.run(main())


# ---- whole brokers


def run(directory: Path, scenario: Callable[[BrokerCluster], Awaitable[None]], count: int = 2) -> None:
    async def main() -> None:
        async with BrokerCluster(directory, count) as cluster:
            await scenario(cluster)

    asyncio.run(main())


def topic(name: str, **options: Any) -> create.CreatableTopic:
    return create.CreatableTopic(name=name, num_partitions=1, replication_factor=1, **options)


def test_topics_are_made_changed_and_deleted_through_any_broker(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        (other,) = cluster.others()
        image = cluster.brokers[other].cluster
        for version in range(2, 8):
            request = create.CreateTopicsRequest(topics=[topic(f"t{version}")], timeout_ms=10_000)
            (made,) = (await cluster.ask(other, request, version)).topics
            assert (made.name, made.error_code) == (f"t{version}", ErrorCode.NONE)
        (again,) = (
            await cluster.ask(other, create.CreateTopicsRequest(topics=[topic("t2")], timeout_ms=10_000))
        ).topics
        assert again.error_code == ErrorCode.TOPIC_ALREADY_EXISTS
        trial = create.CreateTopicsRequest(topics=[topic("trial")], timeout_ms=10_000, validate_only=True)
        assert (await cluster.ask(other, trial)).topics[0].error_code == ErrorCode.NONE
        await cluster.until(lambda: len(image.image.topics) == 6)
        more = CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="t2", count=3, assignments=None)])
        assert (await cluster.ask(other, more)).results[0].error_code == ErrorCode.NONE
        await cluster.until(lambda: len(image.image.topics["t2"].partitions) == 3)
        gone = DeleteTopicsRequest(topics=[DeleteTopicState(name="t3")], timeout_ms=10_000)
        assert (await cluster.ask(other, gone)).responses[0].error_code == ErrorCode.NONE
        await cluster.until(lambda: "t3" not in image.image.topics)
        assert "trial" not in image.image.topics

    run(tmp_path, scenario)


def test_the_other_requests_of_the_controller(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        (other,) = cluster.others()
        elected = await cluster.ask(other, ElectLeadersRequest(topic_partitions=None, timeout_ms=10_000))
        assert elected.error_code == ErrorCode.NONE
        listed = await cluster.ask(other, ListPartitionReassignmentsRequest(topics=None, timeout_ms=10_000))
        assert (listed.error_code, listed.topics) == (ErrorCode.NONE, [])
        unknown = await cluster.ask(other, UnregisterBrokerRequest(broker_id=77))
        assert unknown.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED

    run(tmp_path, scenario)


def change(kind: int, name: str, **settings: str) -> alter.AlterConfigsResource:
    return alter.AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[
            alter.AlterableConfig(name=key.replace("_", "."), config_operation=0, value=value)
            for key, value in settings.items()
        ],
    )


TOPIC, BROKER = 2, 4


def test_settings_of_a_broker_are_changed_through_that_broker_only(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        (other,) = cluster.others()
        await cluster.ask(other, create.CreateTopicsRequest(topics=[topic("t")], timeout_ms=10_000))
        wanted = [
            change(BROKER, str(cluster.controller_id), log_cleaner_threads="2"),
            change(BROKER, str(other), log_cleaner_threads="2"),
            change(TOPIC, "t", retention_ms="5000"),
        ]
        response = await cluster.ask(other, alter.IncrementalAlterConfigsRequest(resources=wanted))
        outcome = {(each.resource_type, each.resource_name): each.error_code for each in response.responses}
        assert outcome == {
            (BROKER, str(cluster.controller_id)): ErrorCode.INVALID_REQUEST,
            (BROKER, str(other)): ErrorCode.NONE,
            (TOPIC, "t"): ErrorCode.NONE,
        }
        alone = alter.IncrementalAlterConfigsRequest(resources=wanted[:1])
        assert (await cluster.ask(other, alone)).responses[0].error_code == ErrorCode.INVALID_REQUEST
        valid = alter.IncrementalAlterConfigsRequest(resources=wanted[1:], validate_only=True)
        assert [each.error_code for each in (await cluster.ask(other, valid)).responses] == [0, 0]
        await cluster.until(lambda: cluster.brokers[other].config.log_cleaner_threads == 2)
        assert cluster.brokers[cluster.controller_id].config.log_cleaner_threads == 1
        resource = DescribeConfigsResource(resource_type=BROKER, resource_name=str(cluster.controller_id))
        described = await cluster.ask(other, DescribeConfigsRequest(resources=[resource]))
        assert described.results[0].error_code == ErrorCode.INVALID_REQUEST

    run(tmp_path, scenario)


def test_a_large_request_is_passed_on_too(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        (other,) = cluster.others()
        topics = [topic(f"{index}-" + "x" * 200) for index in range(300)]
        response = await cluster.ask(other, create.CreateTopicsRequest(topics=topics, timeout_ms=30_000))
        assert [each.error_code for each in response.topics] == [ErrorCode.NONE] * 300

    run(tmp_path, scenario)


def envelope(request: Any, version: int, **options: Any) -> EnvelopeRequest:
    frame = encode_request(request, version, 9, "c")[4:]
    principal = b"\x00\x00\x05User\x02x\x00\x00"
    return EnvelopeRequest(request_data=frame, request_principal=principal, client_host_address=bytes(4), **options)


def test_what_the_controller_refuses_in_an_envelope(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        (other,) = cluster.others()
        controller = cluster.controller_id
        good = envelope(create.CreateTopicsRequest(topics=[]), 7)
        assert (await cluster.ask(other, good)).error_code == ErrorCode.NOT_CONTROLLER
        assert (await cluster.ask(controller, good)).error_code == ErrorCode.NONE
        nested = envelope(good, 0)
        assert (await cluster.ask(controller, nested)).error_code == ErrorCode.INVALID_REQUEST
        describe = envelope(DescribeConfigsRequest(resources=[]), 4)
        assert (await cluster.ask(controller, describe)).error_code == ErrorCode.INVALID_REQUEST
        old = envelope(create.CreateTopicsRequest(topics=[]), 7)
        old.request_data = old.request_data[:2] + b"\x00\x63" + old.request_data[4:]
        assert (await cluster.ask(controller, old)).error_code == ErrorCode.UNSUPPORTED_VERSION
        short = envelope(create.CreateTopicsRequest(topics=[]), 7)
        short.request_data = short.request_data[:-3]
        assert (await cluster.ask(controller, short)).error_code == ErrorCode.INVALID_REQUEST
        nobody = envelope(create.CreateTopicsRequest(topics=[]), 7)
        nobody.request_principal = None
        assert (await cluster.ask(controller, nobody)).error_code == ErrorCode.INVALID_REQUEST

    run(tmp_path, scenario)


def test_producer_ids_and_topics_on_demand_from_any_broker(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        ids: list[int] = []
        for node_id in cluster.brokers:
            for _ in range(2):
                response = await cluster.ask(node_id, InitProducerIdRequest(transactional_id=None))
                assert response.error_code == ErrorCode.NONE
                ids.append(response.producer_id)
        assert len(set(ids)) == 4
        (other,) = cluster.others()
        find = FindCoordinatorRequest(key_type=0, coordinator_keys=["g"])
        while (await cluster.ask(other, find)).coordinators[0].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE:
            pass
        assert (await cluster.ask(other, find)).coordinators[0].error_code == ErrorCode.NONE
        await cluster.ask(other, MetadataRequest(topics=[MetadataRequestTopic(name="made")]), 12)
        await cluster.until(lambda: all("made" in each.cluster.image.topics for each in cluster.brokers.values()))

    run(tmp_path, scenario)


def test_a_broker_of_another_epoch_gets_no_producer_ids(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        (other,) = cluster.others()
        epoch = cluster.brokers[other].cluster.broker_epoch
        controller = cluster.controller_id
        for broker_id, broker_epoch, error in (
            (other, epoch, ErrorCode.NONE),
            (other, epoch - 1, ErrorCode.STALE_BROKER_EPOCH),
            (9, epoch, ErrorCode.BROKER_ID_NOT_REGISTERED),
        ):
            request = AllocateProducerIdsRequest(broker_id=broker_id, broker_epoch=broker_epoch)
            assert (await cluster.ask(controller, request)).error_code == error
        request = AllocateProducerIdsRequest(broker_id=other, broker_epoch=epoch)
        assert (await cluster.ask(other, request)).error_code == ErrorCode.NOT_CONTROLLER

    run(tmp_path, scenario)


def test_somebody_is_always_named_as_controller() -> None:
    assert controller_for_clients(ClusterImage(controller_id=2), [1, 2]) == 2
    assert controller_for_clients(ClusterImage(controller_id=2), [3, 1]) == 3, "any broker passes requests on"
    assert controller_for_clients(ClusterImage(), []) == -1
