"""The fake is held to the surface of the real thing: a test that passes with it must mean something."""

from __future__ import annotations

import asyncio
import inspect

import pytest
from fake_cluster import FakeCluster, lost

from barnabas.client.cluster_client import ClusterClient
from barnabas.client.errors import UnreachableError
from barnabas.protocol import ApiKey, encode
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


@pytest.mark.parametrize("name", [name for name in vars(ClusterClient) if not name.startswith("_")])
def test_it_has_every_public_method_with_the_same_signature(name: str) -> None:
    real, fake = getattr(ClusterClient, name), getattr(FakeCluster, name)
    assert _parameters(real) == _parameters(fake)
    assert inspect.iscoroutinefunction(real) == inspect.iscoroutinefunction(fake)


def _parameters(method: object) -> list[tuple[str, object, object]]:
    found = inspect.signature(method).parameters.values()  # type: ignore[arg-type]
    return [(parameter.name, parameter.kind, parameter.default) for parameter in found]


def test_it_responds_as_scripted_and_keeps_the_requests() -> None:
    async def run() -> None:
        cluster = FakeCluster(brokers=2, topics={"t": 3})
        cluster.answer(ApiKey.HEARTBEAT, HeartbeatResponse(error_code=27), lost())
        cluster.always(ApiKey.HEARTBEAT, lambda node_id, request: HeartbeatResponse(error_code=node_id))
        request = HeartbeatRequest(group_id="g")
        assert (await cluster.send(0, request)).error_code == 27
        with pytest.raises(UnreachableError):
            await cluster.send(0, request)
        body = await cluster.send_frame(1, ApiKey.HEARTBEAT, 4, [encode(request, 4)])
        assert bytes(body) == encode(HeartbeatResponse(error_code=1), 4)
        assert [node_id for node_id, _ in cluster.requests] == [0, 0, 1]
        assert [partition.leader for partition in cluster.metadata.topics["t"].partitions] == [0, 1, 0]

    asyncio.run(run())
