"""Columns that were read on arrival, from the fetcher to the buffer of the user's thread.

In two steps. `take` counts them, so that the next request can leave at once; `run` makes arrays of them while that
request travels, and wakes the user. Made on this thread because two that want the GIL would keep each other from it.
"""

import logging
from collections.abc import Callable
from typing import NamedTuple

from barnabas.client.consumer.arriving import ArrivedColumns
from barnabas.client.consumer.fetch_buffer import CompletedFetch, FetchBuffer
from barnabas.client.consumer.fetch_response import FetchedPartition
from barnabas.client.consumer.partition_state import PartitionState
from barnabas.client.consumer.subscription import SubscriptionState

logger = logging.getLogger("barnabas.client.consumer")


class TakenColumns(NamedTuple):
    state: PartitionState
    version: int
    columns: ArrivedColumns
    last_epoch: int
    records: memoryview


class ColumnHandover:
    def __init__(
        self,
        subscription: SubscriptionState,
        buffer: FetchBuffer,
        on_arrival: Callable[[], None],
        fetch: Callable[[], None],
    ) -> None:
        self._lock = subscription.lock
        self._buffer = buffer
        self._on_arrival = on_arrival
        self._fetch = fetch
        self._taken: list[TakenColumns] = []

    def take(self, state: PartitionState, fetched: FetchedPartition, columns: ArrivedColumns) -> None:
        """The caller holds the lock."""
        state.on_watermarks(fetched.high_watermark, fetched.last_stable_offset, fetched.log_start_offset)
        epoch = columns.reader.leader_epoch
        state.on_fetched(columns.next_offset, -1 if epoch is None else epoch, len(fetched.records))
        self._taken.append(TakenColumns(state, state.version, columns, state.fetch_epoch, fetched.records))

    def run(self) -> None:
        taken, self._taken = self._taken, []
        for state, version, columns, epoch, records in taken:
            try:
                rows = columns.reader.finish()
            except MemoryError:
                logger.warning("%s: no memory for columns, they are fetched again", state.topic_partition)
                rows = None
            with self._lock:
                if state.version != version:
                    continue  # the user has gone elsewhere meanwhile
                if rows is None:
                    state.fetch_again()
                else:
                    self._buffer.add(CompletedFetch(state, records, columns.next_offset, rows=rows, last_epoch=epoch))
            if rows is None:
                self._fetch()
        self._on_arrival()
