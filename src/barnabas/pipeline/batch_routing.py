"""Chooses the routing of a batch: the contents of the file when the batch starts, before its first record is read.

Runs on the driver's machine, in the process where Spark requests the writer of a batch, before its tasks start. Spark
requests it again when the batch is done, and in a replay. So the first time is recorded in the checkpoint
(`RoutingLog.begun`), and later calls change nothing.
"""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from barnabas.client.admin.admin import Admin
from barnabas.client.options import AdminOptions
from barnabas.errors import KafkaError
from barnabas.pipeline.checkpoint import last_planned_batch
from barnabas.pipeline.routing import Routing, RoutingError, parse_routing
from barnabas.pipeline.routing_log import RoutingLog
from barnabas.pipeline.warehouse import create_missing_topics

SETTLED_S: Final = 0.5
"""A file written more recently may be incomplete: the first half of a routing is a valid routing too."""
_LONGEST_WAIT_S: Final = 5.0


def choose_routing(checkpoint: str, routing_file: str | None, create_topics: Callable[[Routing], None]) -> None:
    """For the batch that was planned last. A file with errors changes nothing; the driver's loop reports them.

    If the topics of a new routing cannot be created, KafkaError fails the batch: with the old routing, rows of a new
    table would be counted as unrouted and be lost. Nothing is recorded, so the next attempt reads the file again.
    """
    log, batch = RoutingLog(checkpoint), last_planned_batch(checkpoint)
    if batch <= log.begun():
        return
    text = None if routing_file is None else settled_text(Path(routing_file))
    if text is not None and text != log.text_for(batch):
        routing = _parsed(text)
        if routing is not None:
            try:
                create_topics(routing)
            except KafkaError as error:
                reason = f"batch {batch} cannot start: the topics of the new routing cannot be created: {error.message}"
                raise KafkaError(error.code, reason) from error
            log.write(batch, text)
    # After the version is written: if this record exists, so does the routing of the batch.
    log.note_begun(batch)


def _parsed(text: str) -> Routing | None:
    try:
        return parse_routing(text)
    except RoutingError:
        return None


def topic_creator(client: Mapping[str, str]) -> Callable[[Routing], None]:
    def create(routing: Routing) -> None:
        known = {name: value for name, value in client.items() if name in AdminOptions.settings}
        with Admin.from_config(known) as admin:
            create_missing_topics(admin, routing, with_sources=False)

    return create


def settled_text(
    path: Path, clock: Callable[[], float] = time.time, sleep: Callable[[float], None] = time.sleep
) -> str | None:
    """The contents of the file once it has not changed for a moment; None if it cannot be read, or keeps changing."""
    deadline = clock() + _LONGEST_WAIT_S
    try:
        while clock() < deadline:
            modified = path.stat().st_mtime
            age = clock() - modified
            if 0 <= age < SETTLED_S:
                sleep(SETTLED_S - age)
                continue
            text = path.read_text(encoding="utf-8")
            if path.stat().st_mtime == modified:
                return text
    except (OSError, UnicodeDecodeError):
        pass
    return None
