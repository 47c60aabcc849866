"""Sends generated records at a given rate, or as fast as possible."""

import itertools
import time
from collections.abc import Callable, Iterable
from typing import Final

from barnabas.client.producer.fast_path import Delivery
from barnabas.client.producer.producer import Producer
from barnabas.pipeline.generator import GeneratedRecord

_SLICE_S: Final = 0.02
"""With a rate, records are sent in slices this long."""


def send_records(
    producer: Producer,
    records: Iterable[GeneratedRecord],
    *,
    count: int | None = None,
    rate: float | None = None,
    duration_s: float | None = None,
    stamp_now: bool = False,
    on_progress: Callable[[int], None] = lambda sent: None,
) -> int:
    """How many were sent and acknowledged. `stamp_now`: record timestamps are the current time, not event time."""
    started = time.monotonic()
    sent = 0
    source = iter(records if count is None else itertools.islice(records, count))
    failures: list[BaseException] = []

    def failed(delivery: Delivery) -> None:
        error = delivery.exception()
        if error is not None:
            failures.append(error)

    while duration_s is None or time.monotonic() - started < duration_s:
        due = 1000 if rate is None else int((time.monotonic() - started + _SLICE_S) * rate) - sent
        done = 0
        for record in itertools.islice(source, max(due, 0)):
            timestamp = None if stamp_now else record.timestamp
            producer.send(record.topic, record.value, record.key, timestamp=timestamp, on_delivery=failed)
            done += 1
        sent += done
        on_progress(sent)
        if failures or (due > 0 and done == 0):
            break
        if rate is not None:
            time.sleep(max(0.0, sent / rate - (time.monotonic() - started)))
    producer.flush()
    if failures:
        raise failures[0]
    return sent
