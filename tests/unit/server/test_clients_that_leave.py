"""A client that goes away while its fetch waits leaves nothing behind; a log that fails is an error, not a hang."""

import asyncio
from pathlib import Path

import pytest
from broker_on_loop import run_broker
from eventually import eventually
from raw_client import FETCH_VERSION, RawClient, fetch_request

from barnabas.clock import ManualClock
from barnabas.server import reading
from barnabas.server.broker import Broker
from barnabas.storage.log import Log

LONG_MS = 2**31 - 1


def test_a_long_poll_ends_with_its_connection(tmp_path: Path) -> None:
    async def scenario(broker: Broker, clock: ManualClock) -> None:
        client = await asyncio.to_thread(RawClient, broker.address)
        await asyncio.to_thread(client.create_topic, "t")
        client.post(fetch_request("t", 0, 0, max_wait_ms=LONG_MS, min_bytes=1), FETCH_VERSION)
        await asyncio.to_thread(eventually, lambda: len(broker.fetch_purgatory) == 1)
        client.close()
        await asyncio.to_thread(eventually, lambda: len(broker.fetch_purgatory) == 0)
        assert not broker.replicas.find("t", 0).waiting_fetches

    run_broker(tmp_path, scenario)


def test_an_unforeseen_fault_of_a_log_is_an_error_of_its_partition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("broken")

    async def scenario(broker: Broker, clock: ManualClock) -> None:
        with await asyncio.to_thread(RawClient, broker.address) as client:
            await asyncio.to_thread(client.create_topic, "t")
            monkeypatch.setattr(Log, "read", broken)
            data = await asyncio.to_thread(client.fetch, "t", 0)
            assert data.error_code == reading.ErrorCode.KAFKA_STORAGE_ERROR

    run_broker(tmp_path, scenario)
    assert "reading t-0 failed" in caplog.text
