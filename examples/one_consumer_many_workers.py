"""One consumer, many workers: one thread polls, a pool processes, and only finished records are committed.

For slow processing: there can be more workers than partitions. Records of a partition may be finished
in any order, so the offset to commit is that of the first record that is not done yet (`Progress`); after a crash some
records are processed again, none is skipped. A partition with too much unfinished work is paused, so that poll keeps
being called and the member stays in the group. Run it with a broker:

    barnabas server &
    python examples/one_consumer_many_workers.py localhost:9092 orders --workers 8
"""

import argparse
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait

from barnabas import Consumer, TopicPartition
from barnabas.client.consumer import ConsumerRecord, RebalanceListener

Process = Callable[[ConsumerRecord], None]
MAX_UNFINISHED = 200


class Progress:
    """The records of one partition that are being processed, in order."""

    def __init__(self) -> None:
        self._work: dict[int, Future[None]] = {}
        self._next_offset: int | None = None
        self.committed: int | None = None

    def start(self, offset: int, work: "Future[None]") -> None:
        self._work[offset] = work
        if self._next_offset is None:
            self._next_offset = offset

    def done_up_to(self) -> int | None:
        """The offset to commit: everything before it is done. A failure raises here: it must not be skipped."""
        for offset, work in list(self._work.items()):
            if not work.done():
                break
            work.result()
            del self._work[offset]
            self._next_offset = offset + 1
        return self._next_offset

    @property
    def unfinished(self) -> int:
        return len(self._work)

    def finish(self) -> None:
        wait(self._work.values())


class Pool(RebalanceListener):
    def __init__(self, consumer: Consumer, topic: str, workers: int, process: Process) -> None:
        self._consumer = consumer
        self._process = process
        self._pool = ThreadPoolExecutor(workers)
        self._progress: dict[TopicPartition, Progress] = {}
        consumer.subscribe([topic], self)

    def run(self, stop: threading.Event) -> None:
        try:
            while not stop.is_set():
                for record in self._consumer.poll(0.1):
                    partition = TopicPartition(record.topic, record.partition)
                    progress = self._progress.setdefault(partition, Progress())
                    progress.start(record.offset, self._pool.submit(self._process, record))
                self._commit(self._progress)
                self._pause_or_resume()
        finally:
            self._consumer.close()  # on_revoked waits for unfinished records, and commits them
            self._pool.shutdown()

    def _commit(self, partitions: Sequence[TopicPartition] | dict[TopicPartition, Progress]) -> None:
        offsets: dict[TopicPartition, int] = {}
        for entry in partitions:
            progress = self._progress.get(entry)
            done = None if progress is None else progress.done_up_to()
            if progress is not None and done is not None and done != progress.committed:
                offsets[entry] = done
        if offsets:
            self._consumer.commit(offsets)
            for entry, offset in offsets.items():
                self._progress[entry].committed = offset

    def _pause_or_resume(self) -> None:
        assigned = self._consumer.assignment()
        busy = {entry for entry, progress in self._progress.items() if progress.unfinished > MAX_UNFINISHED}
        self._consumer.pause(busy & assigned)
        self._consumer.resume(self._consumer.paused() - busy)

    def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        """Another member gets them next: finish the started records, and commit while we still may."""
        for entry in partitions:
            if entry in self._progress:
                self._progress[entry].finish()
        self._commit(partitions)
        self._forget(partitions)

    def on_lost(self, partitions: Sequence[TopicPartition]) -> None:
        """Another member has them already, and starts at our last commit."""
        self._forget(partitions)

    def _forget(self, partitions: Sequence[TopicPartition]) -> None:
        for entry in partitions:
            self._progress.pop(entry, None)


def consume(
    bootstrap: str,
    topic: str,
    group: str,
    workers: int,
    process: Process,
    stop: threading.Event,
) -> None:
    """Runs until `stop` is set, or a worker fails."""
    consumer = Consumer(bootstrap, group_id=group, auto_offset_reset="earliest", enable_auto_commit=False)
    Pool(consumer, topic, workers, process).run(stop)


def show(record: ConsumerRecord) -> None:
    print(f"{threading.current_thread().name}: {record.topic}-{record.partition}@{record.offset} {record.value!r}")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("bootstrap")
    arguments.add_argument("topic")
    arguments.add_argument("--group", default="one-consumer-many-workers")
    arguments.add_argument("--workers", type=int, default=8)
    given = arguments.parse_args()
    try:
        consume(given.bootstrap, given.topic, given.group, given.workers, show, threading.Event())
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
