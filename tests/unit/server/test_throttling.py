"""Clients over their quota, over real sockets with the broker's clock in the test's hand (KIP-219, KIP-599)."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from broker_on_loop import append, make_topic, run_broker, until
from raw_client import RawClient, batch, fetch_request, produce_request

from barnabas.clock import ManualClock
from barnabas.machines.controller.commands import AlterQuotas, QuotaChange
from barnabas.metadata.image import EntityPart
from barnabas.net.connection import THROTTLED, Connection
from barnabas.protocol.messages import create_partitions as growing
from barnabas.protocol.messages import create_topics as creating
from barnabas.protocol.messages import delete_topics as deleting
from barnabas.protocol.messages import heartbeat as beating
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.produce import ProduceRequest
from barnabas.server.broker import Broker

OVER = 89  # THROTTLING_QUOTA_EXCEEDED


async def limit(broker: Broker, **values: float | None) -> None:
    entity = (EntityPart("client-id", "raw"),)
    changes = tuple(QuotaChange(*each) for each in values.items())
    (result,) = await broker.controller.alter_quotas(AlterQuotas(((entity, changes),)))
    assert not result.error, result


def only_connection(broker: Broker) -> Connection:
    (connection,) = broker._server.connections
    return connection


def is_muted(broker: Broker) -> bool:
    return bool(only_connection(broker)._stream.pauses & THROTTLED)


async def ask(client: RawClient, request: Any, version: int) -> Any:
    return await asyncio.to_thread(client.ask, request, version)


async def pass_time(broker: Broker, clock: ManualClock, milliseconds: int) -> None:
    """The loop's own timer waits in real time: what is due is called here."""
    clock.advance(milliseconds)
    broker.timers._on_alarm()
    await asyncio.sleep(0)


def test_a_producer_over_its_quota_is_answered_at_once_and_then_not_read(tmp_path: Path) -> None:
    async def scenario(broker: Broker, clock: ManualClock) -> None:
        await make_topic(broker, "t")
        records = batch(b"x" * 3000, timestamp=clock.now_ms())
        with RawClient(broker.address) as client:
            assert (await ask(client, produce_request("t", records), 12)).throttle_time_ms == 0
            await limit(broker, producer_byte_rate=100.0)
            answer = await ask(client, produce_request("t", records), 12)
            assert answer.responses[0].partition_responses[0].error_code == 0
            throttle_ms = answer.throttle_time_ms
            assert 20_000 < throttle_ms < 22_000, "3,000 bytes and some at 100 a second, of which 1,000 are granted"
            assert is_muted(broker)
            client.post(ApiVersionsRequest(), 0)
            await pass_time(broker, clock, throttle_ms - 1)
            assert is_muted(broker)
            await pass_time(broker, clock, 1)
            await until(lambda: not is_muted(broker))
            assert (await asyncio.to_thread(client.answer, ApiVersionsRequest, 0)).error_code == 0

    run_broker(tmp_path, scenario)


@pytest.mark.parametrize("version", [3, 7, 8, 9, 12])
def test_every_version_of_produce_has_the_throttle_time(tmp_path: Path, version: int) -> None:
    async def scenario(broker: Broker, clock: ManualClock) -> None:
        await make_topic(broker, "t")
        await limit(broker, producer_byte_rate=1.0)
        with RawClient(broker.address) as client:
            answer = await ask(client, produce_request("t", batch(timestamp=clock.now_ms())), version)
            assert answer.throttle_time_ms > 0
            assert answer.responses[0].partition_responses[0].base_offset == 0

    run_broker(tmp_path, scenario)


def test_a_producer_without_acks_is_muted_too(tmp_path: Path) -> None:
    async def scenario(broker: Broker, clock: ManualClock) -> None:
        hosted = await make_topic(broker, "t")
        await limit(broker, producer_byte_rate=1.0)
        with RawClient(broker.address) as client:
            client.post(produce_request("t", batch(timestamp=clock.now_ms()), acks=0), 12)
            await until(lambda: hosted.log.log_end_offset == 1)
            assert is_muted(broker)

    run_broker(tmp_path, scenario)


def test_a_consumer_over_its_quota_gets_nothing_and_nothing_is_counted(tmp_path: Path) -> None:
    async def scenario(broker: Broker, clock: ManualClock) -> None:
        hosted = await make_topic(broker, "t")
        for _ in range(20):
            append(broker, hosted, b"x" * 1000)
        await limit(broker, consumer_byte_rate=500.0)
        with RawClient(broker.address) as client:
            first = await ask(client, fetch_request("t", 0), 12)
            assert first.throttle_time_ms == 0
            assert 4000 < len(first.responses[0].partitions[0].records) <= 5000, "no more than what is granted"
            over = await ask(client, fetch_request("t", 4), 12)
            assert (over.error_code, over.responses) == (0, [])
            assert 0 < over.throttle_time_ms < 10_000 and is_muted(broker)
            while over.throttle_time_ms:
                await pass_time(broker, clock, over.throttle_time_ms)
                over = await ask(client, fetch_request("t", 4), 12)
            assert over.responses[0].partitions[0].records
            assert clock.monotonic_ms() <= 20_000

    run_broker(tmp_path, scenario)


def test_a_quota_that_is_removed_ends_with_the_pause(tmp_path: Path) -> None:
    async def scenario(broker: Broker, clock: ManualClock) -> None:
        await make_topic(broker, "t")
        await limit(broker, producer_byte_rate=1.0)
        with RawClient(broker.address) as client:
            records = batch(timestamp=clock.now_ms())
            throttle_ms = (await ask(client, produce_request("t", records), 12)).throttle_time_ms
            await limit(broker, producer_byte_rate=None)
            client.post(produce_request("t", records), 12)
            await pass_time(broker, clock, throttle_ms)
            assert (await asyncio.to_thread(client.answer, ProduceRequest, 12)).throttle_time_ms == 0

    run_broker(tmp_path, scenario)


def test_a_client_may_leave_while_it_is_throttled(tmp_path: Path) -> None:
    async def scenario(broker: Broker, clock: ManualClock) -> None:
        await make_topic(broker, "t")
        await limit(broker, producer_byte_rate=1.0)
        with RawClient(broker.address) as client:
            await ask(client, produce_request("t", batch(timestamp=clock.now_ms())), 12)
            connection = only_connection(broker)
        connection.close()
        assert broker._server.connections == []
        await pass_time(broker, clock, 10_000_000)

    run_broker(tmp_path, scenario)


def test_request_time_is_charged_and_heartbeats_do_not_slip_through(tmp_path: Path) -> None:
    async def scenario(broker: Broker, clock: ManualClock) -> None:
        seconds = iter(range(1, 1_000_000, 100))
        broker.client_quotas.stopwatch = lambda: float(next(seconds))  # every request takes 100 s
        await limit(broker, request_percentage=1.0)
        beat = beating.HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
        with RawClient(broker.address) as client:
            for _ in range(3):
                assert (await ask(client, beat, 4)).throttle_time_ms == 1000, "a window"
                assert is_muted(broker)
                await pass_time(broker, clock, 1000)
                await until(lambda: not is_muted(broker))

    run_broker(tmp_path, scenario)


def create(name: str, partitions: int) -> creating.CreateTopicsRequest:
    topic = creating.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    return creating.CreateTopicsRequest(topics=[topic], timeout_ms=1000)


def test_changes_of_topics_strictly(tmp_path: Path) -> None:
    async def scenario(broker: Broker, clock: ManualClock) -> None:
        await limit(broker, controller_mutation_rate=1.0)
        with RawClient(broker.address) as client:
            burst = await ask(client, create("a", 13), 7)
            assert (burst.topics[0].error_code, burst.throttle_time_ms) == (0, 0), "a burst is not refused"
            for request, version, results in (
                (create("b", 1), 6, "topics"),
                (
                    growing.CreatePartitionsRequest(
                        topics=[growing.CreatePartitionsTopic(name="a", count=14, assignments=None)]
                    ),
                    3,
                    "results",
                ),
                (deleting.DeleteTopicsRequest(topic_names=["a"], timeout_ms=1000), 5, "responses"),
            ):
                refused = await ask(client, request, version)
                assert getattr(refused, results)[0].error_code == OVER
                assert refused.throttle_time_ms == 2000 and is_muted(broker)
                only_connection(broker)._end_throttle()
                only_connection(broker)._throttled_until_ms = 0
            await pass_time(broker, clock, 2000)
            assert (await ask(client, create("b", 1), 6)).topics[0].error_code == 0

    run_broker(tmp_path, scenario)


def test_changes_of_topics_in_older_versions_are_made_and_paid_for(tmp_path: Path) -> None:
    async def scenario(broker: Broker, clock: ManualClock) -> None:
        await limit(broker, controller_mutation_rate=1.0)
        with RawClient(broker.address) as client:
            answer = await ask(client, create("a", 14), 5)
            assert (answer.topics[0].error_code, answer.throttle_time_ms) == (0, 3000)
            assert is_muted(broker)

    run_broker(tmp_path, scenario)


def test_an_address_that_connects_too_often_is_closed_late(tmp_path: Path) -> None:
    async def scenario(broker: Broker, clock: ManualClock) -> None:
        change = AlterQuotas((((EntityPart("ip", "127.0.0.1"),), (QuotaChange("connection_creation_rate", 1.0),)),))
        assert not (await broker.controller.alter_quotas(change))[0].error
        clients = [RawClient(broker.address) for _ in range(11)]
        await until(lambda: len(broker._server.connections) == 10 and len(broker._server._held_back) == 1)
        await pass_time(broker, clock, 1000)
        await until(lambda: not broker._server._held_back)
        assert await asyncio.to_thread(clients[-1].is_closed_by_broker)
        for client in clients:
            client.close()

    run_broker(tmp_path, scenario)
