"""How the admin client reads responses that no broker at hand would send."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from fake_cluster import FakeCluster

from barnabas.client.admin.core import AdminCore
from barnabas.client.admin.types import (
    AclOperation,
    ConfigEntry,
    ConfigSource,
    ConfigSynonym,
    GroupState,
    GroupType,
    OffsetAndMetadata,
    ScramUpsertion,
    TransactionState,
)
from barnabas.client.admin.types.acls import authorized_operations
from barnabas.client.admin.types.configs import config_text
from barnabas.client.admin.users import _upsertion
from barnabas.client.options import AdminOptions
from barnabas.clock import ManualClock
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol import ApiKey
from barnabas.protocol.messages import consumer_group_describe, describe_groups, describe_producers, list_transactions
from barnabas.protocol.messages import describe_transactions as described_transactions
from barnabas.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)
from barnabas.types import TopicPartition


def core_of(cluster: FakeCluster, clock: ManualClock | None = None) -> AdminCore:
    options = AdminOptions.of("fake:9092", retry_backoff_ms=1, retry_backoff_max_ms=1, default_api_timeout_ms=5000)
    return AdminCore(cluster, options, clock)  # type: ignore[arg-type]


def classic(**fields: Any) -> describe_groups.DescribeGroupsResponse:
    return describe_groups.DescribeGroupsResponse(groups=[describe_groups.DescribedGroup(group_id="g", **fields)])


def test_an_old_coordinator_knows_classic_groups_only() -> None:
    cluster = FakeCluster()
    cluster.versions[ApiKey.CONSUMER_GROUP_DESCRIBE] = -1
    member = describe_groups.DescribedGroupMember(member_id="m", member_metadata=b"\x00", member_assignment=b"\xff")
    cluster.answer(
        ApiKey.DESCRIBE_GROUPS,
        classic(group_state="Stable", protocol_type="consumer", members=[member]),
        classic(group_state="Stable", protocol_type="connect", members=[member]),
        classic(group_state="Dead"),
    )
    core = core_of(cluster)
    broken = asyncio.run(core.groups.describe_group("g"))
    assert broken.type is GroupType.CLASSIC and broken.coordinator.id == 0
    assert broken.members[0].assignment == frozenset() and broken.members[0].assignment_bytes == b"\xff"
    foreign = asyncio.run(core.groups.describe_group("g"))
    assert foreign.protocol_type == "connect" and foreign.members[0].metadata == b"\x00"
    with pytest.raises(KafkaError, match="GROUP_ID_NOT_FOUND"):
        asyncio.run(core.groups.describe_group("g"))


def test_a_group_that_loads_is_asked_again() -> None:
    cluster = FakeCluster()
    loading = consumer_group_describe.DescribedGroup(group_id="g", error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    other = consumer_group_describe.DescribedGroup(group_id="g", error_code=ErrorCode.GROUP_ID_NOT_FOUND)
    cluster.answer(
        ApiKey.CONSUMER_GROUP_DESCRIBE,
        consumer_group_describe.ConsumerGroupDescribeResponse(groups=[loading]),
        consumer_group_describe.ConsumerGroupDescribeResponse(groups=[other]),
    )
    cluster.answer(ApiKey.DESCRIBE_GROUPS, classic(group_state="Empty"))
    assert asyncio.run(core_of(cluster).groups.describe_group("g")).state is GroupState.EMPTY


def test_offsets_from_a_coordinator_that_takes_one_group_a_request() -> None:
    cluster = FakeCluster()
    cluster.versions[ApiKey.OFFSET_FETCH] = 5

    def answer(node_id: int, request: OffsetFetchRequest) -> OffsetFetchResponse:
        number = int(request.group_id[1:])
        partition = OffsetFetchResponsePartition(partition_index=0, committed_offset=number, metadata=None)
        return OffsetFetchResponse(topics=[OffsetFetchResponseTopic(name="t", partitions=[partition])])

    cluster.always(ApiKey.OFFSET_FETCH, answer)
    found = asyncio.run(core_of(cluster).group_offsets.list_groups_offsets({"g1": None, "g2": [("t", 0)]}))
    assert found == {
        "g1": {("t", 0): OffsetAndMetadata(1, "", -1)},
        "g2": {("t", 0): OffsetAndMetadata(2, "", -1)},
    }
    with pytest.raises(KafkaError, match="UNSUPPORTED_VERSION"):
        asyncio.run(core_of(cluster).group_offsets.list_group_offsets("g1", require_stable=True))


class Hanging:
    """Partition t-0 with an open transaction of producer 7 since long ago, and what the coordinator says of it."""

    def __init__(self, listed: bool, covered: bool | None, age_ms: int = 3_600_000) -> None:
        self.clock = ManualClock()
        cluster = FakeCluster(topics={"t": 1})
        producer = describe_producers.ProducerState(
            producer_id=7,
            producer_epoch=3,
            coordinator_epoch=-1,
            current_txn_start_offset=42,
            last_timestamp=self.clock.now_ms() - age_ms,
        )
        partition = describe_producers.PartitionResponse(active_producers=[producer])
        topic = describe_producers.TopicResponse(name="t", partitions=[partition])
        cluster.always(ApiKey.DESCRIBE_PRODUCERS, describe_producers.DescribeProducersResponse(topics=[topic]))
        found = list_transactions.ListedTransaction(transactional_id="x", producer_id=7, transaction_state="Ongoing")
        listing = list_transactions.ListTransactionsResponse(transaction_states=[found] if listed else [])
        cluster.always(ApiKey.LIST_TRANSACTIONS, listing)
        state = described_transactions.DescribedTransaction(transactional_id="x", transaction_state="Ongoing")
        if covered is None:
            state.error_code = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        elif covered:
            state.topics = [described_transactions.TopicData(topic="t", partitions=[0])]
        described = described_transactions.DescribeTransactionsResponse(transaction_states=[state])
        cluster.always(ApiKey.DESCRIBE_TRANSACTIONS, described)
        self.core = core_of(cluster, self.clock)

    def find(self) -> list[tuple[TopicPartition, int, str | None]]:
        found = asyncio.run(self.core.hanging_transactions.find_hanging_transactions([("t", 0)]))
        return [(each.partition, each.start_offset, each.transactional_id) for each in found]


def test_a_transaction_hangs_if_no_coordinator_will_end_it() -> None:
    assert Hanging(listed=False, covered=None).find() == [(TopicPartition("t", 0), 42, None)]
    assert Hanging(listed=True, covered=False).find() == [(TopicPartition("t", 0), 42, "x")]
    assert Hanging(listed=True, covered=None).find() == [(TopicPartition("t", 0), 42, "x")]


def test_a_transaction_that_is_covered_or_young_does_not_hang() -> None:
    assert Hanging(listed=True, covered=True).find() == []
    assert Hanging(listed=False, covered=None, age_ms=60_000).find() == []


def test_states_by_any_spelling() -> None:
    assert GroupState("preparing_rebalance") is GroupState.PREPARING_REBALANCE
    assert GroupState("new in some release") is GroupState.UNKNOWN
    assert GroupType("consumer") is GroupType.CONSUMER
    assert TransactionState("COMPLETE_ABORT") is TransactionState.COMPLETE_ABORT
    assert TransactionState("CompleteAbort") is TransactionState.COMPLETE_ABORT


def test_operations_in_a_bit_field() -> None:
    assert authorized_operations(-(2**31)) is None
    assert authorized_operations(0b1_0000_1000) == {AclOperation.READ, AclOperation.DESCRIBE}


def test_secrets_are_not_shown() -> None:
    secret = ConfigEntry(
        name="p",
        value="hunter2",
        source=ConfigSource.DEFAULT_CONFIG,
        is_sensitive=True,
        synonyms=(ConfigSynonym(name="p", value="hunter2", source=ConfigSource.DEFAULT_CONFIG),),
    )
    assert "hunter2" not in repr(secret) + repr(secret.synonyms)
    assert "value='1'" in repr(ConfigEntry(name="p", value="1", source=ConfigSource.DEFAULT_CONFIG))
    upsertion = ScramUpsertion(user="u", password="hunter2")
    assert "hunter2" not in repr(upsertion)


def test_a_password_is_salted_and_hashed_here() -> None:
    made = _upsertion(ScramUpsertion(user="user", password="pencil", salt=b"\x01" * 16))
    assert made.salted_password.hex() == "40ec78a4fcd64105c219cc3e2bd8e9add9ae5dd9c4e1d5da44492f1d9a36bfcf"
    assert b"pencil" not in made.salted_password and made.iterations == 4096
    assert (
        _upsertion(ScramUpsertion(user="u", password="p")).salt
        != _upsertion(ScramUpsertion(user="u", password="p")).salt
    )


def test_values_as_kafka_writes_them() -> None:
    assert [config_text(value) for value in (True, 5, "x", ["a", "b"], 0.5)] == ["true", "5", "x", "a,b", "0.5"]
