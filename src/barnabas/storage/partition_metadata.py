"""The partition.metadata file: which topic id a partition's folder belongs to.

It keeps a deleted and re-created topic's old folder from being taken for the new one.
"""

import os

from barnabas.storage.file_names import PARTITION_METADATA
from barnabas.storage.files import Files
from barnabas.types import NO_TOPIC_ID, TopicId, topic_id_from_text, topic_id_text


class CorruptPartitionMetadataError(Exception):
    """The file exists but has no topic id."""


def write_partition_metadata(files: Files, directory: str, topic_id: TopicId) -> None:
    content = f"version: 0\ntopic_id: {topic_id_text(topic_id)}"
    files.write_whole(os.path.join(directory, PARTITION_METADATA), content.encode(), sync=False)


def read_partition_metadata(files: Files, directory: str) -> TopicId:
    """The topic id, NO_TOPIC_ID if there is no file."""
    try:
        content = files.read(os.path.join(directory, PARTITION_METADATA))
    except FileNotFoundError:
        return NO_TOPIC_ID
    try:
        fields = dict(line.split(": ", 1) for line in content.decode("ascii").splitlines() if line)
        if fields["version"] != "0":
            raise ValueError(f"version {fields['version']} is not known")
        return topic_id_from_text(fields["topic_id"])
    except (ValueError, KeyError) as error:
        raise CorruptPartitionMetadataError(f"{directory}/{PARTITION_METADATA}: {error}") from error
