"""Kafka's metadata log as a test needs it: records put into a segment or a snapshot of `__cluster_metadata-0`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from barnabas.metadata import kraft_records as kraft
from barnabas.protocol import encode
from barnabas.protocol.primitives import write_unsigned_varint
from barnabas.protocol.schema import Schema
from barnabas.records import BatchBuilder


def framed(message: Any, version: int = 0, *, frame_version: int = 1) -> bytes:
    schema: Schema = message.__schema__
    assert schema.record_type is not None
    out = bytearray()
    for number in (frame_version, schema.record_type, version):
        write_unsigned_varint(out, number)
    return bytes(out) + encode(message, version)


def kraft_batch(base_offset: int, values: Sequence[bytes], *, control: bool = False) -> bytes:
    builder = BatchBuilder(base_offset=base_offset, leader_epoch=1, control=control)
    for value in values:
        builder.append(1_700_000_000_000, None, value)
    return bytes(builder.build())


def write_kraft(
    directory: Path, messages: Sequence[Any], *, base_offset: int = 0, snapshot_end: int | None = None, batch: int = 2
) -> Path:
    """A segment that starts at `base_offset`, or the snapshot of all below `snapshot_end`. Messages or framed bytes."""
    values = [message if isinstance(message, bytes) else framed(message) for message in messages]
    folder = directory / "__cluster_metadata-0"
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{base_offset:020d}.log" if snapshot_end is None else f"{snapshot_end:020d}-0000000001.checkpoint"
    content = b""
    offset = base_offset
    for start in range(0, len(values), batch):
        some = values[start : start + batch]
        content += kraft_batch(offset, some)
        offset += len(some)
    (folder / name).write_bytes(content)
    return folder / name


def topic_records(name: str, topic_id: bytes, partitions: int, node_id: int = 1, leader_epoch: int = 3) -> list[Any]:
    return [
        kraft.TopicRecord(name=name, topic_id=topic_id),
        *(
            framed(
                kraft.PartitionRecord(
                    partition_id=number,
                    topic_id=topic_id,
                    replicas=[node_id],
                    isr=[node_id],
                    leader=node_id,
                    leader_epoch=leader_epoch,
                    partition_epoch=5,
                    directories=[bytes(16)],
                ),
                1,
            )
            for number in range(partitions)
        ),
    ]


def topic_setting(topic: str, name: str, value: str | None) -> kraft.ConfigRecord:
    return kraft.ConfigRecord(resource_type=2, resource_name=topic, name=name, value=value)
