"""Unused files and folders that will be removed, file.delete.delay.ms after they were renamed.

One queue per log directory. The event loop adds; `delete_due` may run in a thread, since removing a large file takes
long.
"""

import heapq
import logging
import threading

from barnabas.storage.files import Files

logger = logging.getLogger(__name__)


class DeletionQueue:
    def __init__(self, files: Files) -> None:
        self._files = files
        self._lock = threading.Lock()
        self._waiting: list[tuple[int, str, bool]] = []

    def add_file(self, path: str, due_ms: int) -> None:
        with self._lock:
            heapq.heappush(self._waiting, (due_ms, path, False))

    def add_folder(self, path: str, due_ms: int) -> None:
        with self._lock:
            heapq.heappush(self._waiting, (due_ms, path, True))

    def delete_due(self, now_ms: int | None = None) -> int:
        """Removes what is due, or everything if no time is given; what fails is logged and left for the next start."""
        removed = 0
        while True:
            with self._lock:
                if not self._waiting or (now_ms is not None and self._waiting[0][0] > now_ms):
                    return removed
                _, path, is_folder = heapq.heappop(self._waiting)
            try:
                if is_folder:
                    self._files.remove_directory(path)
                else:
                    self._files.remove(path)
                removed += 1
            except OSError as error:
                logger.warning("could not remove %s: %s", path, error)
