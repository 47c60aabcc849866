"""Small text files that record progress: a version, a count, then one entry per line.

Offset checkpoints (recovery-point-offset-checkpoint, log-start-offset-checkpoint, replication-offset-checkpoint,
cleaner-offset-checkpoint) hold `topic partition offset`, the leader epoch checkpoint of a partition `epoch offset`.
Written whole to a temporary file and renamed, so a reader finds the old or the new content, never a part.
"""

from collections.abc import Mapping
from typing import Final

from barnabas.storage.files import Files
from barnabas.types import TopicPartition

RECOVERY_POINT_CHECKPOINT: Final = "recovery-point-offset-checkpoint"
LOG_START_OFFSET_CHECKPOINT: Final = "log-start-offset-checkpoint"
HIGH_WATERMARK_CHECKPOINT: Final = "replication-offset-checkpoint"
CLEANER_OFFSET_CHECKPOINT: Final = "cleaner-offset-checkpoint"
VERSION: Final = 0


class CorruptCheckpointError(Exception):
    """The file is not a checkpoint: cut, zeroed or of an unknown version."""


def encode_checkpoint(lines: list[str]) -> bytes:
    return "".join((f"{VERSION}\n{len(lines)}\n", *(line + "\n" for line in lines))).encode()


def decode_checkpoint(data: bytes) -> list[list[str]]:
    """The fields of each entry. An empty file is an empty checkpoint, as for Kafka."""
    if not data:
        return []
    try:
        version, count, *lines = data.decode("utf-8").splitlines()
        entries = [line.split() for line in lines]
        if int(version) != VERSION or int(count) != len(entries) or not data.endswith(b"\n"):
            raise CorruptCheckpointError(f"version {version}, {count} entries promised, {len(entries)} found")
    except ValueError as error:
        raise CorruptCheckpointError(str(error)) from error
    return entries


def write_offsets(files: Files, path: str, offsets: Mapping[TopicPartition, int]) -> None:
    lines = [f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()]
    files.write_whole(path, encode_checkpoint(lines), sync=True)


def read_offsets(files: Files, path: str) -> dict[TopicPartition, int]:
    """The offsets in the file, none if there is no file. Raises CorruptCheckpointError."""
    try:
        data = files.read(path)
    except FileNotFoundError:
        return {}
    try:
        return {
            TopicPartition(topic, int(partition)): int(offset) for topic, partition, offset in decode_checkpoint(data)
        }
    except ValueError as error:
        raise CorruptCheckpointError(f"{path}: {error}") from error
