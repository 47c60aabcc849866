"""Records of the coordinators' topics as the console consumer prints them."""

from __future__ import annotations

import json

import pytest

from barnabas.cli.kafka.deserializers import DeserializationFailed
from barnabas.cli.kafka.message_formatters import formatter
from barnabas.protocol.messages.group_metadata_record import GroupMetadataKey, GroupMetadataValue
from barnabas.protocol.messages.offset_commit_record import OffsetCommitKey, OffsetCommitValue
from barnabas.protocol.messages.transaction_log_record import TransactionLogKey, TransactionLogValue
from barnabas.protocol.versioned import encode_record_key, encode_versioned
from barnabas.records.codec import ConsumerRecord
from barnabas.records.header import TimestampType

OFFSET = encode_record_key(OffsetCommitKey(group="g", topic="t", partition=3))
GROUP = encode_record_key(GroupMetadataKey(group="ü"))
TRANSACTION = encode_record_key(TransactionLogKey(transactional_id="x"))


def written(name: str, key: bytes | None, value: bytes | None) -> str:
    write = formatter(f"org.apache.kafka.tools.consumer.{name}", {})
    record = ConsumerRecord("topic", 0, 7, 0, TimestampType.CREATE_TIME, key, value, [], None)
    return write(record).decode()


def test_offsets() -> None:
    value = encode_versioned(OffsetCommitValue(offset=5, metadata="m", commit_timestamp=9), 3)
    assert written("OffsetsMessageFormatter", OFFSET, value) == (
        '{"key":{"type":1,"data":{"group":"g","topic":"t","partition":3}},'
        '"value":{"version":3,"data":{"offset":5,"leaderEpoch":-1,"metadata":"m","commitTimestamp":9}}}'
    )
    assert written("OffsetsMessageFormatter", OFFSET, None).endswith(',"value":null}')
    old = b"\0\0" + OFFSET[2:]
    assert json.loads(written("OffsetsMessageFormatter", old, value))["key"]["type"] == 0


def test_groups_and_transactions() -> None:
    value = encode_versioned(GroupMetadataValue(protocol_type="consumer", generation=2), 3)
    told = json.loads(written("GroupMetadataMessageFormatter", GROUP, value))
    assert told["key"] == {"type": 2, "data": {"group": "ü"}}
    assert (told["value"]["version"], told["value"]["data"]["generation"]) == (3, 2)
    value = encode_versioned(TransactionLogValue(producer_id=4), 0)
    told = json.loads(written("TransactionLogMessageFormatter", TRANSACTION, value))
    assert told["key"] == {"type": 0, "data": {"transactionalId": "x"}}
    assert told["value"]["data"]["producerId"] == 4


def test_what_is_not_the_formatters_is_left_out() -> None:
    assert written("OffsetsMessageFormatter", GROUP, None) == ""
    assert written("GroupMetadataMessageFormatter", OFFSET, None) == ""
    assert written("TransactionLogMessageFormatter", GROUP, None) == ""
    assert written("OffsetsMessageFormatter", None, b"v") == ""


@pytest.mark.parametrize(("key", "value"), [(b"\0", None), (OFFSET[:-1], None), (OFFSET, b"\0"), (OFFSET, b"\0\x63")])
def test_what_cannot_be_read(key: bytes, value: bytes | None) -> None:
    with pytest.raises(DeserializationFailed, match="Could not read record at offset 7 due to: "):
        written("OffsetsMessageFormatter", key, value)
