"""One broker for each file of bad input, and a bystander who must never notice.

The bystander holds one connection open for the whole file and works on it after every test: whatever the test sent,
that connection must still be there and be served.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from raw_client import RawClient, base_offsets, batch

from barnabas.errors import ErrorCode
from barnabas.testing import Broker


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    settings = {"socket.request.max.bytes": 1_000_000, "auto.create.topics.enable": False}
    with Broker(settings) as running:
        yield running


@pytest.fixture(scope="module")
def bystander(broker: Broker) -> Iterator[RawClient]:
    with RawClient(broker.bootstrap) as client:
        client.create_topic("bystander")
        yield client


@pytest.fixture(autouse=True)
def _others_never_notice(bystander: RawClient) -> Iterator[None]:
    yield
    written = bystander.produce("bystander", batch(b"still here"))
    assert written.error_code == ErrorCode.NONE
    assert base_offsets(bystander.fetch("bystander", written.base_offset).records) == [written.base_offset]


@pytest.fixture
def client(broker: Broker) -> Iterator[RawClient]:
    with RawClient(broker.bootstrap) as connection:
        yield connection


@pytest.fixture
def topic(bystander: RawClient, request: pytest.FixtureRequest) -> str:
    name = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)[:200]
    bystander.create_topic(name)
    return name
