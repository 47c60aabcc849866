"""Offsets for a transaction: what is of no use is refused in the call and leaves the transaction as it was."""

import asyncio
from typing import Any

import pytest

from barnabas.client.consumer.group import GroupMetadata
from barnabas.client.consumer.offsets import OffsetAndMetadata
from barnabas.client.producer.core import ProducerCore


class Transactions:
    def __init__(self) -> None:
        self.sent: list[Any] = []

    async def send_offsets(self, offsets: Any, group: GroupMetadata) -> None:
        self.sent.append(offsets)


@pytest.fixture
def transactions() -> Transactions:
    return Transactions()


def send(transactions: Transactions, offsets: Any) -> None:
    core = object.__new__(ProducerCore)
    core._transactional = lambda: transactions  # type: ignore[method-assign, return-value, assignment]
    asyncio.run(core.send_offsets(offsets, GroupMetadata("g")))


@pytest.mark.parametrize(
    ("offsets", "kind"),
    [
        ({("t", 0): -5}, ValueError),
        ({("t", 0): OffsetAndMetadata(-5)}, ValueError),
        ({("t", 0): 2**63}, ValueError),
        ({("t", 0): "5"}, TypeError),
        ({("t", "0"): 5}, TypeError),
    ],
)
def test_offsets_that_cannot_be_stored(transactions: Transactions, offsets: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        send(transactions, offsets)
    assert transactions.sent == []


def test_offsets_by_number_or_with_their_text(transactions: Transactions) -> None:
    send(transactions, {("t", 0): 5, ("t", 1): OffsetAndMetadata(6, "note", 1)})
    assert transactions.sent == [{("t", 0): OffsetAndMetadata(5), ("t", 1): OffsetAndMetadata(6, "note", 1)}]
