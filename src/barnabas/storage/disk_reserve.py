"""A file that reserves disk space, so that a broker can stop cleanly and start on a disk that is otherwise full.

What a stop and a start write is small (checkpoints, snapshots, the metadata of a session), but without any room neither
would succeed, and a broker that cannot start cannot be read from. The room is given back as soon as it was used: before
producers are served, and after the stop.
"""

import errno
import logging
import os
from typing import Final

from barnabas.storage.files import Files

logger = logging.getLogger(__name__)

RESERVE_BYTES: Final = 1 << 20
STEP_BYTES: Final = 1 << 16
NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT)


class DiskReserve:
    def __init__(self, files: Files, path: str, size: int = RESERVE_BYTES) -> None:
        self._files = files
        self.path = path
        self._wanted = size

    def release_if_short(self) -> None:
        """Frees the reserve if the disk has little else. Errors are logged: there may be enough room without it."""
        try:
            if self._files.free_bytes(os.path.dirname(self.path)) < 2 * self._wanted:
                self._files.remove(self.path)
        except OSError as error:
            logger.warning("releasing %s: %s", self.path, error)

    def fill(self) -> None:
        """Reserves the space again: the full amount, or as much as there is."""
        try:
            if self._files.exists(self.path) and self._files.status(self.path).size >= self._wanted:
                return
            if not self._try_allocate(self._wanted):
                size = STEP_BYTES
                while size < self._wanted and self._try_allocate(size):
                    size += STEP_BYTES
        except OSError as error:
            logger.warning("no room is held back in %s: %s", self.path, error)

    def _try_allocate(self, size: int) -> bool:
        try:
            self._files.allocate(self.path, size)
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            return False
        return True
