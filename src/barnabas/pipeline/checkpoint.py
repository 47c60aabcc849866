"""The checkpoint of a query: a folder on any file system that Spark and Arrow know, or a plain path.

    <checkpoint>/offsets/       Spark's own log: one file per planned batch
                 owner.json     {"name": "barnabas-pipeline"}
                 tasks          the maximum number of tasks per batch

The sink records what is written in groups named after the pipeline. Under another name a replayed batch would not find
them and would be written twice, so a checkpoint belongs to one name forever.

A replayed batch must be split into the same tasks as the first time, on any machine, so their number is fixed when a
checkpoint is created. On one machine more tasks than cores gain nothing, and each costs a transaction and two calls of
a worker. A cluster, whose cores come and go, has one task per ODS partition.
"""

import json
from typing import Final

from pyarrow import fs

_OWNER: Final = "owner.json"
_TASKS: Final = "tasks"


class CheckpointError(Exception):
    """The checkpoint belongs to another query; the text says to which one and what to do."""


def checkpoint_files(checkpoint: str) -> tuple[fs.FileSystem, str]:
    """(file system, path of the folder on it)"""
    if "://" not in checkpoint:
        # Not as a URI, in which blanks, # and % are special.
        return fs.LocalFileSystem(), checkpoint.rstrip("/")
    files, root = fs.FileSystem.from_uri(checkpoint)
    return files, root.rstrip("/")


def last_planned_batch(checkpoint: str) -> int:
    """From the offset log, which Spark writes before it starts a batch; -1 if there is none."""
    files, folder = checkpoint_files(checkpoint)
    found = files.get_file_info(fs.FileSelector(f"{folder}/offsets", allow_not_found=True))
    return max((int(info.base_name) for info in found if info.base_name.isdecimal()), default=-1)


def replace_file(files: fs.FileSystem, path: str, content: bytes) -> None:
    """Atomic: a reader sees the old or the new content. One writer at a time."""
    files.create_dir(path.rpartition("/")[0], recursive=True)
    with files.open_output_stream(f"{path}.new") as sink:
        sink.write(content)
    files.move(f"{path}.new", path)


def checkpoint_owner(checkpoint: str) -> str | None:
    """The name of the pipeline; None if the checkpoint is missing, or not of a pipeline."""
    files, root = checkpoint_files(checkpoint)
    path = f"{root}/{_OWNER}"
    return _read(files, path) if _exists(files, path) else None


def checkpoint_exists(checkpoint: str) -> bool:
    files, root = checkpoint_files(checkpoint)
    return _exists(files, root)


def claim_checkpoint(checkpoint: str, name: str) -> None:
    """From now on it belongs to the pipeline of this name. Raises CheckpointError and changes nothing if it cannot."""
    files, root = checkpoint_files(checkpoint)
    path = f"{root}/{_OWNER}"
    if _exists(files, path):
        owner = _read(files, path)
        if owner != name:
            raise CheckpointError(
                f"{checkpoint} is the checkpoint of pipeline {owner}, not of {name}, and its progress is recorded under"
                f" that name; use --name {owner}, or another --checkpoint"
            )
        return
    if _exists(files, f"{root}/metadata") and not _exists(files, f"{root}/routing"):
        raise CheckpointError(
            f"{checkpoint} is the checkpoint of a query that is not a pipeline; use another --checkpoint"
        )
    replace_file(files, path, json.dumps({"name": name}).encode())


def max_tasks(checkpoint: str, master: str, cores: int) -> int | None:
    """None: one task per partition."""
    files, root = checkpoint_files(checkpoint)
    path = f"{root}/{_TASKS}"
    if files.get_file_info(path).type == fs.FileType.File:
        with files.open_input_file(path) as source:
            number = int(source.read())
        return number or None
    has_begun = files.get_file_info(f"{root}/offsets").type == fs.FileType.Directory
    number = cores if master.startswith("local") and not has_begun else 0
    replace_file(files, path, b"%d" % number)
    return number or None


def _read(files: fs.FileSystem, path: str) -> str:
    with files.open_input_file(path) as source:
        name: str = json.loads(source.read())["name"]
    return name


def _exists(files: fs.FileSystem, path: str) -> bool:
    return files.get_file_info(path).type is not fs.FileType.NotFound
