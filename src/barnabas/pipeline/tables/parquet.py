"""Tables as folders of Parquet files, on any file system that Arrow knows. Runs on executors.

    <folder>/dwd_page_log/00000000000000000017-00002.parquet     records of partition 2 in batch 17
             barnabas_rejected/dim_sku_info-00000000000000000017-00000.parquet
             _barnabas.json                                      which checkpoint writes here

The name of a file is made of batch and partition, and it gets that name when it is complete: a replay of the batch
replaces it. So a folder belongs to one checkpoint, and another one is rejected: its batches have the same numbers.
Files are never changed. They are a log: the current row of a key is the one with the highest `_offset`.
"""

import contextlib
import json
import uuid
from typing import Any, Final

import orjson
import pyarrow
from pyarrow import fs, parquet

from barnabas.pipeline.checkpoint import checkpoint_files
from barnabas.pipeline.tables.columns import column_type, try_log_table
from barnabas.pipeline.tables.rows import DELETED, LINEAGE, TaskRecords, TaskRows, columns_of, read_rows

REJECTED: Final = "barnabas_rejected"
_OWNER: Final = "_barnabas.json"
_UNFINISHED: Final = ".new"
_REJECTED_SCHEMA: Final = pyarrow.schema(
    [
        ("topic", pyarrow.string()),
        ("partition", pyarrow.int32()),
        ("offset", pyarrow.int64()),
        ("key", pyarrow.binary()),
        ("value", pyarrow.binary()),
        ("reason", pyarrow.string()),
    ]
)


class FolderError(ValueError):
    """The folder cannot be used; the text says why and what to do."""


class ParquetTables:
    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._files, self._root = checkpoint_files(folder)

    def prepare(self, owner: str, *, has_begun: bool = False) -> None:
        """On the driver, before a query starts. Raises FolderError if the folder is not the one of this checkpoint.

        `has_begun`: the checkpoint has written here before.
        """
        self._files.create_dir(self._root, recursive=True)
        path = f"{self._root}/{_OWNER}"
        try:
            with self._files.open_input_file(path) as source:
                found = json.loads(source.read())
        except FileNotFoundError:
            if has_begun:
                raise FolderError(
                    f"{self._folder} is not what was written so far: restore it, or delete its progress in the"
                    " checkpoint (a folder under tables/) to write everything again"
                ) from None
            with self._files.open_output_stream(path) as sink:
                sink.write(json.dumps({"owner": owner}).encode())
        else:
            if found.get("owner") != owner:
                raise FolderError(
                    f"{self._folder} has tables of another checkpoint: use another folder, or delete this one first"
                )
        self._remove_unfinished()

    def write(self, task: TaskRecords, query: str, batch: int) -> None:
        """Replaces what an earlier attempt at this batch wrote."""
        table, rejected = try_log_table(task), None
        if table is None:
            found = read_rows(task)
            table = _table(task, found) if found.rows else None
            rejected = _rejected(task, found) if found.rejected else None
        name = f"{batch:020d}-{task.partition:05d}.parquet"
        self._replace(f"{self._root}/{task.topic}", name, table)
        self._replace(f"{self._root}/{REJECTED}", f"{task.topic}-{name}", rejected)

    def _replace(self, folder: str, name: str, table: pyarrow.Table | None) -> None:
        path = f"{folder}/{name}"
        if table is None:
            with contextlib.suppress(FileNotFoundError):
                self._files.delete_file(path)
            return
        self._files.create_dir(folder, recursive=True)
        # Readers skip names that begin with a dot; every attempt has its own name.
        unfinished = f"{folder}/.{name}.{uuid.uuid4().hex}{_UNFINISHED}"
        try:
            with self._files.open_output_stream(unfinished) as sink:
                parquet.write_table(table, sink)
            self._files.move(unfinished, path)
        except BaseException:
            with contextlib.suppress(OSError):
                self._files.delete_file(unfinished)
            raise

    def _remove_unfinished(self) -> None:
        """Left by attempts that were killed. Nobody else writes here: the folder has one owner."""
        for info in self._files.get_file_info(fs.FileSelector(self._root, recursive=True)):
            if info.base_name.startswith(".") and info.base_name.endswith(_UNFINISHED):
                self._files.delete_file(info.path)


def _table(task: TaskRecords, found: TaskRows) -> pyarrow.Table:
    kind = task.spec.kind
    lineage = LINEAGE[kind]
    own = [name for name in columns_of(found.rows) if name not in lineage]
    columns: dict[str, Any] = {}
    for name in (*own, *lineage):
        type_of = column_type(name, kind)
        values = [row.columns.get(name) for row in found.rows]
        columns[name] = pyarrow.array(map(_text, values) if type_of == pyarrow.string() else values, type_of)
    if kind == "dimension":
        columns[DELETED] = pyarrow.array([row.deleted for row in found.rows], pyarrow.bool_())
    return pyarrow.table(columns)


def _text(value: Any) -> str | None:
    """As in JSON, strings without their quotes."""
    return value if value is None or isinstance(value, str) else orjson.dumps(value).decode()


def _rejected(task: TaskRecords, found: TaskRows) -> pyarrow.Table:
    count = len(found.rejected)
    offsets, keys, values, reasons = zip(*found.rejected)
    columns = [[task.topic] * count, [task.partition] * count, offsets, keys, values, reasons]
    return pyarrow.table(
        [pyarrow.array(column, each.type) for column, each in zip(columns, _REJECTED_SCHEMA)], schema=_REJECTED_SCHEMA
    )
