"""A record as the user gives it, and the user's interceptors, which see it before it is sent and its outcome.

`on_send(record)` runs in the thread that sends and returns the record, or another one. `on_acknowledgement(metadata,
error)` runs on the I/O thread; one of the two is None. An interceptor that raises is logged and passed over: it can
spoil neither a record nor another interceptor.
"""

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from barnabas.client.producer._fast_pure import Delivery

Headers = Sequence[tuple[str, bytes | None]]
OnDelivery = Callable[["Delivery"], object]
logger = logging.getLogger(__name__)


class ProducerRecord(NamedTuple):
    """One record as `send` was given it: what interceptors see and may replace."""

    topic: str
    value: Any = None
    key: Any = None
    partition: int | None = None
    timestamp: int | None = None
    headers: Headers | None = None


class PreparedRecord(NamedTuple):
    """A record that was intercepted, serialized and checked."""

    topic: str
    value: bytes | None
    key: bytes | None
    partition: int | None
    timestamp: int
    headers: Headers | None
    callbacks: "tuple[OnDelivery, ...]"


class ProducerInterceptors:
    """Calls the user's interceptors in order."""

    def __init__(self, interceptors: Sequence[Any]) -> None:
        self._on_send = [each.on_send for each in interceptors if hasattr(each, "on_send")]
        self._on_acknowledgement = [
            each.on_acknowledgement for each in interceptors if hasattr(each, "on_acknowledgement")
        ]
        self.any = bool(interceptors)
        self.wants_acknowledgements = bool(self._on_acknowledgement)

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        for intercept in self._on_send:
            try:
                changed = intercept(record)
            except Exception:
                logger.exception("an interceptor failed in on_send for %s", record.topic)
                continue
            if isinstance(changed, ProducerRecord):
                record = changed
            else:
                logger.error("an interceptor's on_send returned %s, not a ProducerRecord", type(changed).__name__)
        return record

    def on_done(self, delivery: "Delivery") -> None:
        error = delivery.exception(0)
        metadata = delivery.result(0) if error is None else None
        self._acknowledge(metadata, error)

    def on_refused(self, error: BaseException) -> None:
        """The record got no batch: it is wrong, or there was no topic, no partition or no room for it."""
        self._acknowledge(None, error)

    def _acknowledge(self, metadata: Any, error: BaseException | None) -> None:
        for intercept in self._on_acknowledgement:
            try:
                intercept(metadata, error)
            except Exception:
                logger.exception("an interceptor failed in on_acknowledgement")
