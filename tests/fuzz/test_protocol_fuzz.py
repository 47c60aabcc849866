"""Hostile bytes against a running broker: requests that are almost right, and frames that are noise.

Every API that the broker serves is drawn in every version, with values that often name things that exist, and then
damaged. The broker must stay alive and serve a bystander, hold its memory, and never meet an error that it did not
foresee: those are logged with their traceback, and one such line fails the run. The seed is printed; `BARNABAS_SEED`
repeats a run.
"""

from __future__ import annotations

import logging
import os
import random
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from message_values import MessageValues
from raw_client import ConnectionEnded, RawClient, base_offsets, batch

from barnabas.errors import ErrorCode, ProtocolError
from barnabas.machines.controller.topics import MAX_PARTITIONS_PER_REQUEST
from barnabas.protocol import ApiKey, decode, decode_request_header, encode_request
from barnabas.protocol.messages import create_partitions as grow
from barnabas.protocol.messages import create_topics as create
from barnabas.protocol.schema import RECORDS, STRING, UUID, Primitive
from barnabas.server.dispatch import Handler
from barnabas.server.handlers import HANDLERS
from barnabas.testing import Broker

SETTINGS = {"socket.request.max.bytes": 2_000_000}
FEW = 50
MEMORY_GROWTH_BYTES = 150 << 20
NAMES = ("fuzz", "fuzz", "fuzz", "group", "", ".", "member", "retention.ms", "range", "0", "5")
NUMBERS = (0, 0, 0, 1, 1, -1, 2, 3, 7, 100, -2, -3)


class PlausibleValues(MessageValues):
    """Values that get past the first look: names that exist, small numbers, batches that are whole."""

    def __init__(self, seed: str, topic_id: bytes) -> None:
        super().__init__(seed, fill=0.9)
        self._topic_id = topic_id

    def _value(self, name: str, kind: Primitive | type[Any], version: int) -> Any:
        chance = self._random.random()
        if kind is STRING and chance < 0.9:
            return self._random.choice(NAMES)
        if kind is RECORDS and chance < 0.7:
            return bytes(batch(*[b"value"] * self._random.choice((1, 2, 10))))
        if kind is UUID and chance < 0.7:
            return self._topic_id
        return super()._value(name, kind, version)

    def _integer(self, name: str, kind: Primitive) -> int:
        if name.endswith("_ms"):
            return self._random.choice((0, 1, 50))
        if self._random.random() < 0.85:
            number = self._random.choice(NUMBERS)
            return abs(number) if kind.name == "uint16" else number
        return super()._integer(name, kind)


def damage(frame: bytes, chance: random.Random) -> bytes:
    """One to three changes after the API key, which decides whether it is read at all."""
    changed = bytearray(frame)
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        at = chance.randrange(2, max(3, len(changed)))
        kind = chance.randrange(7)
        if kind == 0:
            changed[at:at] = chance.randbytes(chance.choice((1, 2, 4, 50)))
        elif kind == 1:
            del changed[at : at + chance.choice((1, 2, 4, 50))]
        elif kind == 2:
            changed = changed[:at]
        elif kind == 3 and len(changed) > at + 4:
            struct.pack_into(">i", changed, at, chance.choice((-1, -(2**31), 2**31 - 1, 2**24, 65_536)))
        elif kind == 4:
            changed[at : at + 5] = b"\xff\xff\xff\xff" + bytes([chance.choice((0x07, 0x0F, 0xFF))])
        elif at < len(changed):
            changed[at] = chance.choice((changed[at] ^ (1 << chance.randrange(8)), 0, 0x7F, 0x80, 0xFF))
    return bytes(changed)


def makes_many_partitions(frame: bytes) -> bool:
    """Thousands of partitions are a fair wish, and take the broker longer than a run of this test has."""
    try:
        header = decode_request_header(frame)
        if header.api_key == ApiKey.CREATE_TOPICS:
            request, _ = decode(create.CreateTopicsRequest, header.api_version, frame, header.body_position)
            return any(topic.num_partitions > FEW or len(topic.assignments) > FEW for topic in request.topics)
        if header.api_key == ApiKey.CREATE_PARTITIONS:
            wider, _ = decode(grow.CreatePartitionsRequest, header.api_version, frame, header.body_position)
            return any(topic.count > FEW for topic in wider.topics)
    except (ProtocolError, ValueError, KeyError):
        pass
    return False


class Attacker:
    def __init__(self, broker: Broker, topic_id: bytes, seed: int) -> None:
        self.chance = random.Random(seed)
        self._broker = broker
        self._topic_id = topic_id
        self._connection: RawClient | None = None

    def attack(self, row: Handler | None) -> str:
        """Sends one frame and waits a moment for what comes of it; says what it was."""
        chance = self.chance
        if row is None:
            frame = chance.randbytes(chance.choice((0, 1, 8, 12, 40, 1000)))
            if chance.random() < 0.5:
                frame = struct.pack(">hhi", chance.choice(HANDLERS).api_key, chance.randrange(20), 1) + frame
            label = "noise"
        else:
            version = chance.randint(row.min_version, row.max_version)
            values = PlausibleValues(str(chance.random()), self._topic_id)
            frame = encode_request(values.message(row.request, version), version, 1, "fuzz")[4:]
            label = f"{row.api_key.name} v{version}"
            if chance.random() < 0.7:
                frame = damage(frame, chance)
                label += " damaged"
        if not makes_many_partitions(frame):
            self._send(frame)
        return f"{label}: {frame[:2000].hex()}"

    def _send(self, frame: bytes) -> None:
        if self._connection is None:
            self._connection = RawClient(self._broker.bootstrap, timeout=0.03)
        try:
            self._connection.send_frame(frame)
            self._connection.socket.recv(1 << 16)
            if self.chance.random() < 0.95:
                return
        except TimeoutError:
            pass  # a fetch that waits, or a request without a response
        except (ConnectionEnded, OSError):
            pass
        self.close()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


class ErrorLog(logging.Handler):
    """Collects what the broker logged as an error, tracebacks included."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.lines: list[str] = []
        self.setFormatter(logging.Formatter("%(name)s: %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            self.lines.append(self.format(record))


@pytest.fixture
def errors() -> Iterator[ErrorLog]:
    handler = ErrorLog()
    for name in ("barnabas", "asyncio"):
        logging.getLogger(name).addHandler(handler)
    yield handler
    for name in ("barnabas", "asyncio"):
        logging.getLogger(name).removeHandler(handler)


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def check_bystander(bystander: RawClient) -> None:
    written = bystander.produce("bystander", batch(b"still here"))
    assert written.error_code == ErrorCode.NONE
    assert base_offsets(bystander.fetch("bystander", written.base_offset).records) == [written.base_offset]


def fuzz(seconds: float, errors: ErrorLog) -> None:
    seed = int(os.environ.get("BARNABAS_SEED", random.randrange(1 << 32)))
    print(f"seed {seed}")
    with Broker(SETTINGS) as broker, RawClient(broker.bootstrap) as bystander:
        bystander.create_topic("bystander")
        attacker = Attacker(broker, bystander.create_topic("fuzz", 3), seed)
        before = resident_bytes()
        end = time.monotonic() + seconds
        rows: list[Handler | None] = [*HANDLERS, None, None]
        while time.monotonic() < end:
            attacker.chance.shuffle(rows)
            for row in rows:
                sent = attacker.attack(row)
                assert not errors.lines, f"{sent}\n{errors.lines[0]}"
            check_bystander(bystander)
        attacker.close()
        check_bystander(bystander)
        growth = resident_bytes() - before
        assert growth < MEMORY_GROWTH_BYTES, f"{growth >> 20} MB more than before"
    assert not errors.lines, errors.lines[0]


def test_hostile_requests(errors: ErrorLog) -> None:
    fuzz(4, errors)


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_hostile_requests_for_long(errors: ErrorLog) -> None:
    fuzz(600, errors)


@pytest.mark.parametrize("count", [MAX_PARTITIONS_PER_REQUEST + 2, 2**31 - 1])
def test_an_absurd_number_of_partitions_takes_no_memory(count: int, errors: ErrorLog) -> None:
    with Broker() as broker, RawClient(broker.bootstrap) as client:
        client.create_topic("small")
        before = resident_bytes()
        wanted = create.CreatableTopic(name="huge", num_partitions=count, replication_factor=1)
        (response,) = client.ask(create.CreateTopicsRequest(topics=[wanted], timeout_ms=1000), 7).topics
        assert response.error_code != ErrorCode.NONE
        larger = grow.CreatePartitionsTopic(name="small", count=count, assignments=None)
        (response,) = client.ask(grow.CreatePartitionsRequest(topics=[larger], timeout_ms=1000), 3).results
        assert response.error_code != ErrorCode.NONE
        assert resident_bytes() - before < MEMORY_GROWTH_BYTES
    assert not errors.lines, errors.lines[0]


def test_connections_that_promise_large_frames_take_no_memory(errors: ErrorLog) -> None:
    with Broker(SETTINGS) as broker, RawClient(broker.bootstrap) as bystander:
        bystander.create_topic("bystander")
        before = resident_bytes()
        promising = [RawClient(broker.bootstrap) for _ in range(100)]
        for client in promising:
            client.send(struct.pack(">i", 2_000_000) + bytes(1000))
        check_bystander(bystander)
        assert resident_bytes() - before < 50 << 20
        for client in promising:
            client.close()
        check_bystander(bystander)
    assert not errors.lines, errors.lines[0]
