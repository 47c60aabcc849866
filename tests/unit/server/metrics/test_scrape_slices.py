"""A scrape gives way often: between two yields only a bounded number of lines is made, however much there is."""

import asyncio
from pathlib import Path
from typing import Any

from handler_calls import HandlerCalls

from barnabas.machines.client_metrics.series import ClientSeries
from barnabas.protocol.messages import offset_commit as committing
from barnabas.protocol.otlp_metrics import Point, PointKind
from barnabas.server.metrics.exposition import LINES_AT_ONCE, Samples

MOST_LINES = 1000
PARTITIONS, GROUPS, SERIES = 300, 40, 3000


def test_collecting_and_rendering_give_way(tmp_path: Path) -> None:
    collected, rendered = asyncio.run(_largest_steps(tmp_path))
    assert max(collected) <= MOST_LINES
    assert len(collected) > PARTITIONS / 50 + GROUPS + SERIES / 500
    assert max(rendered) <= LINES_AT_ONCE


async def _largest_steps(directory: Path) -> tuple[list[int], list[int]]:
    async with HandlerCalls(directory, metrics_listener="127.0.0.1:0") as calls:
        await calls.make_topic("many", PARTITIONS)
        await calls.make_topic("__consumer_offsets", 3)
        for number in range(GROUPS):
            await calls.call(_commit(f"group-{number}"), 9)
        table = calls.broker.client_metrics.clients.series
        client = calls.broker.client_metrics.clients.client(b"i" * 16, "c", _attributes(), "User:a", 1 << 40)
        for start in range(0, SERIES, 100):
            points = [Point("x", PointKind.GAUGE, {"n": str(number)}, 1) for number in range(start, start + 100)]
            table.take(client.series if start < 2000 else _another(calls), points)
        samples = Samples()
        steps, before = [], 0
        for _ in calls.broker.metrics._collect(samples, None):
            lines = sum(map(len, samples._lines.values()))
            steps.append(lines - before)
            before = lines
        parts = []
        work = samples.render(open_metrics=True)
        while True:
            try:
                next(work)
            except StopIteration as end:
                parts = [part.count(b"\n") for part in end.value]
                break
        return steps, parts


def _another(calls: HandlerCalls) -> ClientSeries:
    clients = calls.broker.client_metrics.clients
    return clients.client(b"j" * 16, "d", _attributes(), "User:a", 1 << 40).series


def _attributes() -> dict[str, str]:
    names = ("client_id", "client_software_name", "client_software_version", "client_source_address")
    return {**dict.fromkeys(names, "x"), "client_source_port": "1"}


def _commit(group_id: str) -> Any:
    partitions = [
        committing.OffsetCommitRequestPartition(partition_index=index, committed_offset=0) for index in range(20)
    ]
    topics = [committing.OffsetCommitRequestTopic(name="many", partitions=partitions)]
    return committing.OffsetCommitRequest(group_id=group_id, generation_id_or_member_epoch=-1, topics=topics)
