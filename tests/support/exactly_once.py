"""A copier as a process, a watch over the offsets it commits, and the judgement of what it wrote."""

from __future__ import annotations

import subprocess
import threading
import time

from crash_load import Line, check_once_in_order
from raw_client import ConnectionEnded, RawClient

from barnabas.errors import ErrorCode
from barnabas.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from barnabas.records import iter_headers, read_records

FETCH_OFFSETS = 8


class Copier:
    """`tend` starts it again where it has ended by itself: fenced, or told to abort."""

    def __init__(self, command: list[str]) -> None:
        self.command = command
        self.starts = 0
        self._process: subprocess.Popen[bytes] | None = None

    def tend(self) -> None:
        if self._process is None or self._process.poll() is not None:
            self.starts += 1
            self._process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def committed_offsets(client: RawClient, group: str, topic: str, partitions: int) -> list[int]:
    """-1 where there is none. Raises ConnectionEnded while the coordinator is not there."""
    wanted = OffsetFetchRequestTopics(name=topic, partition_indexes=list(range(partitions)))
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=[wanted])])
    (response,) = client.ask(request, FETCH_OFFSETS).groups
    if response.error_code in (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR):
        raise ConnectionEnded
    assert response.error_code == ErrorCode.NONE, ErrorCode(response.error_code).name
    found = {row.partition_index: row.committed_offset for each in response.topics for row in each.partitions}
    return [found.get(number, -1) for number in range(partitions)]


class OffsetWatch:
    """Looks at a group's offsets again and again; what has once been seen must never be less."""

    def __init__(self, bootstrap: str, group: str, topic: str, partitions: int) -> None:
        self.latest = [-1] * partitions
        self.failures: list[str] = []
        self._of = (group, topic, partitions)
        self._bootstrap = bootstrap
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"watch of {group}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(90)
        assert not self._thread.is_alive() and not self.failures, self.failures[:5]

    @property
    def total(self) -> int:
        return sum(max(0, offset) for offset in self.latest)

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                try:
                    with RawClient(self._bootstrap, timeout=30) as client:
                        while not self._stopping.wait(0.02):
                            self._look(client)
                except (ConnectionEnded, OSError):
                    self._stopping.wait(0.02)  # the broker is down, or loads
        except BaseException as error:
            self.failures.append(repr(error))
            raise

    def _look(self, client: RawClient) -> None:
        seen = committed_offsets(client, *self._of)
        if any(now < before for now, before in zip(seen, self.latest, strict=True)):
            self.failures.append(f"offsets went back from {self.latest} to {seen}")
        self.latest = seen


def committed_lines(bootstrap: str, topic: str, partition: int) -> list[Line]:
    """What read_committed sees of a partition, aborted batches left out by the index that the broker sends along."""
    lines: list[Line] = []
    offset = 0
    with RawClient(bootstrap) as client:
        while True:
            data = client.fetch(topic, offset, partition=partition, isolation_level=1, partition_max_bytes=4 << 20)
            assert data.error_code == ErrorCode.NONE, ErrorCode(data.error_code).name
            records = bytes(data.records or b"")
            if not records:
                return lines
            starts = sorted((row.first_offset, row.producer_id) for row in data.aborted_transactions or ())
            aborting: set[int] = set()
            for position, header in iter_headers(records):
                while starts and starts[0][0] <= header.last_offset:
                    aborting.add(starts.pop(0)[1])
                if header.is_control:
                    aborting.discard(header.producer_id)
                elif header.base_offset >= offset and not (header.is_transactional and header.producer_id in aborting):
                    batch = records[position : position + header.size_in_bytes]
                    lines += [Line(record.offset, record.value or b"") for record in read_records(batch)]
                offset = max(offset, header.next_offset)


def check_copied(bootstrap: str, target: str, sent: list[int]) -> None:
    """One committed copy of each record, in order, and nothing open behind it."""
    for partition, count in enumerate(sent):
        lines = committed_lines(bootstrap, target, partition)
        check_once_in_order(lines)
        assert len(lines) == count, f"{len(lines)} of {count} records in {target}-{partition}"


def tend_until(copier: Copier, watch: OffsetWatch, total: int, timeout: float = 180.0) -> None:
    """Keep the copier going until the group has committed that many records."""
    deadline = time.monotonic() + timeout
    while watch.total < total:
        assert not watch.failures, watch.failures[:5]
        assert time.monotonic() < deadline, f"{watch.latest} of {total} after {timeout} s, {copier.starts} starts"
        copier.tend()
        time.sleep(0.01)
