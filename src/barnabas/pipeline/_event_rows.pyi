from typing import Any

from barnabas.pipeline.events import RepairIsNew

class EventRows:
    row_count: int
    size_bytes: int
    def __init__(self, repair_is_new: RepairIsNew) -> None: ...
    def add(self, value: bytes | None) -> None: ...
    def take(self) -> list[tuple[str, Any, Any]]: ...
