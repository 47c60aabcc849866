"""What every test level shares: tests that need Apache Kafka skip, with the reason, where it cannot run."""

from __future__ import annotations

import logging

import pytest
from kafka_process import why_no_kafka


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reason = why_no_kafka()
    if reason is None:
        return
    for item in items:
        if item.get_closest_marker("java"):
            item.add_marker(pytest.mark.skip(reason=reason))


def pytest_runtest_teardown() -> None:
    """A command that ran in this process has silenced the package's log, as it may in a process of its own."""
    logging.getLogger("barnabas").setLevel(logging.NOTSET)
