"""Where a query keeps its progress: a folder on whatever file system Spark is given, or a plain path."""

from pyarrow import fs


def checkpoint_files(checkpoint: str) -> tuple[fs.FileSystem, str]:
    """(file system, path of the folder on it)"""
    if "://" not in checkpoint:
        # Not by way of a URI, in which a blank, # and % mean something.
        return fs.LocalFileSystem(), checkpoint.rstrip("/")
    files, root = fs.FileSystem.from_uri(checkpoint)
    return files, root.rstrip("/")


def last_planned_batch(checkpoint: str) -> int:
    """By the checkpoint's own log of offsets, which Spark writes before it starts a batch; -1 if there is none."""
    files, folder = checkpoint_files(checkpoint)
    found = files.get_file_info(fs.FileSelector(f"{folder}/offsets", allow_not_found=True))
    return max((int(info.base_name) for info in found if info.base_name.isdecimal()), default=-1)


def replace_file(files: fs.FileSystem, path: str, content: bytes) -> None:
    """All of the content or what was there before: a reader sees one or the other. One writer at a time."""
    files.create_dir(path.rpartition("/")[0], recursive=True)
    with files.open_output_stream(f"{path}.new") as sink:
        sink.write(content)
    files.move(f"{path}.new", path)
