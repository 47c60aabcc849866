"""Whose checkpoint it is. Asked once, before a pipeline starts.

    <checkpoint>/owner.json     {"name": "barnabas-pipeline"}

What is written already is noted in groups that go by the pipeline's name. With another name a replayed batch would not
find its notes and would be written a second time; so a checkpoint belongs to one name for ever.
"""

import json
from typing import Final

from pyarrow import fs

from barnabas.pipeline.checkpoint import checkpoint_files, replace_file

_NAME: Final = "owner.json"


class CheckpointError(Exception):
    """The checkpoint is not this pipeline's; the text says whose it is and what to do."""


def checkpoint_owner(checkpoint: str) -> str | None:
    """The name of the pipeline; None if the checkpoint is missing, or of no pipeline."""
    files, root = checkpoint_files(checkpoint)
    path = f"{root}/{_NAME}"
    return _read(files, path) if _exists(files, path) else None


def checkpoint_exists(checkpoint: str) -> bool:
    files, root = checkpoint_files(checkpoint)
    return _exists(files, root)


def claim_checkpoint(checkpoint: str, name: str) -> None:
    """Raises CheckpointError and changes nothing, or from now on it belongs to the pipeline of this name."""
    files, root = checkpoint_files(checkpoint)
    path = f"{root}/{_NAME}"
    if _exists(files, path):
        owner = _read(files, path)
        if owner != name:
            raise CheckpointError(
                f"{checkpoint} is the checkpoint of pipeline {owner}, not of {name}: what is written is noted by that"
                f" name; give --name {owner}, or another --checkpoint"
            )
        return
    if _exists(files, f"{root}/metadata") and not _exists(files, f"{root}/routing"):
        raise CheckpointError(
            f"{checkpoint} is the checkpoint of another query, which is no pipeline; give another --checkpoint"
        )
    replace_file(files, path, json.dumps({"name": name}).encode())


def _read(files: fs.FileSystem, path: str) -> str:
    with files.open_input_file(path) as source:
        name: str = json.loads(source.read())["name"]
    return name


def _exists(files: fs.FileSystem, path: str) -> bool:
    return files.get_file_info(path).type is not fs.FileType.NotFound
