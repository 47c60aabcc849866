"""Well-formed requests for what is not there, or not allowed: topics, partitions, names, settings, offsets, epochs."""

from __future__ import annotations

import pytest
from raw_client import RawClient, base_offsets, batch, code, fetch_request

from barnabas.protocol.messages import create_topics as create
from barnabas.protocol.messages import delete_records as deletion
from barnabas.protocol.messages import incremental_alter_configs as alter
from barnabas.protocol.messages import list_offsets as listing
from barnabas.protocol.messages import metadata as meta
from barnabas.protocol.messages import offset_for_leader_epoch as epochs
from barnabas.testing import Broker

# ---- topics that do not exist


def test_an_unknown_topic_is_told_to_everybody_who_asks(client: RawClient) -> None:
    assert code(client.produce("nowhere", batch())) == "UNKNOWN_TOPIC_OR_PARTITION"
    assert code(client.produce(b"\1" * 16, batch())) == "UNKNOWN_TOPIC_ID"
    assert code(client.fetch("nowhere", 0)) == "UNKNOWN_TOPIC_OR_PARTITION"
    assert code(client.fetch(b"\1" * 16, 0)) == "UNKNOWN_TOPIC_ID"
    assert list_offset(client, "nowhere") == "UNKNOWN_TOPIC_OR_PARTITION"
    assert leader_epoch(client, "nowhere") == "UNKNOWN_TOPIC_OR_PARTITION"
    assert delete_before(client, "nowhere", 0) == "UNKNOWN_TOPIC_OR_PARTITION"
    (response,) = client.ask(meta.MetadataRequest(topics=[meta.MetadataRequestTopic(name="nowhere")]), 12).topics
    assert code(response) == "UNKNOWN_TOPIC_OR_PARTITION"


def test_an_unknown_partition_of_a_topic(client: RawClient) -> None:
    topic_id = client.create_topic("one-partition")
    for partition in (1, -1, 2**31 - 1):
        assert code(client.produce("one-partition", batch(), partition=partition)) == "UNKNOWN_TOPIC_OR_PARTITION"
        assert code(client.produce(topic_id, batch(), partition=partition)) == "UNKNOWN_TOPIC_OR_PARTITION"
        assert code(client.fetch(topic_id, 0, partition=partition)) == "UNKNOWN_TOPIC_OR_PARTITION"
    assert code(client.produce(topic_id, batch())) == "NONE"


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "a/b", "../a", "ä", "a" * 250, "a\0", "a\n"])
def test_bad_topic_names_are_refused(client: RawClient, name: str) -> None:
    wanted = create.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    (response,) = client.ask(create.CreateTopicsRequest(topics=[wanted]), 7).topics
    assert code(response) == "INVALID_TOPIC_EXCEPTION"
    request = meta.MetadataRequest(topics=[meta.MetadataRequestTopic(name=name)], allow_auto_topic_creation=True)
    (response,) = client.ask(request, 8).topics
    assert code(response) in ("INVALID_TOPIC_EXCEPTION", "UNKNOWN_TOPIC_OR_PARTITION")
    assert code(client.produce(name, batch())) == "UNKNOWN_TOPIC_OR_PARTITION"


def test_bad_settings_are_refused(client: RawClient, topic: str) -> None:
    for name, value in (
        ("retention.ms", "soon"),
        ("retention", "5"),
        ("cleanup.policy", "burn"),
        ("segment.bytes", "1"),
    ):
        config = [create.CreatableTopicConfig(name=name, value=value)]
        wanted = create.CreatableTopic(name="misconfigured", num_partitions=1, replication_factor=1, configs=config)
        (response,) = client.ask(create.CreateTopicsRequest(topics=[wanted]), 7).topics
        assert code(response) == "INVALID_CONFIG", name
        assert alter_topic(client, topic, name, value) == "INVALID_CONFIG", name
    assert alter_topic(client, "nowhere", "retention.ms", "5") == "UNKNOWN_TOPIC_OR_PARTITION"
    assert "misconfigured" not in [each.name for each in client.metadata().topics]


# ---- offsets and epochs


@pytest.mark.parametrize("offset", [3, -1, -5, 2**63 - 1])
def test_an_offset_out_of_range(client: RawClient, topic: str, offset: int) -> None:
    client.produce(topic, batch(b"a", b"b"))
    assert code(client.fetch(topic, offset)) == "OFFSET_OUT_OF_RANGE"
    assert code(client.fetch(topic, 2)) == "NONE"
    if offset != -1:  # which means "up to the high watermark" there
        assert delete_before(client, topic, offset) == "OFFSET_OUT_OF_RANGE"
    assert delete_before(client, topic, 1) == "NONE"
    assert code(client.fetch(topic, 0)) == "OFFSET_OUT_OF_RANGE"
    assert base_offsets(client.fetch(topic, 1).records) == [0]  # the batch is whole, the client skips what is before


def test_a_leader_epoch_that_is_not_the_present_one(client: RawClient, topic: str) -> None:
    (known,) = [each for each in client.metadata().topics if each.name == topic]
    epoch = known.partitions[0].leader_epoch
    assert code(client.fetch(topic, 0, current_leader_epoch=epoch)) == "NONE"
    assert code(client.fetch(topic, 0, current_leader_epoch=epoch + 1)) == "UNKNOWN_LEADER_EPOCH"
    assert list_offset(client, topic, epoch=epoch) == "NONE"
    assert list_offset(client, topic, epoch=epoch + 1) == "UNKNOWN_LEADER_EPOCH"
    assert leader_epoch(client, topic, epoch) == "NONE"
    assert leader_epoch(client, topic, epoch + 1) == "UNKNOWN_LEADER_EPOCH"


def test_an_old_leader_epoch_is_fenced() -> None:
    """A restart elects again, so a client from before knows an older epoch."""
    broker = Broker()
    with broker, RawClient(broker.bootstrap) as client:
        client.create_topic("t")
        epoch = client.metadata().topics[0].partitions[0].leader_epoch
    with broker, RawClient(broker.bootstrap) as client:
        assert client.metadata().topics[0].partitions[0].leader_epoch == epoch + 1
        assert code(client.fetch("t", 0, current_leader_epoch=epoch)) == "FENCED_LEADER_EPOCH"
        assert list_offset(client, "t", epoch=epoch) == "FENCED_LEADER_EPOCH"
        assert leader_epoch(client, "t", epoch) == "FENCED_LEADER_EPOCH"


def test_special_timestamps_belong_to_versions(client: RawClient, topic: str) -> None:
    assert list_offset(client, topic, timestamp=-3, version=6) == "UNSUPPORTED_VERSION"
    assert list_offset(client, topic, timestamp=-3, version=7) == "NONE"
    assert list_offset(client, topic, timestamp=-6, version=10) == "UNSUPPORTED_VERSION"


def test_a_fetch_session_that_does_not_exist(client: RawClient, topic: str) -> None:
    request = fetch_request(topic, 0)
    request.session_id, request.session_epoch = 12345, 3
    assert code(client.ask(request, 12)) == "FETCH_SESSION_ID_NOT_FOUND"


def test_records_of_a_compacted_topic_cannot_be_deleted(client: RawClient, topic: str) -> None:
    client.create_topic(topic + "-compacted", cleanup_policy="compact")
    assert delete_before(client, topic + "-compacted", 0) == "POLICY_VIOLATION"


def list_offset(client: RawClient, topic: str, *, timestamp: int = -1, epoch: int = -1, version: int = 9) -> str:
    item = listing.ListOffsetsPartition(partition_index=0, timestamp=timestamp, current_leader_epoch=epoch)
    request = listing.ListOffsetsRequest(
        replica_id=-1, topics=[listing.ListOffsetsTopic(name=topic, partitions=[item])]
    )
    return code(client.ask(request, version).topics[0].partitions[0])


def leader_epoch(client: RawClient, topic: str, epoch: int = -1) -> str:
    item = epochs.OffsetForLeaderPartition(partition=0, current_leader_epoch=epoch, leader_epoch=0)
    request = epochs.OffsetForLeaderEpochRequest(topics=[epochs.OffsetForLeaderTopic(topic=topic, partitions=[item])])
    return code(client.ask(request, 4).topics[0].partitions[0])


def delete_before(client: RawClient, topic: str, offset: int) -> str:
    item = deletion.DeleteRecordsPartition(partition_index=0, offset=offset)
    request = deletion.DeleteRecordsRequest(topics=[deletion.DeleteRecordsTopic(name=topic, partitions=[item])])
    return code(client.ask(request, 2).topics[0].partitions[0])


def alter_topic(client: RawClient, topic: str, name: str, value: str) -> str:
    config = alter.AlterableConfig(name=name, config_operation=0, value=value)
    resource = alter.AlterConfigsResource(resource_type=2, resource_name=topic, configs=[config])
    return code(client.ask(alter.IncrementalAlterConfigsRequest(resources=[resource]), 1).responses[0])
