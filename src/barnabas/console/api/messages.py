"""Messages of a topic as server-sent events: rows as they are found, progress, the end. Closing the stream stops it."""

import asyncio
import contextlib
import csv
import io
import json
import logging
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError
from typing import Any

from starlette.requests import Request
from starlette.responses import StreamingResponse

from barnabas.console.api.access import body_of, number_in
from barnabas.console.api.topics import find
from barnabas.console.console import Console
from barnabas.console.filters import parse_filter
from barnabas.console.login.actor import current_actor
from barnabas.console.paging import BadQuery, number
from barnabas.console.records import DECODERS, FULL, export_row, row_of
from barnabas.console.scan import Scan, ScanRequest
from barnabas.console.searches import TooManySearches
from barnabas.errors import KafkaError
from barnabas.types import TopicPartition

_log = logging.getLogger("barnabas.console")
STARTS = ("newest", "oldest", "live", "offset", "time")
SLOWEST_SECONDS = 60.0
"""A browser that takes nothing for so long has lost its search."""
FORMATS = {"csv": "text/csv", "jsonl": "application/x-ndjson"}
PARTS = ("key", "value")
CSV_COLUMNS = ("partition", "offset", "timestamp", *PARTS, "headers")
LARGEST_PAGE = 10_000
MOST_EXPORTED = 1_000_000
FETCH_BYTES = str(16 << 20)
"""Of a topic with many partitions: eight searches fit into the memory of the console."""
EVENTS_AHEAD = 8
"""What the browser has not taken yet; then the search waits for it."""


async def stream(console: Console, request: Request) -> Any:
    decoder = request.query_params.get("decoder", "auto")
    if decoder not in DECODERS:
        raise BadQuery(f"decoder is one of {', '.join(DECODERS)}")
    wanted = _wanted(console, request, LARGEST_PAGE)

    async def events() -> AsyncIterator[str]:
        async with contextlib.aclosing(found_in(console, wanted, lambda each: row_of(each, decoder))) as found:
            async for kind, content in found:
                yield f"event: {kind}\ndata: {json.dumps(content)}\n\n"

    return StreamingResponse(events(), media_type="text/event-stream", headers={"cache-control": "no-store"})


def _wanted(console: Console, request: Request, most: int) -> ScanRequest:
    query, topic = request.query_params, find(console, request)
    start = query.get("start", "newest")
    if start not in STARTS:
        raise BadQuery(f"start is one of {', '.join(STARTS)}")
    if start == "newest" and most > LARGEST_PAGE:
        most = LARGEST_PAGE  # these are collected before they are sorted
    chosen = number(query, "partition", -1, -1, len(topic.partitions) - 1)
    return ScanRequest(
        topic=topic.name,
        partitions=tuple(range(len(topic.partitions))) if chosen < 0 else (chosen,),
        start=start,
        at=number(query, "at", 0),
        limit=number(query, "limit", 100, 1, most),
        condition=parse_filter(query.get("filter", "")),
    )


async def found_in(
    console: Console, wanted: ScanRequest, row: Callable[[dict[str, Any]], dict[str, Any]]
) -> AsyncGenerator[tuple[str, Mapping[str, Any]], None]:
    """Kind and content of every event; the last is "done" or "fault". Closing it ends its thread."""
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
                Scan(consumer, wanted, emit, row, stop).run()
        except KafkaError as error:
            emit("fault", {"message": error.message})
        except Exception as error:
            # A bug must not leave the page waiting for an end.
            _log.exception("the search failed")
            emit("fault", {"message": f"{type(error).__name__}: {error}"})

    actor = current_actor()
    try:
        work = asyncio.create_task(console.searches.begin(actor.session_id if actor else "", run))
    except TooManySearches as error:
        yield "fault", {"message": str(error)}
        return
    try:
        while True:
            try:
                kind, content = await asyncio.wait_for(queue.get(), 1.0)
            except TimeoutError:
                if work.done():
                    return  # the search has given up: nobody took what it found
                continue
            yield kind, content
            if kind in ("done", "fault"):
                return
    finally:
        stop.set()
        await asyncio.shield(work)


async def export(console: Console, request: Request) -> Any:
    """What a search finds, as a file: `format` is csv or jsonl. Not live."""
    kind = request.query_params.get("format", "jsonl")
    wanted = _wanted(console, request, MOST_EXPORTED)
    if kind not in FORMATS or wanted.start == "live":
        raise BadQuery("format is csv or jsonl, and there is no export of what is live")
    # No name of a topic in it needs quotes: Kafka allows letters, digits, dot, underscore and hyphen only.
    name = f"{wanted.topic}.{kind}"
    headers = {"cache-control": "no-store", "content-disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(_lines(console, wanted, kind), media_type=FORMATS[kind], headers=headers)


async def _lines(console: Console, wanted: ScanRequest, kind: str) -> AsyncIterator[str]:
    if kind == "csv":
        yield _csv([CSV_COLUMNS])
    async with contextlib.aclosing(found_in(console, wanted, export_row)) as found:
        async for event, content in found:
            rows = content["rows"] if event == "rows" else ()
            if event == "fault":
                raise RuntimeError(content["message"])  # the download fails, instead of looking whole
            if rows and kind == "csv":
                yield _csv([_cells(row) for row in rows])
            elif rows:
                yield "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _cells(row: dict[str, Any]) -> list[Any]:
    parts = [row.get(name, f"base64:{row[f'{name}Base64']}" if f"{name}Base64" in row else None) for name in PARTS]
    headers = json.dumps(row["headers"], ensure_ascii=False) if row["headers"] else ""
    return [row["partition"], row["offset"], row["timestamp"], *parts, headers]


def _csv(rows: Iterable[Sequence[Any]]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue()


async def get_message(console: Console, request: Request) -> Any:
    """One record, whole up to 1 MiB per part."""
    topic, query = find(console, request), request.query_params
    partition, offset = number(query, "partition", 0, 0, len(topic.partitions) - 1), number(query, "offset", 0)
    record = await _read(console, TopicPartition(topic.name, partition), offset)
    return row_of(record, query.get("decoder", "auto"), FULL)


async def produce_again(console: Console, request: Request) -> Any:
    """{"partition", "offset", "to": a topic}: the same bytes and headers once more, by the key's partition."""
    topic, body = find(console, request), await body_of(request)
    place = TopicPartition(topic.name, number_in(body, "partition", highest=len(topic.partitions) - 1))
    record = await _read(console, place, number_in(body, "offset"))
    to = body.get("to") or topic.name
    if to not in console.collector.view.topics:
        raise LookupError(f"there is no topic {to}")
    headers = [(each["key"], each["value"]) for each in record["headers"] or ()]
    async with console.clients.producer() as producer:
        written = await (await producer.send(to, record["value"], record["key"], headers=headers))
    console.audit("produce again", f"{place} offset {record['offset']} as {to}-{written.partition} {written.offset}")
    await console.collector.ensure_topics([to], max_age=0)
    return {"topic": to, "partition": written.partition, "offset": written.offset}


async def _read(console: Console, partition: TopicPartition, offset: int) -> dict[str, Any]:
    def read() -> dict[str, Any] | None:
        with console.clients.blocking_consumer() as consumer:
            consumer.assign([partition])
            consumer.seek(partition, offset)
            rows = consumer.poll_arrow(5.0, max_records=1)
            return rows.to_pylist()[0] if rows.num_rows else None

    record = await asyncio.to_thread(read)
    if record is None or record["offset"] != offset:
        raise LookupError(f"there is no record {offset} in {partition} any more")
    return record


ROUTES = (
    ("GET", "/topics/{name}/messages", stream),
    ("GET", "/topics/{name}/export", export),
    ("GET", "/topics/{name}/message", get_message),
    ("POST", "/topics/{name}/again", produce_again),
)
