"""How many tasks a batch has at most: decided when a checkpoint begins, and kept in it.

    <checkpoint>/tasks        a number

A replayed batch must be split into tasks as it was the first time, on whatever machine. On one machine more tasks than
cores gain nothing, and each costs a transaction and two calls of a worker; a cluster, whose cores come and go, has a
task for each ODS partition.
"""

from typing import Final

from pyarrow import fs

from barnabas.pipeline.checkpoint import checkpoint_files, replace_file

_NAME: Final = "tasks"


def max_tasks(checkpoint: str, master: str, cores: int) -> int | None:
    """None: a task for each partition."""
    files, root = checkpoint_files(checkpoint)
    path = f"{root}/{_NAME}"
    if files.get_file_info(path).type == fs.FileType.File:
        with files.open_input_file(path) as source:
            number = int(source.read())
        return number or None
    has_begun = files.get_file_info(f"{root}/offsets").type == fs.FileType.Directory
    number = cores if master.startswith("local") and not has_begun else 0
    replace_file(files, path, b"%d" % number)
    return number or None
