"""Where a query keeps its progress: a folder on whatever file system Spark is given, or a plain path."""

from pyarrow import fs


def checkpoint_files(checkpoint: str) -> tuple[fs.FileSystem, str]:
    """(file system, path of the folder on it)"""
    files, root = fs.FileSystem.from_uri(checkpoint if "://" in checkpoint else f"file://{checkpoint}")
    return files, root.rstrip("/")
