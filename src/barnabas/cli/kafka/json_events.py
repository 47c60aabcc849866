"""Events of the verifiable producer and consumer: one line of JSON each, the time and the name first."""

import json
import sys
import threading
import time
from typing import Any


class JsonEvents:
    """Prints from any thread, a line at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def emit(self, name: str, **fields: Any) -> None:
        event = {"timestamp": time.time_ns() // 1_000_000, "name": name, **fields}
        line = json.dumps(event, ensure_ascii=False, separators=(",", ":"))
        with self._lock:
            sys.stdout.write(line + "\n")
            sys.stdout.flush()
