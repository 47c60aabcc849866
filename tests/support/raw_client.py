"""A client that sends what it is told, right or wrong: one blocking socket and the compiled codecs.

For tests of what a broker does with requests that no proper client would send. Waiting is bounded by the socket's
time-out, so that a broker that neither responses nor closes fails the test.
"""

from __future__ import annotations

import socket
import struct
import sys
import time
from typing import Any, Self

from barnabas.errors import ErrorCode
from barnabas.protocol import decode, decode_response_header, encode_request
from barnabas.protocol.messages import create_topics as create
from barnabas.protocol.messages import fetch as fetching
from barnabas.protocol.messages import metadata as meta
from barnabas.protocol.messages import produce as producing
from barnabas.records import BatchBuilder, iter_headers

CLIENT_ID = "raw"
PRODUCE_VERSION = 12
FETCH_VERSION = 12


class ConnectionEnded(Exception):
    """The broker closed the connection instead of responding."""


class RawClient:
    def __init__(self, bootstrap: str, timeout: float = 60.0) -> None:
        host, _, port = bootstrap.rpartition(":")
        self.socket = socket.create_connection((host.strip("[]"), int(port)), timeout)
        self._correlation_id = 0
        self.client_id = CLIENT_ID

    # ---- bytes

    def send(self, data: bytes) -> None:
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError) as error:
            raise ConnectionEnded from error

    def send_frame(self, payload: bytes) -> None:
        self.send(struct.pack(">i", len(payload)) + payload)

    def read_frame(self) -> bytes:
        (size,) = struct.unpack(">i", self._read_exactly(4))
        return self._read_exactly(size)

    def _read_exactly(self, count: int) -> bytes:
        received = bytearray()
        while len(received) < count:
            try:
                chunk = self.socket.recv(count - len(received))
            except ConnectionResetError as error:
                raise ConnectionEnded from error
            if not chunk:
                raise ConnectionEnded
            received += chunk
        return bytes(received)

    def is_closed_by_broker(self) -> bool:
        """Waits for the end of the connection; False if a response comes instead."""
        try:
            return not self.socket.recv(1)
        except ConnectionResetError:
            return True

    # ---- messages

    def post(self, request: Any, version: int) -> int:
        """Sends without waiting for the response; gives the correlation id."""
        self._correlation_id += 1
        self.send(encode_request(request, version, self._correlation_id, self.client_id))
        return self._correlation_id

    def answer(self, request: type[Any], version: int) -> Any:
        """The next response, as one to a request of this kind."""
        response = response_class(request)
        frame = self.read_frame()
        self.last_correlation_id, position = decode_response_header(response, version, frame)
        message, end = decode(response, version, frame, position)
        assert end == len(frame), f"{len(frame) - end} bytes after the answer"
        return message

    def ask(self, request: Any, version: int) -> Any:
        correlation_id = self.post(request, version)
        answer = self.answer(type(request), version)
        assert self.last_correlation_id == correlation_id
        return answer

    # ---- everyday requests

    def create_topic(self, name: str, partitions: int = 1, **configs: str) -> bytes:
        """Gives the topic id. Settings are spelled with underscores."""
        wanted = create.CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=1,
            configs=[
                create.CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()
            ],
        )
        (answer,) = self.ask(create.CreateTopicsRequest(topics=[wanted], timeout_ms=30_000), 7).topics
        assert answer.error_code == 0, (answer.error_code, answer.error_message)
        topic_id: bytes = answer.topic_id
        return topic_id

    def produce(
        self,
        topic: str | bytes,
        records: bytes | bytearray | None,
        *,
        partition: int = 0,
        acks: int = -1,
        version: int | None = None,
        timeout_ms: int = 30_000,
    ) -> Any:
        """One batch to one partition, by topic name or topic id; gives the partition's response."""
        request = produce_request(topic, records, partition, acks, timeout_ms)
        if version is None:
            version = 13 if isinstance(topic, bytes) else PRODUCE_VERSION
        if acks == 0:
            self.post(request, version)
            return None
        ((answer,),) = [each.partition_responses for each in self.ask(request, version).responses]
        return answer

    def fetch(
        self, topic: str | bytes, offset: int, *, partition: int = 0, version: int | None = None, **options: Any
    ) -> Any:
        """One partition without a session, by topic name or topic id; gives the partition's response."""
        request = fetch_request(topic, offset, partition, **options)
        if version is None:
            version = 18 if isinstance(topic, bytes) else FETCH_VERSION
        answer = self.ask(request, version)
        assert answer.error_code == 0, answer.error_code
        ((data,),) = [each.partitions for each in answer.responses]
        return data

    def metadata(self) -> Any:
        return self.ask(meta.MetadataRequest(topics=None, allow_auto_topic_creation=False), 12)

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def response_class(request: type[Any]) -> type[Any]:
    module = sys.modules[request.__module__]
    found: type[Any] = getattr(module, request.__name__.removesuffix("Request") + "Response")
    return found


def produce_request(
    topic: str | bytes, records: bytes | bytearray | None, partition: int = 0, acks: int = -1, timeout_ms: int = 30_000
) -> producing.ProduceRequest:
    data = producing.PartitionProduceData(index=partition, records=None if records is None else bytes(records))
    named = {"topic_id": topic} if isinstance(topic, bytes) else {"name": topic}
    return producing.ProduceRequest(
        acks=acks,
        timeout_ms=timeout_ms,
        topic_data=[producing.TopicProduceData(partition_data=[data], **named)],  # type: ignore[arg-type]
    )


def fetch_request(
    topic: str | bytes,
    offset: int,
    partition: int = 0,
    *,
    current_leader_epoch: int = -1,
    last_fetched_epoch: int = -1,
    partition_max_bytes: int = 1 << 20,
    max_bytes: int = 1 << 26,
    min_bytes: int = 0,
    max_wait_ms: int = 0,
    isolation_level: int = 0,
    replica_id: int = -1,
) -> fetching.FetchRequest:
    wanted = fetching.FetchPartition(
        partition=partition,
        fetch_offset=offset,
        current_leader_epoch=current_leader_epoch,
        last_fetched_epoch=last_fetched_epoch,
        partition_max_bytes=partition_max_bytes,
    )
    named = {"topic_id": topic} if isinstance(topic, bytes) else {"topic": topic}
    follower: dict[str, object] = {"replica_id": replica_id}
    if isinstance(topic, bytes):
        follower = {"replica_state": fetching.ReplicaState(replica_id=replica_id)}
    return fetching.FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation_level,
        topics=[fetching.FetchTopic(partitions=[wanted], **named)],  # type: ignore[arg-type]
        **follower,  # type: ignore[arg-type]
    )


def batch(*values: bytes | None, key: bytes | None = b"k", timestamp: int | None = None, **options: Any) -> bytearray:
    """A record batch as a producer sends it; options are the builder's (compression, producer_id, ...)."""
    builder = BatchBuilder(**options)
    when = time.time_ns() // 1_000_000 if timestamp is None else timestamp
    for value in values or (b"value",):
        builder.append(when, key, value)
    return builder.build()


def base_offsets(records: bytes | memoryview | None) -> list[int]:
    return [header.base_offset for _, header in iter_headers(bytes(records or b""))]


def code(answer: Any) -> str:
    """The name of a response's error code, which reads better than the number when a test fails."""
    return ErrorCode(answer.error_code).name
