"""Records counted by batch: acknowledged, failed, and what a split batch makes of them."""

from __future__ import annotations

from barnabas import Producer
from barnabas.cli.data.deliveries import Deliveries
from barnabas.client.errors import RecordTooLargeError
from barnabas.testing import Broker


def test_all_are_counted_once() -> None:
    with Broker({"num.partitions": 3}) as broker, Producer(broker.bootstrap, batch_size=500) as producer:
        deliveries = Deliveries()
        for start in range(0, 1000, 100):
            keys = [b"%d" % number for number in range(start, start + 100)]
            deliveries.add([producer.send("t", b"x" * 20, key) for key in keys])
            deliveries.settle()
            assert 0 <= deliveries.acknowledged <= start + 100
        producer.flush()
        deliveries.settle()
        assert (deliveries.acknowledged, deliveries.failed, deliveries.first_error) == (1000, 0, None)


def test_of_a_batch_that_was_split_each_record_counts_for_itself() -> None:
    """The broker takes small batches only: of three records one is too large even alone."""
    with Broker({"message.max.bytes": 300}) as broker:
        with Producer(broker.bootstrap, batch_size=10_000, linger_ms=60_000) as producer:
            deliveries = Deliveries()
            deliveries.add([producer.send("t", value) for value in (b"a" * 150, b"b" * 400, b"c" * 150)])
            deliveries.settle()
            assert (deliveries.acknowledged, deliveries.failed) == (0, 0)
            producer.flush()
            deliveries.settle()
        assert (deliveries.acknowledged, deliveries.failed) == (2, 1)
        assert isinstance(deliveries.first_error, RecordTooLargeError)
