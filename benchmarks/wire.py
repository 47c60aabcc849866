"""The minimal wire format for a load generator: a Produce v9 request with one record, built once, sent many times.

Built by hand instead of with the project's codecs, so that the load stays the same when they change.
"""

from __future__ import annotations

import socket
import struct
import time

import crc32c

PRODUCE, VERSION = 0, 9
NOT_LEADER = 6


def produce_request(topic: str, partition: int, value_size: int = 100, acks: int = 1) -> bytes:
    """With one record, which has no producer id: the same bytes may be sent repeatedly."""
    return produce_frame(topic, partition, one_record_batch(b"x" * value_size), acks)


def produce_frame(topic: str, partition: int, batch: bytes, acks: int = 1) -> bytes:
    """A whole frame with a ready batch."""
    header = struct.pack(">hhih5sB", PRODUCE, VERSION, 1, 5, b"bench", 0)
    body = struct.pack(">Bhi", 0, acks, 30_000)  # no transaction, acks, timeout
    body += b"\x02" + varint(len(topic) + 1) + topic.encode()
    body += b"\x02" + struct.pack(">i", partition) + varint(len(batch) + 1) + batch + b"\x00"
    frame = header + body + b"\x00\x00"
    return struct.pack(">i", len(frame)) + frame


def one_record_batch(value: bytes) -> bytes:
    now = int(time.time() * 1000)
    record = b"\x00\x00\x00\x01" + zigzag(len(value)) + value + b"\x00"  # no key, no headers
    sized = zigzag(len(record)) + record
    checked = struct.pack(">hiqqqhii", 0, 0, now, now, -1, -1, -1, 1) + sized
    after_length = struct.pack(">ibI", -1, 2, crc32c.crc32c(checked)) + checked
    return struct.pack(">qi", 0, len(after_length)) + after_length


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def zigzag(value: int) -> bytes:
    return varint(value << 1 if value >= 0 else (-value << 1) - 1)


def connect(bootstrap: str) -> socket.socket:
    host, _, port = bootstrap.rpartition(":")
    connection = socket.create_connection((host, int(port)), 30)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def answer_size(connection: socket.socket, request: bytes) -> int:
    """Send the request once and return the length of its response, prefix included; raises if it is rejected.

    Every later response to the same request has the same length: only a 64-bit offset changes. A topic may be in the
    metadata of a broker that does not lead it yet; then the request is sent again.
    """
    until = time.monotonic() + 30
    while True:
        connection.sendall(request)
        answer = read_answer(connection)
        topic_length = answer[10] - 1
        (error,) = struct.unpack_from(">h", answer, 10 + 1 + topic_length + 1 + 4)
        if not error:
            return len(answer)
        if error != NOT_LEADER or time.monotonic() > until:
            raise ValueError(f"the broker rejected the request: error {error}")
        time.sleep(0.05)


def read_answer(connection: socket.socket) -> bytes:
    answer = b""
    while len(answer) < 4 or len(answer) < 4 + struct.unpack_from(">i", answer)[0]:
        received = connection.recv(65536)
        if not received:
            raise ConnectionError("the broker closed the connection")
        answer += received
    return answer
