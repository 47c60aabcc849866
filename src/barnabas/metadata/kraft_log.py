"""Reads Kafka's metadata log, the folder `__cluster_metadata-0`: its newest snapshot and the segments after it.

`server/adoption.py` reads it once in the life of a metadata store, in a thread. The folder is only read, never changed.
What cannot be read is reported in `damage`, together with all that came before it: the caller then has to be careful
with records, since a setting that keeps them may be among what is missing.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from barnabas.errors import KafkaError, ProtocolError
from barnabas.machines.controller.acls import (
    Acl,
    AclEntry,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
    SecuredType,
)
from barnabas.machines.controller.delegation_tokens import DelegationToken
from barnabas.machines.sasl.scram_server import ScramCredential
from barnabas.metadata.image import ConfigResource, ResourceType
from barnabas.metadata.kraft_records import (
    NO_LEADER_CHANGE,
    AbortTransactionRecord,
    AccessControlEntryRecord,
    BeginTransactionRecord,
    ConfigRecord,
    DelegationTokenRecord,
    EndTransactionRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UserScramCredentialRecord,
    decode_kraft_record,
)
from barnabas.records.header import BatchHeader
from barnabas.records.reader import iter_records
from barnabas.storage.file_names import CLUSTER_METADATA_FOLDER, LOG_SUFFIX, parse_file_name
from barnabas.storage.files import Files
from barnabas.storage.segment_scan import BrokenChainError, is_intact, walk_batches
from barnabas.types import TopicId

_SNAPSHOT: Final = re.compile(r"([0-9]{20})-([0-9]{10})\.checkpoint")
_NOT_TAKEN_OVER: Final = {14: "client quotas"}
_MECHANISMS: Final = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}


class _DamagedError(Exception):
    """The rest of the log cannot be trusted."""


@dataclass(slots=True)
class KraftPartition:
    replicas: list[int]
    leader_epoch: int


@dataclass(slots=True)
class KraftTopic:
    name: str
    topic_id: TopicId
    partitions: dict[int, KraftPartition] = field(default_factory=dict)


@dataclass(slots=True)
class KraftMetadata:
    topics: dict[TopicId, KraftTopic] = field(default_factory=dict)
    configs: dict[ConfigResource, dict[str, str]] = field(default_factory=dict)
    acls: dict[bytes, Acl] = field(default_factory=dict)
    """By the id that Kafka gave to each."""
    scram: dict[tuple[str, str], ScramCredential] = field(default_factory=dict)
    """By user and mechanism."""
    tokens: dict[str, DelegationToken] = field(default_factory=dict)
    """By id. They are of use if this broker has the secret key that Kafka's had."""
    next_producer_id: int = 0
    not_taken_over: set[str] = field(default_factory=set)
    damage: str | None = None
    """Why this may not be everything, None if it is."""


def read_kraft_metadata(files: Files, log_directory: str) -> KraftMetadata:
    """What the metadata log in a log directory says; never raises for what is wrong with it."""
    metadata = KraftMetadata()
    folder = os.path.join(log_directory, CLUSTER_METADATA_FOLDER)
    replay = _Replay(metadata)
    try:
        for value in _values(files, folder):
            replay.take(value)
    except FileNotFoundError:
        metadata.damage = f"there is no {CLUSTER_METADATA_FOLDER}"
    except (OSError, BrokenChainError, ProtocolError, KafkaError, KeyError, ValueError, _DamagedError) as error:
        metadata.damage = f"{CLUSTER_METADATA_FOLDER} cannot be read to its end: {error}"
    return metadata


def _values(files: Files, folder: str) -> Iterator[bytes]:
    names = sorted(files.names(folder))
    snapshots = [name for name in names if _SNAPSHOT.fullmatch(name)]
    next_offset = 0
    if snapshots:
        next_offset = int(snapshots[-1][:20])
        for _, batch in _intact_batches(files, os.path.join(folder, snapshots[-1])):
            yield from _values_of(batch, 0)
    segments = [name for name in names if name.endswith(LOG_SUFFIX) and parse_file_name(name)]
    for name in segments:
        for header, batch in _intact_batches(files, os.path.join(folder, name)):
            if header.next_offset <= next_offset:
                continue
            if header.base_offset > next_offset:
                raise _DamagedError(f"the records from {next_offset} to {header.base_offset} are missing")
            if not header.is_control:
                yield from _values_of(batch, next_offset)
            next_offset = header.next_offset
    if not next_offset:
        raise _DamagedError("it holds no records")


def _intact_batches(files: Files, path: str) -> Iterator[tuple[BatchHeader, memoryview]]:
    file = files.open(path)
    for position, header, batch in walk_batches(file, 0, file.size()):
        if not is_intact(batch, header):
            raise _DamagedError(f"{path} at byte {position}: the batch does not match its CRC")
        if not header.is_control or path.endswith(LOG_SUFFIX):
            yield header, batch


def _values_of(batch: memoryview, from_offset: int) -> Iterator[bytes]:
    for record in iter_records(batch):
        if record.value is not None and record.offset >= from_offset:
            yield record.value


class _Replay:
    """Applies records in order. Those of a transaction of the controller count once it has ended."""

    def __init__(self, metadata: KraftMetadata) -> None:
        self._metadata = metadata
        self._transaction: list[Any] | None = None

    def take(self, value: bytes) -> None:
        record_type, record = decode_kraft_record(value)
        if record_type in _NOT_TAKEN_OVER:
            self._metadata.not_taken_over.add(_NOT_TAKEN_OVER[record_type])
        match record:
            case None:
                pass
            case BeginTransactionRecord():
                self._transaction = []
            case AbortTransactionRecord():
                self._transaction = None
            case EndTransactionRecord():
                decided, self._transaction = self._transaction or [], None
                for each in decided:
                    self._apply(each)
            case _ if self._transaction is not None:
                self._transaction.append(record)
            case _:
                self._apply(record)

    def _apply(self, record: Any) -> None:
        metadata = self._metadata
        match record:
            case TopicRecord():
                metadata.topics[record.topic_id] = KraftTopic(record.name, record.topic_id)
            case PartitionRecord():
                partitions = metadata.topics[record.topic_id].partitions
                partitions[record.partition_id] = KraftPartition(record.replicas, record.leader_epoch)
            case PartitionChangeRecord():
                partition = metadata.topics[record.topic_id].partitions[record.partition_id]
                if record.replicas is not None:
                    partition.replicas = record.replicas
                partition.leader_epoch += record.leader != NO_LEADER_CHANGE
            case RemoveTopicRecord():
                topic = metadata.topics.pop(record.topic_id)
                metadata.configs.pop(ConfigResource.topic(topic.name), None)
            case ConfigRecord():
                self._set(record)
            case AccessControlEntryRecord():
                self._add_acl(record)
            case RemoveAccessControlEntryRecord():
                del metadata.acls[record.id]
            case UserScramCredentialRecord():
                if record.mechanism in _MECHANISMS:
                    credential = ScramCredential(record.salt, record.stored_key, record.server_key, record.iterations)
                    metadata.scram[record.name, _MECHANISMS[record.mechanism]] = credential
            case RemoveUserScramCredentialRecord():
                metadata.scram.pop((record.name, _MECHANISMS.get(record.mechanism, "")), None)
            case DelegationTokenRecord():
                metadata.tokens[record.token_id] = DelegationToken(
                    token_id=record.token_id,
                    owner=record.owner,
                    requester=record.requester,
                    renewers=tuple(record.renewers),
                    issued_at_ms=record.issue_timestamp,
                    expires_at_ms=record.expiration_timestamp,
                    max_at_ms=record.max_timestamp,
                )
            case RemoveDelegationTokenRecord():
                metadata.tokens.pop(record.token_id, None)
            case ProducerIdsRecord():
                metadata.next_producer_id = max(metadata.next_producer_id, record.next_producer_id)

    def _add_acl(self, record: AccessControlEntryRecord) -> None:
        pattern_type = PatternType(record.pattern_type)
        pattern = ResourcePattern(SecuredType(record.resource_type), record.resource_name, pattern_type)
        operation, permission = Operation(record.operation), Permission(record.permission_type)
        entry = AclEntry(record.principal, record.host, operation, permission)
        self._metadata.acls[record.id] = Acl(pattern, entry)

    def _set(self, record: ConfigRecord) -> None:
        resource = ConfigResource(ResourceType.of(record.resource_type), record.resource_name)
        config = self._metadata.configs.setdefault(resource, {})
        if record.value is None:
            config.pop(record.name, None)
        else:
            config[record.name] = record.value
