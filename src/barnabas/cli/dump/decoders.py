"""Keys and values in words: plain text, or the records of the internal topics as Kafka's dump tool shows them."""

import base64
import binascii
from collections.abc import Callable
from typing import Any, Final

from barnabas.cli.dump.message_json import compact, message_tree
from barnabas.errors import ProtocolError
from barnabas.protocol.compiler import decode, schema_of
from barnabas.protocol.messages import consumer_group_records as consumer_groups
from barnabas.protocol.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from barnabas.protocol.messages.group_metadata_record import GroupMetadataKey, GroupMetadataValue
from barnabas.protocol.messages.offset_commit_record import OffsetCommitKey, OffsetCommitValue
from barnabas.protocol.messages.transaction_log_record import TransactionLogKey, TransactionLogValue
from barnabas.protocol.versioned import decode_record_key, decode_versioned, read_int16
from barnabas.records import Record

Decoder = Callable[[Record], tuple[str | None, str | None]]
"""What to print for (key, payload); None: nothing."""

RecordTypes = dict[int, tuple[type[Any], type[Any]]]
_DAMAGED: Final = (ProtocolError, IndexError, ValueError)
OLD_OFFSET_COMMIT_TYPE: Final = 0
"""Offset keys of type 0, which Kafka wrote long ago, are read like those of type 1."""


def by_class(key_class: str | None, value_class: str | None) -> Decoder:
    """The decoders that Kafka's tool takes as class names. Raises KeyError for a class that is none of these."""
    decode_key, decode_value = _FIELD_DECODERS[_last(key_class)], _FIELD_DECODERS[_last(value_class)]
    return lambda record: (decode_key(record.key), decode_value(record.value))


def offsets_decoder(record: Record) -> tuple[str | None, str | None]:
    """A record of `__consumer_offsets`."""
    return _internal(record, _OFFSETS_TYPES)


def transaction_decoder(record: Record) -> tuple[str | None, str | None]:
    """A record of `__transaction_state`."""
    return _internal(record, _TRANSACTION_TYPES)


def _internal(record: Record, types: RecordTypes) -> tuple[str | None, str | None]:
    try:
        record_type = read_int16(record.key or b"")
        if record_type not in types:
            return f"Unknown record type {record_type} at offset {record.offset}, skipping.", None
        key_class, value_class = types[record_type]
        key = decode_record_key(key_class, record.key or b"")
        shown_key = compact({"type": str(record_type), "data": message_tree(key, 0)})
        if record.value is None:
            return shown_key, "<DELETE>"
        value, version = decode_versioned(value_class, record.value)
    except _DAMAGED as error:
        return f"Error at offset {record.offset}, skipping. {error}", None
    tree = message_tree(value, version)
    if isinstance(value, GroupMetadataValue) and value.protocol_type == "consumer":
        for member in tree["members"]:
            _explain(member, "subscription", ConsumerProtocolSubscription)
            _explain(member, "assignment", ConsumerProtocolAssignment)
    return shown_key, compact({"version": str(version), "data": tree})


def _explain(member: dict[str, Any], field: str, message: type[Any]) -> None:
    """Puts the message in place of its bytes, where they are one."""
    try:
        content = base64.b64decode(member[field])
        version = read_int16(content)
        member[field] = message_tree(decode(message, version, content, 2)[0], version)
    except (*_DAMAGED, binascii.Error, KeyError):
        return


def _text(content: bytes | None) -> str | None:
    return None if content is None else content.decode("utf-8", "replace")


def _number(content: bytes | None) -> str | None:
    return None if content is None else str(int.from_bytes(content, "big", signed=True))


def _hexadecimal(content: bytes | None) -> str | None:
    return None if content is None else content.hex()


def _last(class_name: str | None) -> str:
    return (class_name or "StringDecoder").rpartition(".")[2]


_FIELD_DECODERS: Final[dict[str, Callable[[bytes | None], str | None]]] = {
    "StringDecoder": _text,
    "IntegerDecoder": _number,
    "LongDecoder": _number,
    "DefaultDecoder": _hexadecimal,
}


def _types(*pairs: tuple[type[Any], type[Any]]) -> RecordTypes:
    found: RecordTypes = {}
    for key, value in pairs:
        record_type = schema_of(key).record_type
        assert record_type is not None, key
        found[record_type] = (key, value)
    return found


_OFFSETS_TYPES: Final = {
    OLD_OFFSET_COMMIT_TYPE: (OffsetCommitKey, OffsetCommitValue),
    **_types(
        (OffsetCommitKey, OffsetCommitValue),
        (GroupMetadataKey, GroupMetadataValue),
        (consumer_groups.ConsumerGroupMetadataKey, consumer_groups.ConsumerGroupMetadataValue),
        (consumer_groups.ConsumerGroupPartitionMetadataKey, consumer_groups.ConsumerGroupPartitionMetadataValue),
        (consumer_groups.ConsumerGroupMemberMetadataKey, consumer_groups.ConsumerGroupMemberMetadataValue),
        (
            consumer_groups.ConsumerGroupTargetAssignmentMetadataKey,
            consumer_groups.ConsumerGroupTargetAssignmentMetadataValue,
        ),
        (
            consumer_groups.ConsumerGroupTargetAssignmentMemberKey,
            consumer_groups.ConsumerGroupTargetAssignmentMemberValue,
        ),
        (
            consumer_groups.ConsumerGroupCurrentMemberAssignmentKey,
            consumer_groups.ConsumerGroupCurrentMemberAssignmentValue,
        ),
        (consumer_groups.ConsumerGroupRegularExpressionKey, consumer_groups.ConsumerGroupRegularExpressionValue),
    ),
}
_TRANSACTION_TYPES: Final = _types((TransactionLogKey, TransactionLogValue))
