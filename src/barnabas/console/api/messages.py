"""Messages of a topic as server-sent events: rows as they are found, progress, the end. Closing the stream stops it."""

import asyncio
import contextlib
import json
import threading
import time
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import CancelledError
from typing import Any

from starlette.requests import Request
from starlette.responses import StreamingResponse

from barnabas.console.api.topics import find
from barnabas.console.console import Console
from barnabas.console.filters import parse_filter
from barnabas.console.login.actor import current_actor
from barnabas.console.paging import BadQuery, number
from barnabas.console.records import DECODERS, FULL, row_of
from barnabas.console.scan import Scan, ScanRequest
from barnabas.console.searches import TooManySearches
from barnabas.errors import KafkaError
from barnabas.types import TopicPartition

STARTS = ("newest", "oldest", "live", "offset", "time")
SLOWEST_SECONDS = 60.0
"""A browser that takes nothing for so long has lost its search."""
FETCH_BYTES = str(16 << 20)
"""Of a topic with many partitions: eight searches fit into the memory of the console."""
EVENTS_AHEAD = 8
"""What the browser has not taken yet; then the search waits for it."""


async def stream(console: Console, request: Request) -> Any:
    query, topic = request.query_params, find(console, request)
    start = query.get("start", "newest")
    decoder = query.get("decoder", "auto")
    if start not in STARTS or decoder not in DECODERS:
        raise BadQuery(f"start is one of {', '.join(STARTS)}; decoder is one of {', '.join(DECODERS)}")
    chosen = number(query, "partition", -1, -1, len(topic.partitions) - 1)
    wanted = ScanRequest(
        topic=topic.name,
        partitions=tuple(range(len(topic.partitions))) if chosen < 0 else (chosen,),
        start=start,
        at=number(query, "at", 0),
        limit=number(query, "limit", 100, 1, 10_000),
        condition=parse_filter(query.get("filter", "")),
        decoder=decoder,
    )
    return StreamingResponse(
        _events(console, wanted), media_type="text/event-stream", headers={"cache-control": "no-store"}
    )


async def _events(console: Console, wanted: ScanRequest) -> AsyncIterator[str]:
    """Ends its thread when the browser goes away: then this generator is closed."""
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[tuple[str, Mapping[str, Any]]] = asyncio.Queue(EVENTS_AHEAD)
    stop = threading.Event()

    def emit(kind: str, content: Mapping[str, Any]) -> bool:
        if stop.is_set():
            return False
        with contextlib.suppress(CancelledError, RuntimeError):
            waiting = asyncio.run_coroutine_threadsafe(queue.put((kind, content)), loop)
            patience = time.monotonic() + SLOWEST_SECONDS
            while not stop.is_set() and time.monotonic() < patience:
                with contextlib.suppress(TimeoutError):
                    waiting.result(0.2)
                    return True
            waiting.cancel()
        return False

    def run() -> None:
        try:
            with console.clients.blocking_consumer(fetch_max_wait_ms="100", fetch_max_bytes=FETCH_BYTES) as consumer:
                Scan(consumer, wanted, emit, stop).run()
        except KafkaError as error:
            emit("fault", {"message": error.message})

    actor = current_actor()
    try:
        work = asyncio.create_task(console.searches.begin(actor.session_id if actor else "", run))
    except TooManySearches as error:
        yield _event("fault", {"message": str(error)})
        return
    try:
        while True:
            try:
                kind, content = await asyncio.wait_for(queue.get(), 1.0)
            except TimeoutError:
                if work.done():
                    return  # the search has given up: nobody took what it found
                continue
            yield _event(kind, content)
            if kind in ("done", "fault"):
                return
    finally:
        stop.set()
        await asyncio.shield(work)


def _event(kind: str, content: Mapping[str, Any]) -> str:
    return f"event: {kind}\ndata: {json.dumps(content)}\n\n"


async def get_message(console: Console, request: Request) -> Any:
    """One record, whole up to 1 MiB per part."""
    topic, query = find(console, request), request.query_params
    partition = TopicPartition(topic.name, number(query, "partition", 0, 0, len(topic.partitions) - 1))
    offset = number(query, "offset", 0)

    def read() -> Any:
        with console.clients.blocking_consumer() as consumer:
            consumer.assign([partition])
            consumer.seek(partition, offset)
            rows = consumer.poll_arrow(5.0, max_records=1)
            return rows.to_pylist()[0] if rows.num_rows else None

    record = await asyncio.to_thread(read)
    if record is None or record["offset"] != offset:
        raise LookupError(f"there is no record {offset} in {partition} any more")
    return row_of(record, query.get("decoder", "auto"), FULL)


ROUTES = (("GET", "/topics/{name}/messages", stream), ("GET", "/topics/{name}/message", get_message))
