"""The group membership when responses get lost, connections break, the coordinator moves, and a member freezes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from barnabas_members import OurMember, poll_until, poll_until_shared
from confluent import make_topic, produce_all
from confluent_kafka import Consumer as ConfluentConsumer
from confluent_kafka import Producer
from confluent_kafka import TopicPartition as ConfluentPartition
from confluent_kafka.admin import AdminClient
from faulty_proxy import FaultyProxy
from server_process import free_port

from barnabas import Admin
from barnabas.client.admin.types import ConfigResource
from barnabas.client.consumer.offsets import OffsetAndMetadata
from barnabas.client.errors import CommitFailedError
from barnabas.testing import Broker
from barnabas.types import TopicPartition

Join = Callable[..., OurMember]
CLASSIC: dict[str, Any] = {"partition_assignment_strategy": ["range"]}
KIP848: dict[str, Any] = {"group_protocol": "consumer"}
both = pytest.mark.parametrize("options", [CLASSIC, KIP848], ids=["classic", "kip848"])
CLASSIC_APIS = ("JoinGroup", "SyncGroup", "Heartbeat", "OffsetCommit", "OffsetFetch", "FindCoordinator")
KIP848_APIS = ("ConsumerGroupHeartbeat", "OffsetCommit", "OffsetFetch", "FindCoordinator")
QUICK = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "100",
}
FAULTS = [(CLASSIC, api) for api in CLASSIC_APIS] + [(KIP848, api) for api in KIP848_APIS]


@pytest.fixture
def proxy(bootstrap: str) -> Iterator[FaultyProxy]:
    """Asked for before `join`, so that members still reach the broker when they leave."""
    with FaultyProxy(bootstrap) as proxy:
        yield proxy


@pytest.mark.parametrize("fault", ["drop_answer", "drop_request"])
@pytest.mark.parametrize(
    ("options", "api"), FAULTS, ids=[f"{'classic' if each is CLASSIC else 'kip848'}-{api}" for each, api in FAULTS]
)
def test_a_lost_message_is_made_up_for(
    proxy: FaultyProxy, join: Join, topic: str, options: dict[str, Any], api: str, fault: str
) -> None:
    getattr(proxy, fault)(api, 2)
    member = join(address=proxy.bootstrap, **options)
    poll_until_shared([member], topic, 4)
    place = TopicPartition(topic, 0)
    member.consumer.commit({place: OffsetAndMetadata(3, "note")})
    assert member.consumer.committed([place]) == {place: OffsetAndMetadata(3, "note")}
    proxy.wait_for(lambda: proxy.requests.count(api) >= 3)
    poll_until_shared([member], topic, 4)
    assert not member.diary.of("lost")


@both
def test_broken_connections_do_not_cause_a_rebalance(
    proxy: FaultyProxy, join: Join, topic: str, options: dict[str, Any]
) -> None:
    members = [join(address=proxy.bootstrap, **options), join(**options)]
    poll_until_shared(members, topic, 4)
    before = [member.generation for member in members], [len(member.diary.entries) for member in members]
    for _ in range(3):
        count = len(proxy.requests)
        proxy.cut_connections()
        poll_until(members, lambda: any("Heartbeat" in name for name in proxy.requests[count:]))  # noqa: B023
    proxy.refuse()
    for _ in range(10):
        members[1].poll(0.05)
    proxy.accept()
    count = len(proxy.requests)
    poll_until(members, lambda: any("Heartbeat" in name for name in proxy.requests[count:]))
    assert ([member.generation for member in members], [len(member.diary.entries) for member in members]) == before


@both
def test_heartbeats_go_on_during_a_long_callback(
    proxy: FaultyProxy, join: Join, topic: str, options: dict[str, Any]
) -> None:
    heartbeat = "Heartbeat" if options is CLASSIC else "ConsumerGroupHeartbeat"
    heard: list[int] = []

    def wait_for_heartbeats() -> None:
        before = proxy.requests.count(heartbeat)
        proxy.wait_for(lambda: proxy.requests.count(heartbeat) >= before + 5)
        heard.append(proxy.requests.count(heartbeat) - before)

    first = join(address=proxy.bootstrap, **options)
    poll_until_shared([first], topic, 4)
    first.diary.on_revocation = wait_for_heartbeats
    second = join(**options)
    poll_until_shared([first, second], topic, 4)
    first.diary.on_revocation = None
    assert heard and not first.diary.of("lost")


@both
def test_a_frozen_member_loses_its_partitions_and_cannot_commit(
    bootstrap: str, proxy: FaultyProxy, join: Join, name: str, topic: str, options: dict[str, Any]
) -> None:
    quick = {"request_timeout_ms": 800, "default_api_timeout_ms": 4000}
    if options is CLASSIC:
        quick["session_timeout_ms"] = 1000
    else:
        with Admin(bootstrap) as admin:
            admin.alter_config(ConfigResource.group(name), {"consumer.session.timeout.ms": 1500})
    frozen = join(address=proxy.bootstrap, **options, **quick)
    poll_until_shared([frozen], topic, 4)
    other = join(**options)
    poll_until_shared([frozen, other], topic, 4)
    place = TopicPartition(*min(frozen.partitions))
    proxy.black_hole()
    proxy.cut_connections()
    poll_until_shared([other], topic, 4)
    other.consumer.commit({place: OffsetAndMetadata(7)})
    proxy.heal()
    with pytest.raises(CommitFailedError, match="not committed"):
        frozen.consumer.commit({place: OffsetAndMetadata(1)})
    assert other.consumer.committed([place])[place] == OffsetAndMetadata(7)
    poll_until_shared([frozen, other], topic, 4)
    assert place.partition in frozen.diary.of("lost")


@both
def test_a_coordinator_that_moves_or_loads(tmp_path: Path, options: dict[str, Any]) -> None:
    with Broker(QUICK, data_dir=tmp_path) as broker:
        judge = AdminClient({"bootstrap.servers": broker.bootstrap})
        make_topic(judge, "t", partitions=4)
        member = OurMember(broker.bootstrap, "g", ["t"], **options)
        try:
            poll_until_shared([member], "t", 4)
            generation, entries = member.generation, len(member.diary.entries)
            heartbeat = "Heartbeat" if options is CLASSIC else "ConsumerGroupHeartbeat"
            for error in ("NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS"):
                broker.fault(heartbeat, error=error, count=2)
                broker.fault("OffsetCommit", error=error, count=2)
                broker.fault("FindCoordinator", error="COORDINATOR_NOT_AVAILABLE", count=1)
                member.consumer.commit({TopicPartition("t", 0): OffsetAndMetadata(1)})
                for _ in range(10):
                    member.poll(0.05)
            assert (member.generation, len(member.diary.entries)) == (generation, entries)
        finally:
            member.close()


@both
def test_a_broker_that_restarts_finds_its_members_again(tmp_path: Path, options: dict[str, Any]) -> None:
    listeners = f"PLAINTEXT://127.0.0.1:{free_port()}"
    broker = Broker(QUICK | {"listeners": listeners}, data_dir=tmp_path).start()
    members: list[OurMember] = []
    try:
        make_topic(AdminClient({"bootstrap.servers": broker.bootstrap}), "t", partitions=4)
        members += [OurMember(broker.bootstrap, "g", ["t"], **options) for _ in range(2)]
        poll_until_shared(members, "t", 4)
        generations = [member.generation for member in members]
        broker.stop()
        for member in members:
            member.poll(0.2)
        broker.start()
        produce_all(broker.bootstrap, "t", [b"%d" % number for number in range(40)])
        poll_until(members, lambda: sum(len(member.records) for member in members) == 40)
        assert [member.generation for member in members] == generations
        assert not any(member.diary.of("lost") for member in members)
    finally:
        for member in members:
            member.close()
        broker.stop()


@both
def test_read_committed_waits_for_offsets_in_an_open_transaction(
    bootstrap: str, join: Join, topic: str, options: dict[str, Any]
) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    producer.init_transactions(30)
    producer.begin_transaction()
    nobody = ConfluentConsumer({"bootstrap.servers": bootstrap, "group.id": topic})
    offsets = [ConfluentPartition(topic, 0, 9)]
    producer.send_offsets_to_transaction(offsets, nobody.consumer_group_metadata(), 30)
    nobody.close()
    place = TopicPartition(topic, 0)
    reader = join(**options, isolation_level="read_committed")
    impatient = join(**options, isolation_level="read_uncommitted")
    assert impatient.consumer.committed([place])[place] is None
    seen: list[Any] = []
    waiting = threading.Thread(target=lambda: seen.append(reader.consumer.committed([place])[place]))
    waiting.start()
    waiting.join(0.3)
    assert waiting.is_alive()
    producer.commit_transaction(30)
    waiting.join(30)
    assert seen == [OffsetAndMetadata(9)]
