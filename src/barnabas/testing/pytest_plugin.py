"""pytest fixtures that come with the package; nothing is imported until one is used."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from barnabas.testing.broker import Broker


@pytest.fixture
def barnabas_broker() -> "Iterator[Broker]":
    """A broker of the test's own; `barnabas_broker.bootstrap` is its address."""
    from barnabas.testing.broker import Broker

    with Broker() as broker:
        yield broker
