"""Input that makes for a very long text: the error message is cut to what a string of the protocol can hold."""

from __future__ import annotations

import pytest
from raw_client import RawClient, code

from barnabas.protocol.messages import create_topics as create
from barnabas.protocol.messages import describe_configs as describe
from barnabas.protocol.messages import incremental_alter_configs as alter
from barnabas.protocol.messages import join_group as joining
from barnabas.protocol.messages import sync_group as syncing
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest

LONGEST = 0x7FFF
TOPIC = 2
SET, APPEND = 0, 2


def a_topic(name: str, **configs: str) -> create.CreateTopicsRequest:
    settings = [create.CreatableTopicConfig(name=key, value=value) for key, value in configs.items()]
    wanted = create.CreatableTopic(name=name, num_partitions=1, replication_factor=1, configs=settings)
    return create.CreateTopicsRequest(topics=[wanted], timeout_ms=30_000)


def altered(client: RawClient, topic: str, *changes: tuple[str, int, str]) -> alter.AlterConfigsResourceResponse:
    configs = [alter.AlterableConfig(name=name, config_operation=op, value=value) for name, op, value in changes]
    resource = alter.AlterConfigsResource(resource_type=TOPIC, resource_name=topic, configs=configs)
    (response,) = client.ask(alter.IncrementalAlterConfigsRequest(resources=[resource]), 1).responses
    result: alter.AlterConfigsResourceResponse = response
    return result


@pytest.mark.parametrize("version", [2, 7])
@pytest.mark.parametrize("name", ["a" * 32_760, "ä" * 16_383])
def test_a_very_long_topic_name(client: RawClient, name: str, version: int) -> None:
    (response,) = client.ask(a_topic(name), version).topics
    assert code(response) == "INVALID_TOPIC_EXCEPTION"
    assert response.name == name
    assert LONGEST - 3 <= len(response.error_message.encode()) <= LONGEST
    assert response.error_message.endswith("...")


def test_very_many_unknown_settings(client: RawClient, topic: str) -> None:
    names = [f"no.such.setting.{number:05}" for number in range(2_000)]
    (response,) = client.ask(a_topic("with-unknown-settings", **dict.fromkeys(names, "1")), 7).topics
    assert code(response) == "INVALID_CONFIG"
    changed = altered(client, topic, *((name, SET, "1") for name in names))
    assert code(changed) == "INVALID_CONFIG"
    assert len((changed.error_message or "").encode()) <= LONGEST


def test_a_list_does_not_grow_beyond_what_can_be_described(client: RawClient, topic: str) -> None:
    name = "leader.replication.throttled.replicas"
    part = ",".join(f"{number}:1" for number in range(4_000))
    assert code(altered(client, topic, (name, SET, part))) == "NONE"
    more = altered(client, topic, (name, APPEND, ",".join(f"{number}:2" for number in range(4_000))))
    assert code(more) == "INVALID_CONFIG"
    assert "longer than 32767 bytes" in (more.error_message or "")
    wanted = describe.DescribeConfigsResource(resource_type=TOPIC, resource_name=topic, configuration_keys=[name])
    (response,) = client.ask(describe.DescribeConfigsRequest(resources=[wanted]), 4).results
    assert [config.value for config in response.configs] == [part]


@pytest.mark.parametrize("instance_id", [None, "i" * LONGEST])
def test_a_member_id_made_of_a_very_long_name(client: RawClient, instance_id: str | None) -> None:
    request = joining.JoinGroupRequest(
        group_id=f"group-of-{len(instance_id or '')}",
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        group_instance_id=instance_id,
        protocol_type="consumer",
        protocols=[joining.JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    assert code(client.ask(FindCoordinatorRequest(key=request.group_id), 3)) == "NONE"
    client.client_id = "ä" * (LONGEST // 2)
    response = client.ask(request, 9)
    assert code(response) == ("MEMBER_ID_REQUIRED" if instance_id is None else "NONE")
    assert LONGEST - 2 <= len(response.member_id.encode()) <= LONGEST
    request.member_id = response.member_id
    joined = client.ask(request, 9)
    assert code(joined) == "NONE"
    sync = syncing.SyncGroupRequest(
        group_id=request.group_id,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        group_instance_id=instance_id,
        protocol_type="consumer",
        protocol_name="range",
        assignments=[syncing.SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"")],
    )
    assert code(client.ask(sync, 5)) == "NONE"
