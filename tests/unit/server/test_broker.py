"""A broker is made whole before it starts: whatever fails, everything is released, and another one may start."""

import asyncio
import gc
import socket
import sys
from pathlib import Path

import pytest

from barnabas import testing
from barnabas.config.broker import BrokerConfig
from barnabas.metadata.stores.memory import MemoryStore
from barnabas.server.broker import Broker, StartError, UnknownStoreError, make_parts


def config(directory: Path, **settings: str) -> BrokerConfig:
    given = {name.replace("_", "."): value for name, value in settings.items()}
    return BrokerConfig.parse({"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(directory), **given})


def test_making_one_opens_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        broker = Broker(make_parts(config(tmp_path / "data")))
        assert broker.replicas and broker.cluster and broker.groups and broker.transactions
        assert not (tmp_path / "data").exists()

    asyncio.run(scenario())


def test_a_start_that_fails_releases_everything(tmp_path: Path) -> None:
    async def scenario() -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            listener = f"PLAINTEXT://127.0.0.1:{taken.getsockname()[1]}"
            with pytest.raises(StartError, match="cannot listen on"):
                await Broker(make_parts(config(tmp_path, listeners=listener))).start()
        (tmp_path / "other").mkdir()
        (tmp_path / "other" / "metadata.db").write_bytes(b"no database" * 100)
        with pytest.raises(StartError, match="damaged"):
            await Broker(make_parts(config(tmp_path), metadata=tmp_path / "other" / "metadata.db")).start()
        last = Broker(make_parts(config(tmp_path)))
        await last.start()
        await last.stop()

    asyncio.run(scenario())


def test_a_directory_in_use(tmp_path: Path) -> None:
    async def scenario() -> None:
        first = Broker(make_parts(config(tmp_path), store=MemoryStore()))
        await first.start()
        with pytest.raises(StartError, match="in use"):
            await Broker(make_parts(config(tmp_path), store=MemoryStore())).start()
        await first.stop()

    asyncio.run(scenario())


def test_a_location_that_names_no_store(tmp_path: Path) -> None:
    async def scenario() -> None:
        with pytest.raises(UnknownStoreError, match="consul"):
            make_parts(config(tmp_path), metadata="consul:host")

    asyncio.run(scenario())


@pytest.mark.skipif(sys.platform != "linux", reason="the selector needs epoll")
def test_the_testing_broker_runs_on_the_loop_that_ships_and_leaves_the_process_alone() -> None:
    from barnabas.net.polling import EagerSelector

    before = gc.get_threshold(), gc.get_freeze_count()
    with testing.Broker() as broker:
        assert isinstance(broker._thread._loop._selector, EagerSelector)  # type: ignore[union-attr]
        assert (gc.get_threshold(), gc.get_freeze_count()) == before
