"""What the collector says of a cluster that does not respond."""

import asyncio

import pytest

from barnabas.console.clients import Clients
from barnabas.console.collector import Collector


@pytest.fixture
def collector() -> Collector:
    async def make() -> Collector:
        made = Collector(Clients({"bootstrap.servers": "127.0.0.1:1"}))
        await made.close()
        return made

    return asyncio.run(make())


def test_before_the_first_answer_a_fault_is_shown_at_once(collector: Collector) -> None:
    collector._on_outcome("metadata", "nobody listens")
    assert collector.view.error == "nobody listens"


def test_one_failure_is_tried_again_before_it_is_shown(collector: Collector) -> None:
    collector.first_look.set()
    collector._on_outcome("offsets", "too slow")
    assert collector.view.error is None
    collector._on_outcome("offsets", None)
    collector._on_outcome("offsets", "too slow")
    assert collector.view.error is None
    collector._on_outcome("offsets", "still too slow")
    assert collector.view.error == "still too slow"


def test_a_question_that_succeeds_does_not_hide_one_that_fails(collector: Collector) -> None:
    collector.first_look.set()
    for _ in range(2):
        collector._on_outcome("groups", "no rights")
        collector._on_outcome("metadata", None)
    assert collector.view.error == "no rights"
    collector._on_outcome("groups", None)
    assert (collector.view.error, collector.view.error_since) == (None, None)
