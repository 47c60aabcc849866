"""Records of the coordinators' logs and the consumer protocol; the bytes below are written out by hand."""

import pytest

from barnabas.errors import ProtocolError
from barnabas.protocol.messages import consumer_group_records as group
from barnabas.protocol.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from barnabas.protocol.messages.consumer_protocol import TopicPartition as AssignedTopic
from barnabas.protocol.messages.group_metadata_record import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from barnabas.protocol.messages.offset_commit_record import OffsetCommitKey, OffsetCommitValue
from barnabas.protocol.messages.transaction_log_record import TransactionLogKey, TransactionLogValue
from barnabas.protocol.versioned import (
    decode_record_key,
    decode_versioned,
    encode_record_key,
    encode_versioned,
    read_int16,
)


def test_offset_commit_record() -> None:
    key = OffsetCommitKey(group="g", topic="t", partition=3)
    encoded = encode_record_key(key)
    assert encoded == b"\x00\x01" + b"\x00\x01g" + b"\x00\x01t" + b"\x00\x00\x00\x03"
    assert read_int16(encoded) == 1 and decode_record_key(OffsetCommitKey, encoded) == key
    value = OffsetCommitValue(offset=5, leader_epoch=2, metadata="m", commit_timestamp=9)
    encoded = encode_versioned(value, 3)
    assert encoded == b"\x00\x03" + bytes(7) + b"\x05" + b"\x00\x00\x00\x02" + b"\x00\x01m" + bytes(7) + b"\x09"
    assert decode_versioned(OffsetCommitValue, encoded) == (value, 3)


def test_every_version_of_the_values_comes_back() -> None:
    for version in range(5):
        offset = OffsetCommitValue(offset=1, metadata="m", commit_timestamp=2)
        assert decode_versioned(OffsetCommitValue, encode_versioned(offset, version)) == (offset, version)
        members = [MemberMetadata(member_id="a", client_id="c", client_host="/h", subscription=b"s", assignment=b"a")]
        classic = GroupMetadataValue(protocol_type="consumer", generation=4, protocol=None, leader="a", members=members)
        assert decode_versioned(GroupMetadataValue, encode_versioned(classic, version)) == (classic, version)
    for version in range(2):
        transaction = TransactionLogValue(producer_id=1, transaction_partitions=None, transaction_status=2)
        assert decode_versioned(TransactionLogValue, encode_versioned(transaction, version)) == (transaction, version)


def test_transaction_value_v1_carries_the_ids_as_tags() -> None:
    value = TransactionLogValue(producer_id=1, previous_producer_id=2, next_producer_id=3, client_transaction_version=2)
    encoded = encode_versioned(value, 1)
    tags = b"\x03" + b"\x00\x08" + bytes(7) + b"\x02" + b"\x01\x08" + bytes(7) + b"\x03" + b"\x02\x02\x00\x02"
    assert encoded.endswith(tags)
    assert decode_versioned(TransactionLogValue, encoded) == (value, 1)
    with pytest.raises(ValueError, match="previous_producer_id"):
        encode_versioned(value, 0)


def test_a_null_struct_is_marked_otherwise_in_a_tagged_section() -> None:
    member = group.ConsumerGroupMemberMetadataValue(classic_member_metadata=None)
    encoded = encode_versioned(member, 0)
    assert encoded.endswith(b"\x01\x00\x01\x00")
    assert decode_versioned(group.ConsumerGroupMemberMetadataValue, encoded) == (member, 0)
    member.classic_member_metadata = group.ClassicMemberMetadata(session_timeout_ms=5)
    encoded = encode_versioned(member, 0)
    assert encoded.endswith(b"\x01\x00\x07\x01\x00\x00\x00\x05\x01\x00")
    assert decode_versioned(group.ConsumerGroupMemberMetadataValue, encoded) == (member, 0)


@pytest.mark.parametrize(
    ("key", "record_type"),
    [
        (TransactionLogKey(transactional_id="x"), 0),
        (GroupMetadataKey(group="g"), 2),
        (group.ConsumerGroupMetadataKey(group_id="g"), 3),
        (group.ConsumerGroupPartitionMetadataKey(group_id="g"), 4),
        (group.ConsumerGroupMemberMetadataKey(group_id="g", member_id="m"), 5),
        (group.ConsumerGroupTargetAssignmentMetadataKey(group_id="g"), 6),
        (group.ConsumerGroupTargetAssignmentMemberKey(group_id="g", member_id="m"), 7),
        (group.ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id="m"), 8),
        (group.ConsumerGroupRegularExpressionKey(group_id="g", regular_expression="r.*"), 16),
    ],
)
def test_key_types(key: object, record_type: int) -> None:
    encoded = encode_record_key(key)
    assert read_int16(encoded) == record_type
    assert decode_record_key(type(key), encoded) == key


def test_consumer_protocol_of_a_newer_consumer_is_read_as_the_newest_known() -> None:
    subscription = ConsumerProtocolSubscription(topics=["t"], rack_id="r", generation_id=4)
    encoded = encode_versioned(subscription, 3)
    newer = b"\x00\x09" + encoded[2:] + b"more"
    assert decode_versioned(ConsumerProtocolSubscription, newer, newest_known=True) == (subscription, 3)
    with pytest.raises(ProtocolError, match="no version 9"):
        decode_versioned(ConsumerProtocolSubscription, newer)
    assignment = ConsumerProtocolAssignment(assigned_partitions=[AssignedTopic(topic="t", partitions=[0, 2])])
    assert decode_versioned(ConsumerProtocolAssignment, encode_versioned(assignment, 0)) == (assignment, 0)


def test_records_that_are_too_short_or_no_keys() -> None:
    for cut in range(2):
        with pytest.raises(ProtocolError):
            read_int16(b"\x00\x01"[:cut])
    with pytest.raises(ValueError, match="not the key"):
        encode_record_key(ConsumerProtocolAssignment())
