"""The meta.properties file of a log directory: whose it is. One of another node or cluster is rejected.

Version 1 as Kafka writes it (node.id, cluster.id, directory.id); version 0 (broker.id) is read.
"""

import os
import uuid
from typing import Final, NamedTuple

from barnabas.storage.files import Files
from barnabas.types import topic_id_text

META_PROPERTIES: Final = "meta.properties"


class CorruptMetaPropertiesError(Exception):
    """The file exists but lacks something or contradicts itself."""


class MetaProperties(NamedTuple):
    node_id: int
    cluster_id: str
    directory_id: str
    """Empty in a directory from before they had ids."""


def new_directory_id() -> str:
    return topic_id_text(uuid.uuid4().bytes)


def read_meta_properties(files: Files, directory: str) -> MetaProperties | None:
    """The file's content, None if there is no file: the directory is new."""
    path = os.path.join(directory, META_PROPERTIES)
    try:
        content = files.read(path)
    except FileNotFoundError:
        return None
    try:
        fields = _parse(content.decode("utf-8"))
        version = int(fields["version"])
        if version not in (0, 1):
            raise ValueError(f"version {version} is not known")
        node_id = int(fields["node.id"] if "node.id" in fields else fields["broker.id"])
        return MetaProperties(node_id, fields["cluster.id"], fields.get("directory.id", ""))
    except KeyError as error:
        raise CorruptMetaPropertiesError(f"{path}: {error.args[0]} is missing") from error
    except ValueError as error:
        raise CorruptMetaPropertiesError(f"{path}: {error}") from error


def write_meta_properties(files: Files, directory: str, properties: MetaProperties) -> None:
    lines = (
        f"cluster.id={properties.cluster_id}",
        f"directory.id={properties.directory_id}",
        f"node.id={properties.node_id}",
        "version=1",
    )
    content = "#\n" + "".join(line + "\n" for line in lines)
    files.write_whole(os.path.join(directory, META_PROPERTIES), content.encode(), sync=True)


def _parse(text: str) -> dict[str, str]:
    fields = {}
    for line in text.splitlines():
        line = line.strip()
        if line and line[0] not in "#!":
            name, separator, value = line.partition("=")
            if not separator:
                raise ValueError(f"no value in line {line!r}")
            fields[name.strip()] = value.strip().replace("\\", "")
    return fields
