"""One consumer per thread: all consumers are in one group, which distributes the partitions.

Simple, and in order within each partition; no more threads than partitions can be busy. Run it with a broker:

    barnabas server &
    python examples/consumer_per_thread.py localhost:9092 orders --threads 3
"""

import argparse
import threading
from collections.abc import Callable

from barnabas import Consumer
from barnabas.client.consumer import ConsumerRecord
from barnabas.client.errors import WakeupError

Process = Callable[[ConsumerRecord], None]


class Worker(threading.Thread):
    """One thread, one consumer. A record is committed only after `process` has returned."""

    def __init__(self, bootstrap: str, topic: str, group: str, process: Process) -> None:
        super().__init__()
        self._topic = topic
        self._process = process
        self._consumer = Consumer(
            bootstrap, group_id=group, auto_offset_reset="earliest", enable_auto_commit=False, max_poll_records=100
        )

    def run(self) -> None:
        with self._consumer as consumer:
            consumer.subscribe([self._topic])
            try:
                for batch in consumer.batches(timeout=1.0):
                    for record in batch:
                        self._process(record)
                    consumer.commit()
            except WakeupError:
                pass  # stop() was called: leave the group and end

    def stop(self) -> None:
        """The only method that another thread may call on a consumer."""
        self._consumer.wakeup()


def consume(
    bootstrap: str,
    topic: str,
    group: str,
    threads: int,
    process: Process,
    stop: threading.Event,
) -> None:
    """Runs until `stop` is set."""
    workers = [Worker(bootstrap, topic, group, process) for _ in range(threads)]
    for worker in workers:
        worker.start()
    try:
        stop.wait()
    finally:
        for worker in workers:
            worker.stop()
        for worker in workers:
            worker.join()


def show(record: ConsumerRecord) -> None:
    print(f"{threading.current_thread().name}: {record.topic}-{record.partition}@{record.offset} {record.value!r}")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("bootstrap")
    arguments.add_argument("topic")
    arguments.add_argument("--group", default="consumer-per-thread")
    arguments.add_argument("--threads", type=int, default=3)
    given = arguments.parse_args()
    try:
        consume(given.bootstrap, given.topic, given.group, given.threads, show, threading.Event())
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
