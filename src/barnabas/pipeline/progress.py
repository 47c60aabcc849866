"""What the batches of a query did, kept beside its checkpoint for `pipeline status`: one JSON line a batch."""

import contextlib
import json
from typing import Any, Final

from barnabas.pipeline.checkpoint import checkpoint_files

_KEPT: Final = 20
_NAME: Final = "progress.json"


class ProgressFile:
    """The last batches. Written by the driver alone."""

    def __init__(self, checkpoint: str) -> None:
        self._files, root = checkpoint_files(checkpoint)
        self._path = f"{root}/{_NAME}"

    def read(self) -> list[dict[str, Any]]:
        with contextlib.suppress(FileNotFoundError, ValueError), self._files.open_input_file(self._path) as source:
            found: list[dict[str, Any]] = json.loads(source.read())
            return found
        return []

    def add(self, batch: dict[str, Any]) -> None:
        kept = [each for each in self.read() if each["batch"] != batch["batch"]]
        content = json.dumps([*kept, batch][-_KEPT:], indent=1)
        with self._files.open_output_stream(f"{self._path}.new") as sink:
            sink.write(content.encode())
        self._files.move(f"{self._path}.new", self._path)


def last_batches(checkpoint: str) -> list[dict[str, Any]]:
    return ProgressFile(checkpoint).read()


def summary(progress: Any) -> dict[str, Any]:
    """The few figures that people ask for, of a StreamingQueryProgress."""
    seconds = progress["durationMs"].get("triggerExecution", 0) / 1000
    rows = progress["numInputRows"]
    return {
        "batch": progress["batchId"],
        "at": progress["timestamp"],
        "rows": rows,
        "seconds": seconds,
        "rows_per_second": rows / seconds if seconds else 0.0,
    }
