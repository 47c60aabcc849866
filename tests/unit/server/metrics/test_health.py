"""/health/ready says why not: starting, recovering, fenced, away, a failed disk. /health/live does not care."""

import asyncio
import http.client
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas.config.broker import BrokerConfig
from barnabas.metadata.stores.memory import MemoryStore
from barnabas.net.http_request import HttpRequest, HttpResponse
from barnabas.server.broker import LEAVING, RUNNING, STARTING, Broker, make_parts
from barnabas.server.metrics.endpoint import MetricsEndpoint


def stub(state: int = RUNNING, *, fenced: bool = False, registered: bool = True, offline: bool = False) -> Any:
    brokers = {1: SimpleNamespace(is_fenced=fenced)} if registered else {}
    return SimpleNamespace(
        node_id=1,
        state=state,
        cluster=SimpleNamespace(image=SimpleNamespace(brokers=brokers)),
        log_directories=SimpleNamespace(directories=[SimpleNamespace(is_offline=offline)]),
        record_work=None,
        timers=None,
        loop_idle_ns=lambda: None,
    )


def health(broker: Any, path: str) -> tuple[int, str]:
    async def main() -> tuple[int, str]:
        endpoint = MetricsEndpoint(broker, cast(Any, None), cast(Any, None))
        response = endpoint.handle(HttpRequest("GET", path, {}, keep_alive=True))
        assert isinstance(response, HttpResponse)
        return response.status, b"".join(response.parts).decode()

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("broker", "status", "why"),
    [
        (stub(), 200, "ok"),
        (stub(STARTING), 503, "starting"),
        (stub(LEAVING), 503, "stopping"),
        (stub(fenced=True), 503, "not in the cluster"),
        (stub(registered=False), 503, "not in the cluster"),
        (stub(offline=True), 503, "log directory"),
    ],
)
def test_ready(broker: Any, status: int, why: str) -> None:
    found, text = health(broker, "/health/ready")
    assert found == status and why in text
    assert health(broker, "/health/live")[0] == 200


def test_a_broker_is_alive_but_not_ready_while_it_recovers_its_logs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recovering, may_go_on = threading.Event(), threading.Event()

    async def main() -> list[tuple[int, int]]:
        config = BrokerConfig.parse(
            {
                "listeners": "PLAINTEXT://127.0.0.1:0",
                "node.id": "1",
                "log.dirs": str(tmp_path),
                "metrics.listener": "127.0.0.1:0",
            }
        )
        broker = Broker(make_parts(config, store=MemoryStore()))
        load = broker.log_directories.load

        def slow(*arguments: Any, **options: Any) -> Any:
            recovering.set()
            may_go_on.wait()
            return load(*arguments, **options)

        monkeypatch.setattr(broker.log_directories, "load", slow)
        starting = asyncio.create_task(broker.start())
        await asyncio.to_thread(recovering.wait)
        found = [await asyncio.to_thread(both, broker)]
        may_go_on.set()
        await starting
        found.append(await asyncio.to_thread(both, broker))
        await broker.stop()
        return found

    assert asyncio.run(main()) == [(200, 503), (200, 200)]


def both(broker: Broker) -> tuple[int, int]:
    address = broker.metrics.address
    assert address is not None
    statuses = []
    for path in ("/health/live", "/health/ready"):
        connection = http.client.HTTPConnection(*address, timeout=60)
        connection.request("GET", path)
        statuses.append(connection.getresponse().status)
        connection.close()
    return statuses[0], statuses[1]
