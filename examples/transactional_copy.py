"""Exactly once from topic to topic: offsets and records are committed in one transaction.

Readers of the target use isolation_level="read_committed". If a transaction fails, it is aborted and its records are
read again; a second program with the same transactional id takes over, and this one ends with FencedError. Run it with
a broker:

    barnabas server &
    python examples/transactional_copy.py localhost:9092 orders bills
"""

import argparse
from collections.abc import Callable

from barnabas import AbortableTransactionError, CommitFailedError, Consumer, Producer, RebalanceInProgressError
from barnabas.client.consumer import ConsumerRecord

Transform = Callable[[ConsumerRecord], bytes]
PASSING = (AbortableTransactionError, CommitFailedError, RebalanceInProgressError)


def copy(
    bootstrap: str,
    source: str,
    target: str,
    transactional_id: str,
    transform: Transform,
    until_idle: float | None = None,
) -> int:
    """Runs forever, or until that many seconds pass without a record. Returns how many records were copied."""
    copied = 0
    with (
        Producer(bootstrap, transactional_id=transactional_id) as producer,
        Consumer(
            bootstrap,
            group_id=transactional_id,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            enable_auto_commit=False,
        ) as consumer,
    ):
        consumer.subscribe([source])
        for batch in consumer.batches(timeout=until_idle or 2.0, stop_when_idle=until_idle is not None):
            try:
                with producer.transaction():
                    for record in batch:
                        producer.send(target, transform(record), key=record.key)
                    producer.send_offsets(consumer)
            except PASSING as error:
                print(f"retrying, because the transaction was aborted: {error}")
                rewind(consumer)
            else:
                copied += len(batch)
    return copied


def rewind(consumer: Consumer) -> None:
    """Back to what the last transaction committed: an abort undoes writes, not reads."""
    for partition, committed in consumer.committed().items():
        if committed is None:
            consumer.seek_to_beginning([partition])
        else:
            consumer.seek(partition, committed)


def bill(record: ConsumerRecord) -> bytes:
    return b"bill for " + (record.value or b"nothing")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("bootstrap")
    arguments.add_argument("source")
    arguments.add_argument("target")
    arguments.add_argument("--transactional-id", default="transactional-copy")
    arguments.add_argument("--until-idle", type=float, metavar="SECONDS", help="stop after this time without records")
    given = arguments.parse_args()
    try:
        copied = copy(given.bootstrap, given.source, given.target, given.transactional_id, bill, given.until_idle)
        print(f"{copied} records copied")
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
