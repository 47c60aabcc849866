"""Brokers of a FakeCluster that take Produce requests as real ones do: sequences are checked, replays recognized.

broker = ProduceBroker(cluster); broker.errors.append(ErrorCode.NOT_LEADER_OR_FOLLOWER); broker.values("t", 0)
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any

from fake_cluster import FakeCluster

from barnabas.errors import ErrorCode
from barnabas.protocol import ApiKey
from barnabas.protocol.messages.init_producer_id import InitProducerIdResponse
from barnabas.protocol.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from barnabas.records import read_header, read_records
from barnabas.types import TopicPartition


class ProduceBroker:
    def __init__(self, cluster: FakeCluster) -> None:
        self.cluster = cluster
        self.logs: dict[TopicPartition, list[bytes | None]] = defaultdict(list)
        self.batch_sizes: list[int] = []
        self.errors: deque[ErrorCode] = deque()
        """The next partitions of requests are refused with these."""
        self.former_leaders: set[int] = set()
        """These nodes lead nothing any more, and say so to whoever asks them."""
        self.decorate: Callable[[int, PartitionProduceResponse], None] | None = None
        """Changes a response for a partition before it is sent: (node id, response)."""
        self._next_sequence: dict[tuple[TopicPartition, int], tuple[int, int]] = {}
        self._written: dict[tuple[TopicPartition, int, int, int], int] = {}
        cluster.always(ApiKey.PRODUCE, self._on_produce)
        cluster.always(ApiKey.INIT_PRODUCER_ID, InitProducerIdResponse(producer_id=9, producer_epoch=0))

    def values(self, topic: str, partition: int = 0) -> list[bytes | None]:
        return self.logs[TopicPartition(topic, partition)]

    def forget(self, topic: str) -> None:
        """The topic was deleted, and is made again by whoever writes to it."""
        for tp in [each for each in self.logs if each.topic == topic]:
            del self.logs[tp]
        self._next_sequence = {key: value for key, value in self._next_sequence.items() if key[0].topic != topic}
        self._written = {key: value for key, value in self._written.items() if key[0].topic != topic}

    def _on_produce(self, node_id: int, request: Any) -> ProduceResponse:
        return ProduceResponse(
            responses=[
                TopicProduceResponse(
                    name=topic.name,
                    topic_id=topic.topic_id,
                    partition_responses=[
                        self._partition(node_id, topic.name or self.cluster.metadata.names[topic.topic_id], part)
                        for part in topic.partition_data
                    ],
                )
                for topic in request.topic_data
            ]
        )

    def _partition(self, node_id: int, topic: str, part: Any) -> PartitionProduceResponse:
        response = PartitionProduceResponse(index=part.index, error_code=0, base_offset=-1)
        if self.errors:
            response.error_code = self.errors.popleft()
        elif node_id in self.former_leaders:
            response.error_code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        else:
            self._append(TopicPartition(topic, part.index), bytes(part.records), response)
        if self.decorate is not None:
            self.decorate(node_id, response)
        return response

    def _append(self, tp: TopicPartition, records: bytes, response: PartitionProduceResponse) -> None:
        header = read_header(records)
        batch = (tp, header.producer_id, header.producer_epoch, header.base_sequence)
        if header.producer_id >= 0:
            if batch in self._written:
                response.base_offset = self._written[batch]
                return
            # As real brokers do: from a producer that the partition does not know any first sequence is taken.
            unknown = (header.producer_epoch, header.base_sequence)
            epoch, expected = self._next_sequence.get((tp, header.producer_id), unknown)
            if header.base_sequence != (expected if epoch == header.producer_epoch else 0):
                response.error_code = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
                return
            following = header.base_sequence + header.record_count
            self._next_sequence[tp, header.producer_id] = (header.producer_epoch, following)
        response.base_offset = self._written[batch] = len(self.logs[tp])
        self.batch_sizes.append(len(records))
        self.logs[tp] += [record.value for record in read_records(records)]
