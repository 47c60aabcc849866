"""Records as JSON: every kind, older and newer forms."""

import json
from typing import get_args

import pytest

from barnabas.machines.controller.acls import (
    AclEntry,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
    SecuredType,
)
from barnabas.machines.controller.delegation_tokens import DelegationToken
from barnabas.machines.controller.records import (
    AclsSet,
    BrokerChanged,
    BrokerRemoved,
    ConfigSet,
    FoldersAdopted,
    PartitionsAdded,
    PartitionsChanged,
    ProducerIdsAllocated,
    QuotasSet,
    Record,
    TokenRemoved,
    TokenSet,
    TopicCreated,
    TopicRemoved,
)
from barnabas.metadata.change_codec import UnreadableChangeError, decode_change, encode_change
from barnabas.metadata.image import (
    NO_CONFIG,
    BrokerEndpoint,
    BrokerImage,
    ConfigResource,
    EntityPart,
    PartitionImage,
    ResourceType,
    TopicImage,
)

PATTERN = ResourcePattern(SecuredType.GROUP, "g/1", PatternType.PREFIXED)
TOPIC_ID = bytes(range(16))
PARTITIONS = (PartitionImage(0, (1, 2), (1,), 1, 3, 4, (2,), (1,), True), PartitionImage(1, (1,), ()))
RECORDS: tuple[Record, ...] = (
    TopicCreated(TopicImage("t", TOPIC_ID, PARTITIONS), {"flush.ms": "1"}),
    TopicCreated(TopicImage("u", TOPIC_ID, ()), NO_CONFIG),
    TopicRemoved("t", TOPIC_ID),
    PartitionsAdded("t", PARTITIONS),
    PartitionsChanged("t", PARTITIONS),
    ConfigSet(ConfigResource(ResourceType.BROKER, ""), {"a": "b"}),
    QuotasSet((EntityPart("client-id", None), EntityPart("user", "a")), {"producer_byte_rate": 1.5}),
    QuotasSet((EntityPart("ip", "::1"),), {}),
    ProducerIdsAllocated(1, 1000, 1000),
    FoldersAdopted(),
    BrokerChanged(BrokerImage(1, (BrokerEndpoint("SSL", "::1", 9093, "SSL"),), "r", 7)),
    BrokerChanged(BrokerImage(1, (), directory_ids=("a", "b"), previous_epoch=3, is_fenced=True)),
    BrokerRemoved(3),
    AclsSet(PATTERN, (AclEntry("User:a", "*", Operation.READ, Permission.DENY),)),
    AclsSet(PATTERN, ()),
    TokenSet(DelegationToken("id", "User:a", "User:b", ("User:c",), 1, 2, 3)),
    TokenRemoved("id"),
)


def test_every_record_is_read_as_it_was_written() -> None:
    assert {type(record) for record in RECORDS} == set(get_args(Record)), "a record has no example here"
    decoded = decode_change(encode_change(RECORDS, 3))
    assert decoded == RECORDS
    assert [type(record) for record in decoded] == [type(record) for record in RECORDS]
    resource = decoded[5]
    assert isinstance(resource, ConfigSet) and isinstance(resource.resource.type, ResourceType)


def test_two_controllers_never_write_the_same_entry() -> None:
    assert encode_change(RECORDS, 3) != encode_change(RECORDS, 4)


def test_fields_of_another_version() -> None:
    """An older one lacks fields at the end, a newer one has more."""
    change = json.loads(encode_change([PartitionsChanged("t", PARTITIONS)], 1))
    [[_, _, partitions]] = change["records"]
    partitions[0] += ["a field of tomorrow"]
    partitions[1] = [1, [1], []]
    assert decode_change(json.dumps(change).encode()) == (PartitionsChanged("t", PARTITIONS),)


@pytest.mark.parametrize("data", [b"", b"{}", b'{"records":[["Unheard",1]]}', b'{"records":[["TopicRemoved"]]}'])
def test_what_cannot_be_read_is_not_skipped(data: bytes) -> None:
    with pytest.raises(UnreadableChangeError):
        decode_change(data)
