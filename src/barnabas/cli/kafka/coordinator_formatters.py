"""Formatters for the coordinators' topics: a record as one JSON text, as Kafka 4.1's formatters write it.

    {"key":{"type":1,"data":{...}},"value":{"version":4,"data":{...}}}

One after the other without a line feed, as Kafka prints them. A record that is not the formatter's is left out.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from barnabas.cli.dump.message_json import compact, message_tree
from barnabas.cli.kafka.deserializers import DeserializationFailed
from barnabas.errors import ProtocolError
from barnabas.protocol.messages.group_metadata_record import GroupMetadataKey, GroupMetadataValue
from barnabas.protocol.messages.offset_commit_record import OffsetCommitKey, OffsetCommitValue
from barnabas.protocol.messages.transaction_log_record import TransactionLogKey, TransactionLogValue
from barnabas.protocol.versioned import decode_record_key, decode_versioned, read_int16
from barnabas.records.codec import ConsumerRecord

RecordTypes = Mapping[int, tuple[type[Any], type[Any]]]
_OFFSET_COMMIT = (OffsetCommitKey, OffsetCommitValue)
FORMATTERS: Mapping[str, RecordTypes] = MappingProxyType(
    {
        "OffsetsMessageFormatter": {0: _OFFSET_COMMIT, 1: _OFFSET_COMMIT},
        "GroupMetadataMessageFormatter": {2: (GroupMetadataKey, GroupMetadataValue)},
        "TransactionLogMessageFormatter": {0: (TransactionLogKey, TransactionLogValue)},
    }
)


def coordinator_formatter(name: str) -> Callable[[ConsumerRecord], bytes]:
    types = FORMATTERS[name]

    def write(record: ConsumerRecord) -> bytes:
        try:
            return _json(types, record.key, record.value)
        except (ProtocolError, IndexError, ValueError) as error:
            raise DeserializationFailed(f"Could not read record at offset {record.offset} due to: {error}") from None

    return write


def _json(types: RecordTypes, key: bytes | None, value: bytes | None) -> bytes:
    if key is None or (record_type := read_int16(key)) not in types:
        return b""
    key_class, value_class = types[record_type]
    tree: dict[str, Any] = {
        "key": {"type": record_type, "data": message_tree(decode_record_key(key_class, key), 0)},
        "value": None,
    }
    if value is not None:
        message, version = decode_versioned(value_class, value)
        tree["value"] = {"version": version, "data": message_tree(message, version)}
    return compact(tree).encode()
