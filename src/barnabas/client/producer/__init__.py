"""The producer: records in, acknowledged batches out.

    send -> intake (serialize, partition) -> accumulator (batches) -> sender (requests) -> outcomes -> Delivery

`user_calls`, `intake` and `accumulator` run in the threads of users, the rest on the producer's own I/O thread.
`identity` and `sequences` keep retries from doubling or reordering records, `transactions` binds them together.
"""

from barnabas.client.producer.delivery import RecordMetadata
from barnabas.client.producer.fast_path import Delivery
from barnabas.client.producer.partitioner import Partitioner
from barnabas.client.producer.producer import Producer
from barnabas.client.producer.record import ProducerRecord

__all__ = ["Delivery", "Partitioner", "Producer", "ProducerRecord", "RecordMetadata"]
