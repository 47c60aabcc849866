"""The parts of a Produce request put together are what the general encoder makes, in every version."""

from __future__ import annotations

import pytest

from barnabas.protocol import encode
from barnabas.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.protocol.produce_request import TopicBatches, encode_produce


@pytest.mark.parametrize("version", range(3, 14))
@pytest.mark.parametrize("transactional_id", [None, "tx", "x" * 200])
def test_equal_to_the_general_encoder(version: int, transactional_id: str | None) -> None:
    sizes = {"a": [5, 200], "übrigens": [70_000]}
    topics = {
        name: TopicBatches(
            name.encode()[:1] * 16, [(index, memoryview(bytes(size))) for index, size in enumerate(each)]
        )
        for name, each in sizes.items()
    }
    whole = ProduceRequest(
        transactional_id=transactional_id,
        acks=-1,
        timeout_ms=30_000,
        topic_data=[
            TopicProduceData(
                name=name,
                topic_id=topic.topic_id,
                partition_data=[
                    PartitionProduceData(index=index, records=bytes(data)) for index, data in topic.partitions
                ],
            )
            for name, topic in topics.items()
        ],
    )
    parts = encode_produce(version, transactional_id, -1, 30_000, topics)
    assert b"".join(parts) == encode(whole, version)
    assert any(part is topics["a"].partitions[1][1] for part in parts), "batches are not copied"
