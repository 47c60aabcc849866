"""Names of the files in a partition's folder and of the folder itself, as Kafka spells them."""

import re
import uuid
from typing import Final

from barnabas.types import TopicPartition

LOG_SUFFIX: Final = ".log"
OFFSET_INDEX_SUFFIX: Final = ".index"
TIME_INDEX_SUFFIX: Final = ".timeindex"
TRANSACTION_INDEX_SUFFIX: Final = ".txnindex"
SNAPSHOT_SUFFIX: Final = ".snapshot"
DELETED_SUFFIX: Final = ".deleted"
CLEANED_SUFFIX: Final = ".cleaned"
SWAP_SUFFIX: Final = ".swap"
DELETED_FOLDER_SUFFIX: Final = "-delete"
STRAY_FOLDER_SUFFIX: Final = "-stray"
FUTURE_FOLDER_SUFFIX: Final = "-future"
LONGEST_FOLDER_NAME: Final = 255
CLUSTER_METADATA_FOLDER: Final = "__cluster_metadata-0"
"""Kafka's own metadata log; it may be among the partitions but is not ours."""
SEGMENT_SUFFIXES: Final = (LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)

LEADER_EPOCH_CHECKPOINT: Final = "leader-epoch-checkpoint"
PARTITION_METADATA: Final = "partition.metadata"

_OFFSET_NAME = re.compile(r"([0-9]{20})(\.[a-z]+)(\.deleted|\.cleaned|\.swap)?")
_PARTITION_FOLDER = re.compile(r"([a-zA-Z0-9._-]{1,249})-(0|[1-9][0-9]*)")
_FUTURE_FOLDER = re.compile(r"(.+-[0-9]+)\.[0-9a-f]{32}-future")
_LONGEST_DELETED_TOPIC = LONGEST_FOLDER_NAME - len(DELETED_FOLDER_SUFFIX) - 33 - 11
"""A folder's name has 255 bytes; a dot and 32 hexadecimal digits and the partition number need their part of it."""


def file_name(offset: int, suffix: str) -> str:
    return f"{offset:020d}{suffix}"


def parse_file_name(name: str) -> tuple[int, str, str] | None:
    """(offset, suffix, state suffix or "") of a file that belongs to a segment, None for any other file."""
    match = _OFFSET_NAME.fullmatch(name)
    if match is None:
        return None
    return int(match[1]), match[2], match[3] or ""


def folder_name(topic_partition: TopicPartition) -> str:
    return f"{topic_partition.topic}-{topic_partition.partition}"


def parse_folder_name(name: str) -> TopicPartition | None:
    match = _PARTITION_FOLDER.fullmatch(name)
    if match is None or match[1] in (".", "..") or is_deleted_folder(name):
        return None
    return TopicPartition(match[1], int(match[2]))


def future_folder_name(topic_partition: TopicPartition) -> str:
    """The folder of a copy that is to replace the log in another log directory. Not shortened, as in Kafka: the topic
    must be found in it again, so one with a very long name cannot be moved."""
    return f"{folder_name(topic_partition)}.{uuid.uuid4().hex}{FUTURE_FOLDER_SUFFIX}"


def parse_future_folder_name(name: str) -> TopicPartition | None:
    match = _FUTURE_FOLDER.fullmatch(name)
    return None if match is None else parse_folder_name(match[1])


def deleted_folder_name(topic_partition: TopicPartition) -> str:
    """A folder waiting to be removed: the random part lets the topic be created again at once."""
    return _unique_folder_name(topic_partition, DELETED_FOLDER_SUFFIX)


def stray_folder_name(topic_partition: TopicPartition) -> str:
    """The folder of an unknown topic, kept for an operator to inspect; never removed by the broker."""
    return _unique_folder_name(topic_partition, STRAY_FOLDER_SUFFIX)


def _unique_folder_name(topic_partition: TopicPartition, suffix: str) -> str:
    topic = topic_partition.topic[:_LONGEST_DELETED_TOPIC]
    return f"{topic}-{topic_partition.partition}.{uuid.uuid4().hex}{suffix}"


def is_stray_folder(name: str) -> bool:
    return re.fullmatch(r".+-[0-9]+\.[0-9a-f]{32}-stray", name) is not None


def is_deleted_folder(name: str) -> bool:
    return re.fullmatch(r".+-[0-9]+\.[0-9a-f]{32}-delete", name) is not None
