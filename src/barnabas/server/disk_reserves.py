"""Disk space held back in the log directories, for a stop and a start on a full disk (`storage/disk_reserve`)."""

import os
from pathlib import Path

from barnabas.storage.disk_reserve import RESERVE_BYTES, DiskReserve
from barnabas.storage.files import Files
from barnabas.storage.log_directories import LogDirectories
from barnabas.types import NodeId


class DiskReserves:
    """One per log directory that is online. The one beside the metadata file has twice that file's size on top."""

    def __init__(self, node_id: NodeId, directories: LogDirectories, metadata_file: Path | None) -> None:
        self._name = f"barnabas-reserve-{node_id}"
        self._directories = directories
        self._metadata_file = metadata_file
        self._reserves: list[DiskReserve] = []

    @property
    def metadata_folder(self) -> str | None:
        """Of the metadata file, if there is one."""
        return None if self._metadata_file is None else os.path.dirname(os.path.abspath(self._metadata_file))

    def open(self) -> None:
        """Once the directories are locked: which of them can be used is known then."""
        sizes = {each.path: RESERVE_BYTES for each in self._directories.directories if not each.is_offline}
        if self._metadata_file is not None and self._metadata_file.exists():
            folder = os.path.dirname(os.path.abspath(self._metadata_file))
            sizes[folder] = sizes.get(folder, RESERVE_BYTES) + 2 * self._metadata_file.stat().st_size
        self._reserves = [DiskReserve(Files(), os.path.join(path, self._name), size) for path, size in sizes.items()]

    def release_if_short(self) -> None:
        for reserve in self._reserves:
            reserve.release_if_short()

    def fill(self) -> None:
        for reserve in self._reserves:
            reserve.fill()
