"""What every test level shares: tests that need Apache Kafka skip, with the reason, where it cannot run."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings
from kafka_process import why_no_kafka
from secret_watch import SecretWatch

# The same tests run against Barnabas and against Apache Kafka; of these folders the second half takes minutes.
SLOW_WITH_KAFKA = (
    "tests/integration/client/admin",
    "tests/integration/client/consumer",
    "tests/integration/client/group",
    "tests/integration/client/core",
    "tests/integration/cli/",
    "tests/clients/test_kafka_data_commands",
    "tests/integration/client/producer",
)
# What every run has our client judged by.
QUICK_WITH_KAFKA = "tests/integration/client/producer/test_send.py"
# Files are handed out one by one: with the longest first, no worker is left alone with one of them at the end.
LONGEST_FIRST = ("tests/spark", "tests/integration", "tests/clients", "tests/sim")


# A busy machine is not a fault of what is tested. Each run has new examples: many runs see many.
settings.register_profile("untimed", deadline=None, max_examples=50)
settings.load_profile("untimed")


def pytest_configure() -> None:
    """Programs that tests stop with Ctrl-C inherit whether it counts; run in the background it would not."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reason = why_no_kafka()
    for item in items:
        if item.get_closest_marker("java"):
            if reason is not None:
                item.add_marker(pytest.mark.skip(reason=reason))
            if item.nodeid.startswith(SLOW_WITH_KAFKA) and not item.nodeid.startswith(QUICK_WITH_KAFKA):
                item.add_marker(pytest.mark.soak)
    items.sort(key=_rank)


def _rank(item: pytest.Item) -> int:
    ranks = (rank for rank, folder in enumerate(LONGEST_FIRST) if item.nodeid.startswith(folder))
    return next(ranks, len(LONGEST_FIRST))


@pytest.fixture
def secret_watch() -> Iterator[SecretWatch]:
    """Fails a test that has let a secret out, into a log for instance."""
    with SecretWatch() as watch:
        yield watch
