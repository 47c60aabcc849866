"""Callbacks for changes below a path; shared by the stores that watch their own tree."""

import threading
from collections.abc import Callable, Iterable

from barnabas.metadata.store import is_at_or_below


class Watches:
    """Safe to use from any thread. Callbacks run without the lock, so they may add and end watches."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._callbacks: dict[int, tuple[str, Callable[[], None]]] = {}
        self._next_id = 0

    def add(self, path: str, callback: Callable[[], None]) -> Callable[[], None]:
        with self._lock:
            watch_id = self._next_id
            self._next_id += 1
            self._callbacks[watch_id] = (path, callback)

        def end() -> None:
            with self._lock:
                self._callbacks.pop(watch_id, None)

        return end

    def paths(self) -> list[str]:
        """Those that are watched, each once."""
        with self._lock:
            return sorted({path for path, _ in self._callbacks.values()})

    def fire(self, changed: Iterable[str]) -> None:
        with self._lock:
            entries = list(self._callbacks.values())
        if not entries:
            return
        touched = list(changed)
        for path, callback in entries:
            if any(is_at_or_below(each, path) for each in touched):
                callback()

    def fire_all(self) -> None:
        with self._lock:
            entries = list(self._callbacks.values())
        for _, callback in entries:
            callback()
