"""`Delivery` without a compiler; the twin of `_fast.pyx`, with the same behaviour.

One is made for each record, so it holds no more than its batch, its place there and its time stamp; whatever takes
longer is in `delivery_calls`, which both twins share.
"""

from collections.abc import Callable, Generator
from typing import Any

from barnabas.client.producer import delivery_calls as calls
from barnabas.client.producer.record_metadata import RecordMetadata
from barnabas.errors import KafkaError


class Delivery:
    """What becomes of a record: `result()`, `await`, or a callback. Shares the completion of its batch."""

    __slots__ = ("batch", "index", "timestamp")

    def __init__(self, batch: Any, index: int, timestamp: int) -> None:
        self.batch = batch
        self.index = index
        self.timestamp = timestamp

    def done(self) -> bool:
        """Whether the record was acknowledged or has failed for good."""
        return calls.done(self)

    def result(self, timeout: float | None = None) -> RecordMetadata:
        """Waits (seconds) for the acknowledgement; raises what the record failed with, or ClientTimeoutError."""
        return calls.result(self, timeout)

    def exception(self, timeout: float | None = None) -> KafkaError | None:
        """Waits like `result` and returns what the record failed with, None if it was acknowledged."""
        return calls.exception(self, timeout)

    def add_callback(self, callback: Callable[["Delivery"], object]) -> None:
        """Calls `callback(delivery)` on the I/O thread when the record is done; at once if it is done already."""
        calls.add_callback(self, callback)

    def __await__(self) -> Generator[Any, None, RecordMetadata]:
        return calls.wait_in_loop(self).__await__()

    def __repr__(self) -> str:
        return calls.text(self)
