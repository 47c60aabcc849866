"""One record at a time: how long until a consumer has what a producer sent, as Kafka's EndToEndLatency measures it."""

import random
import time
from collections.abc import Callable

from barnabas.cli.data.java_text import double_text, fixed
from barnabas.cli.data.produce_statistics import labelled
from barnabas.client.consumer import Consumer
from barnabas.client.producer import Producer
from barnabas.types import TopicPartition

POLL_S = 60.0
REPORT_EVERY = 1000
PERCENTILES = (0.5, 0.99, 0.999)
LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class RoundTripError(Exception):
    """What came back is not what was sent."""


def measure(
    producer: Producer, consumer: Consumer, topic: str, count: int, size: int, report: Callable[[str], None]
) -> list[int]:
    """Nanoseconds of each round trip. The consumer reads from the end; every 1000th is reported at once."""
    partitions = [TopicPartition(topic, each.partition) for each in consumer.partitions_for(topic)]
    consumer.assign(partitions)
    consumer.seek_to_end()
    for partition in partitions:
        consumer.position(partition)
    letters = random.Random(0)
    taken = []
    for number in range(count):
        payload = bytes([letters.choice(LETTERS)]) * size
        begin = time.perf_counter_ns()
        producer.send(topic, payload).result()
        records = consumer.poll(POLL_S)
        elapsed = time.perf_counter_ns() - begin
        _check(payload, [record.value for record in records])
        if number % REPORT_EVERY == 0:
            report(f"{number}\t{double_text(elapsed / 1000.0 / 1000.0)}")
        taken.append(elapsed)
    return taken


def results(taken: list[int]) -> dict[str, object]:
    """For programs: milliseconds under their names, and each round trip in nanoseconds."""
    ordered = sorted(taken)
    milliseconds = [ordered[int(len(ordered) * share)] / 1e6 for share in PERCENTILES]
    return {
        "records": len(taken),
        "average_ms": sum(taken) / len(taken) / 1e6,
        "max_ms": ordered[-1] / 1e6,
        "percentiles_ms": labelled(milliseconds, PERCENTILES),
        "nanoseconds": taken,
    }


def result_lines(taken: list[int]) -> list[str]:
    ordered = sorted(elapsed // 1_000_000 for elapsed in taken)
    middle, far, farthest = (ordered[int(len(ordered) * share)] for share in PERCENTILES)
    return [
        f"Avg latency: {fixed(sum(taken) / len(taken) / 1000.0 / 1000.0, 4)} ms",
        f"Percentiles: 50th = {middle}, 99th = {far}, 99.9th = {farthest}",
    ]


def _check(sent: bytes, read: list[bytes | None]) -> None:
    if not read:
        raise RoundTripError(f"poll() timed out before finding a result (timeout:[{int(POLL_S * 1000)}])")
    if read[0] != sent:
        came = (read[0] or b"").decode(errors="replace")
        raise RoundTripError(f"The message read [{came}] did not match the message sent [{sent.decode()}]")
    if len(read) != 1:
        raise RoundTripError(f"Only one result was expected during this test. We found [{len(read)}]")
