"""Where a query keeps its progress: a folder on whatever file system Spark is given, or a plain path."""

from pyarrow import fs


def checkpoint_files(checkpoint: str) -> tuple[fs.FileSystem, str]:
    """(file system, path of the folder on it)"""
    if "://" not in checkpoint:
        # Not by way of a URI, in which a blank, # and % mean something.
        return fs.LocalFileSystem(), checkpoint.rstrip("/")
    files, root = fs.FileSystem.from_uri(checkpoint)
    return files, root.rstrip("/")
