from typing import Any

class RowAppender:
    def __init__(self, columns: dict[str, Any], topic: str | None) -> None: ...
    def append(
        self, topics: dict[str, Any], start: int, stop: int, now_ms: int, spans: dict[Any, list[int]]
    ) -> int: ...
