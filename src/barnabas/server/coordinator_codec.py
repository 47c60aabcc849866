"""Between what a coordinator decides and what stands in its log: one batch a decision, Kafka's record formats.

The shard encodes with it before an append, the loader decodes with it on replay. It knows the record types of one topic
and nothing of their meaning. A key of an unknown type was written by a newer release: such a record is skipped, as
Kafka skips it.
"""

import logging
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from barnabas.errors import ProtocolError
from barnabas.machines.coordinator import ApplyContext, CoordinatorMachine, CoordinatorRecord, ProducerIdAndEpoch
from barnabas.protocol.compiler import decode, encode_into, schema_of
from barnabas.protocol.versioned import decode_versioned, encode_versioned, read_int16
from barnabas.records import BatchBuilder, BatchHeader, CompressionType, ControlType, read_end_marker
from barnabas.records.header import (
    CURRENT_MAGIC,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    TRANSACTIONAL_MASK,
    Buffer,
    write_crc,
)
from barnabas.records.reader import decode_records, read_payload
from barnabas.records.varint import encode_varint
from barnabas.types import NO_LEADER_EPOCH, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE

logger = logging.getLogger(__name__)

_INT16 = struct.Struct(">h")
_NULL = encode_varint(-1)
_NO_HEADERS = encode_varint(0)
_ZEROS = bytes(3)
"""Attributes, timestamp delta and offset delta of a batch's first record."""

DecodeKey = Callable[[Buffer, int], tuple[Any, int]]
UNREADABLE = (ProtocolError, KeyError, struct.error, IndexError, UnicodeDecodeError, TypeError)
MOST_OVERHEAD = 30
"""Bytes of a record beside its key and value, at most."""
RECORDS_BETWEEN_STOPS = 100


class AppliedMarker(NamedTuple):
    producer_id: int
    producer_epoch: int
    committed: bool


class CoordinatorCodec:
    def __init__(self, types: Iterable[tuple[type[Any], type[Any]]]) -> None:
        """`types`: classes of key and value, one pair for each type of record."""
        self._types: dict[int, tuple[DecodeKey, type[Any]]] = {}
        for key, value in types:
            record_type = schema_of(key).record_type
            assert record_type is not None, key
            self._types[record_type] = (partial(decode, key, 0), value)

    def read_also(self, aliases: Mapping[int, int]) -> "CoordinatorCodec":
        """Types that are read like another one: offset keys of type 0, say, which Kafka wrote long ago."""
        for alias, record_type in aliases.items():
            self._types[alias] = self._types[record_type]
        return self

    def encode_batches(
        self,
        records: Sequence[CoordinatorRecord],
        timestamp: int,
        max_bytes: int,
        compression: CompressionType = CompressionType.NONE,
        transaction: ProducerIdAndEpoch | None = None,
    ) -> list[tuple[Sequence[CoordinatorRecord], bytearray]]:
        """The records of one decision: one batch, all or nothing.

        Only removals may come in pieces of at most `max_bytes`: many offsets can expire at once, and it does no harm
        if some of them do so later.
        """
        if len(records) == 1 and compression is CompressionType.NONE:
            return [(records, self._encode_single(records[0], timestamp, transaction))]
        divisible = all(record.value is None for record in records)
        batches: list[tuple[Sequence[CoordinatorRecord], bytearray]] = []
        builder = _builder(compression, transaction)
        start = 0
        for number, (key, value, version) in enumerate(records):
            encoded_key = bytes(self._encode_key(key))
            encoded_value = None if value is None else encode_versioned(value, version)
            if divisible and number > start and builder.size_estimate + len(encoded_key) + MOST_OVERHEAD > max_bytes:
                batches.append((records[start:number], builder.build()))
                builder = _builder(compression, transaction)
                start = number
            builder.append(timestamp, encoded_key, encoded_value)
        batches.append((records[start:] if start else records, builder.build()))
        return batches

    def _encode_single(
        self, record: CoordinatorRecord, timestamp: int, transaction: ProducerIdAndEpoch | None
    ) -> bytearray:
        """What `BatchBuilder` makes of one record, in a fraction of the time: most decisions have one, and many."""
        key, value, version = record
        encoded_key = self._encode_key(key)
        key_length = encode_varint(len(encoded_key))
        if value is None:
            encoded_value, value_length = bytearray(), _NULL
        else:
            encoded_value = bytearray(_INT16.pack(version))
            encode_into(encoded_value, value, version)
            value_length = encode_varint(len(encoded_value))
        size = 4 + len(key_length) + len(encoded_key) + len(value_length) + len(encoded_value)
        block = b"".join(
            (encode_varint(size), _ZEROS, key_length, encoded_key, value_length, encoded_value, _NO_HEADERS)
        )
        if transaction is None:
            fields = (0, 0, timestamp, timestamp, NO_PRODUCER_ID, NO_PRODUCER_EPOCH, NO_SEQUENCE, 1)
        else:
            fields = (TRANSACTIONAL_MASK, 0, timestamp, timestamp, *transaction, NO_SEQUENCE, 1)
        length = len(block) + HEADER_SIZE - LOG_OVERHEAD
        batch = bytearray(HEADER.pack(0, length, NO_LEADER_EPOCH, CURRENT_MAGIC, 0, *fields))
        batch += block
        write_crc(batch, 0, len(batch))
        return batch

    def _encode_key(self, key: Any) -> bytearray:
        encoded = bytearray(_INT16.pack(key.__schema__.record_type))
        encode_into(encoded, key, 0)
        return encoded

    def decode_batch(self, batch: Buffer, header: BatchHeader) -> Iterator[tuple[Any, Any | None, ApplyContext]]:
        """What a batch of the log says, in its order. Raises KafkaError if the batch is damaged."""
        producer = (header.producer_id, header.producer_epoch, header.is_transactional)
        for offset, timestamp, key, value, _ in decode_records(header, read_payload(batch, header)):
            decoded = self._decode(key, value, offset)
            if decoded is not None:
                yield *decoded, ApplyContext(offset, timestamp, *producer)

    def apply_batch(self, batch: Buffer, header: BatchHeader, machine: CoordinatorMachine) -> Iterator[None]:
        """The same, into the machine; stops now and then for whoever has other things to do."""
        transactional = header.is_transactional
        apply_encoded = _take_nothing if transactional else machine.apply_encoded
        until_stop = RECORDS_BETWEEN_STOPS
        for offset, timestamp, key, value, _ in decode_records(header, read_payload(batch, header)):
            if key is None or value is None or not apply_encoded(key, value, offset, timestamp):
                decoded = self._decode(key, value, offset)
                if decoded is not None:
                    context = ApplyContext(offset, timestamp, header.producer_id, header.producer_epoch, transactional)
                    machine.apply(*decoded, context)
            until_stop -= 1
            if not until_stop:
                until_stop = RECORDS_BETWEEN_STOPS
                yield

    def _decode(self, key: bytes | None, value: bytes | None, offset: int) -> tuple[Any, Any | None] | None:
        """Key and value; None if they cannot be read, which is in the broker's log then."""
        try:
            decode_key, value_class = self._types[read_int16(key or b"")]
            # The types of the values are as many as fingers on a hand: this is a look-up, after the first time.
            decoded_key = decode_key(key or b"", 2)[0]
            if value is None:
                return decoded_key, None
            decode_value = value_class.__schema__.decoders.get(_INT16.unpack_from(value)[0])
            return decoded_key, decode_value(value, 2)[0] if decode_value else decode_versioned(value_class, value)[0]
        except UNREADABLE as error:
            self._report(key, offset, error)
            return None

    def _report(self, key: bytes | None, offset: int, error: Exception) -> None:
        if isinstance(error, KeyError):
            what = f"is of type {error.args[0]}, which is not known"
        else:
            what = "has no key" if key is None else f"cannot be read ({error})"
        logger.warning("the record at offset %d %s: skipped", offset, what)


def _take_nothing(key: bytes, value: bytes, record_offset: int, timestamp: int) -> bool:
    return False


def read_marker(batch: Buffer, header: BatchHeader) -> AppliedMarker | None:
    """The end of a transaction that a control batch records, if it does."""
    marker = read_end_marker(batch)
    if marker is None:
        return None
    return AppliedMarker(header.producer_id, header.producer_epoch, marker.control_type is ControlType.COMMIT)


def _builder(compression: CompressionType, transaction: ProducerIdAndEpoch | None) -> BatchBuilder:
    if transaction is None:
        return BatchBuilder(compression)
    return BatchBuilder(
        compression,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        transactional=True,
    )
