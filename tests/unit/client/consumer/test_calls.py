"""Calls of a consumer with what is of no use: refused where they are made, not silent and not blamed on the broker."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from fake_cluster import FakeCluster

from barnabas.client.consumer.core import ConsumerCore
from barnabas.client.consumer.hooks import RebalanceListener
from barnabas.client.consumer.offsets import OffsetAndMetadata
from barnabas.client.options import ConsumerOptions
from barnabas.client.user_side import BlockingSide
from barnabas.types import TopicPartition

A = TopicPartition("t", 0)
Call = Callable[[ConsumerCore], Any]


@pytest.fixture
def core() -> Iterator[ConsumerCore]:
    side = BlockingSide()
    made = ConsumerCore(ConsumerOptions.of("x:1", group_id="g"), side, cluster=FakeCluster(topics={"t": 2}))  # type: ignore[arg-type]
    yield made
    side.run(made.close(commit=False))


def run(core: ConsumerCore, call: Call) -> Any:
    made = call(core)
    return made if made is None or not hasattr(made, "send") else core.calls.side.run(made)  # type: ignore[attr-defined]


SUBSCRIBED: list[tuple[Call, type[Exception], str]] = [
    (lambda core: core.subscriptions.subscribe([1]), TypeError, "a str, not 1"),  # type: ignore[list-item]
    (lambda core: core.subscriptions.subscribe([None]), TypeError, "a str, not None"),  # type: ignore[list-item]
    (lambda core: core.subscriptions.subscribe(["t", ""]), ValueError, "not empty"),
    (lambda core: core.subscriptions.subscribe(re.compile(b"t")), TypeError, "text"),  # type: ignore[arg-type]
    (lambda core: core.subscriptions.assign([("t", "0")]), TypeError, "whole number"),  # type: ignore[list-item]
    (lambda core: core.subscriptions.assign([("t", None)]), TypeError, "whole number"),  # type: ignore[list-item]
    (lambda core: core.subscriptions.assign([("t", -1)]), ValueError, "not negative"),
    (lambda core: core.subscriptions.subscribe(["t"], print), TypeError, "RebalanceListener"),  # type: ignore[arg-type]
    (lambda core: core.subscriptions.subscribe(["t"], RebalanceListener), TypeError, "RebalanceListener"),  # type: ignore[arg-type]
]
ASSIGNED: list[tuple[Call, type[Exception], str]] = [
    (lambda core: core.positions.seek(A, 1.5), TypeError, "whole number, not 1.5"),  # type: ignore[arg-type]
    (lambda core: core.positions.seek(A, 2**63), ValueError, "at most"),
    (lambda core: core.positions.seek(A, -1), ValueError, "not negative: -1; for the ends see seek_to_beginning"),
    (lambda core: core.subscriptions.pause([("t", "0")]), TypeError, "whole number"),  # type: ignore[list-item]
    (lambda core: core.positions.position(("t", "0")), TypeError, "whole number"),  # type: ignore[arg-type]
    (lambda core: core.positions.seek_to_time(1.5), TypeError, "milliseconds"),  # type: ignore[arg-type]
    (lambda core: core.lookups.offsets_for_times({A: 1.5}), TypeError, "milliseconds"),  # type: ignore[dict-item]
    (lambda core: core.lookups.offsets_for_times({A: -1}), ValueError, "not negative"),
    (lambda core: core.commits.commit({A: "5"}), TypeError, "whole number"),  # type: ignore[dict-item]
    (lambda core: core.commits.commit({A: -5}), ValueError, "not negative"),
    (lambda core: core.commits.commit({A: OffsetAndMetadata(-5)}), ValueError, "not negative"),
    (lambda core: core.commits.commit_async({A: -5}), ValueError, "not negative"),
    (lambda core: core.commits.committed([("t", "0")]), TypeError, "whole number"),  # type: ignore[list-item]
    (lambda core: core.commits.committed(timeout="1"), TypeError, "seconds"),  # type: ignore[arg-type]
    (lambda core: core.commits.commit_async({A: 5}, "later"), TypeError, "callback"),  # type: ignore[arg-type]
    (lambda core: core.lookups.offsets_for_times([A]), TypeError, "by partition"),  # type: ignore[arg-type]
    (lambda core: core.lookups.partitions_for(None), TypeError, "a str, not None"),  # type: ignore[arg-type]
    (lambda core: core.polling.poll("1"), TypeError, "seconds, not '1'"),  # type: ignore[arg-type]
    (lambda core: core.polling.poll(timedelta(seconds=1)), TypeError, "seconds"),  # type: ignore[arg-type]
    (lambda core: core.polling.poll(0, 1.5), TypeError, "whole number, not 1.5"),  # type: ignore[arg-type]
    (lambda core: core.polling.poll(0, "5"), TypeError, "whole number"),  # type: ignore[arg-type]
    (lambda core: core.polling.poll(0, 0), ValueError, "at least 1"),
]


@pytest.mark.parametrize(("call", "kind", "words"), SUBSCRIBED)
def test_what_to_read(core: ConsumerCore, call: Call, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        run(core, call)
    core.subscriptions.assign([A])  # nothing was taken over


@pytest.mark.parametrize(("call", "kind", "words"), ASSIGNED)
def test_where_to_read_and_what_to_commit(core: ConsumerCore, call: Call, kind: type[Exception], words: str) -> None:
    core.subscriptions.assign([A])
    with pytest.raises(kind, match=words):
        run(core, call)


def test_no_partition_named_is_none_of_them_and_not_all(core: ConsumerCore) -> None:
    """What a listener is given may be empty: in a cooperative rebalance that takes and brings nothing."""
    core.subscriptions.assign([A])
    core.positions.seek(A, 5)
    core.positions.seek_to_beginning(())
    core.positions.seek_to_end([])
    run(core, lambda core: core.positions.seek_to_time(7, ()))
    assert core.commits.consumed() == {A: OffsetAndMetadata(5)}
    assert run(core, lambda core: core.commits.committed([])) == {}
    assert run(core, lambda core: core.positions.lag(())) == {}
    core.positions.seek_to_beginning()
    assert core.commits.consumed() == {}
