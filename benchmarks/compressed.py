"""Compressed batches of 110 KB of records: what looking into every record of them costs the broker.

Ready-made Produce requests on one connection, four in flight: the same bytes for both brokers, and no client that
compresses on the same cores. Both brokers decompress each batch to check its records, and store it as it came.
"""

from __future__ import annotations

import random
import socket
from collections.abc import Iterable
from functools import partial

from barnabas.records.builder import BatchBuilder
from barnabas.records.compression import CompressionType
from benchmarks.board import no_more_than_kafka
from benchmarks.requests import end_offset
from benchmarks.session import Contender, Session, cpu_of
from benchmarks.wire import answer_size, connect, produce_frame

CODECS = (CompressionType.GZIP, CompressionType.SNAPPY, CompressionType.LZ4, CompressionType.ZSTD)
SHAPES = ((1100, 100), (110, 1000))
"""Records in a batch, and bytes in a record."""
IN_FLIGHT = 4
WORDS = [f"{word}-{number}" for word in ("order", "device", "visit", "payment", "Hangzhou") for number in range(200)]


def run(session: Session) -> None:
    for count, size in SHAPES:
        for codec in CODECS:
            title = f"produce {codec.config_name}, {count:,} x {size} B in a batch: broker CPU per million"
            session.board.row(title, "s", no_more_than_kafka())
            batch = batch_of(count, size, codec)
            batches = 400 if session.quick else 1500
            session.turns(partial(one_run, title=title, batch=batch, count=count, batches=batches), warm_up=2)


def one_run(contender: Contender, *, title: str, batch: bytes, count: int, batches: int) -> dict[str, float]:
    topic = contender.new_topic()
    request = produce_frame(topic, 0, batch)
    with connect(contender.bootstrap) as connection:
        size = answer_size(connection, request)
        with cpu_of(contender.broker) as cpu:
            send_batches(connection, request, size, batches)
            spent = cpu()
    arrived = end_offset(contender.bootstrap, topic)
    if arrived != (batches + 1) * count:
        raise RuntimeError(f"{contender.name}: {arrived} records of {(batches + 1) * count} have arrived")
    contender.delete_topic(topic)
    return {title: spent / (batches * count) * 1e6}


def send_batches(connection: socket.socket, request: bytes, answer_bytes: int, batches: int) -> None:
    sent = received = 0
    while received < batches * answer_bytes:
        while sent < batches and sent * answer_bytes - received < IN_FLIGHT * answer_bytes:
            connection.sendall(request)
            sent += 1
        received += len(connection.recv(65536))


def batch_of(count: int, size: int, codec: CompressionType) -> bytes:
    """Lines of JSON with few different words and many different numbers, the same in every run."""
    chance = random.Random(19)
    builder = BatchBuilder(codec)
    for number in range(count):
        builder.append(1_700_000_000_000 + number, None, b"".join(line(chance, number, size)).ljust(size)[:size])
    return bytes(builder.build())


def line(chance: random.Random, number: int, size: int) -> Iterable[bytes]:
    yield b'{"id":%d' % number
    for field in range(size // 20):
        yield b',"f%d":"%s","n":%d' % (field, chance.choice(WORDS).encode(), chance.randrange(10_000))
