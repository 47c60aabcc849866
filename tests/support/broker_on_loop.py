"""A broker on the test's own loop, with a clock that stands still: for jobs that come round by time.

def test_something(tmp_path: Path) -> None:
    async def scenario(broker: Broker, clock: ManualClock) -> None: ...
    run_broker(tmp_path, scenario, {"log.retention.ms": "1000"})
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

from raw_client import batch

from barnabas.clock import ManualClock
from barnabas.config.broker import BrokerConfig
from barnabas.machines.controller.commands import ConfigChange, ConfigOperation, NewTopic
from barnabas.metadata.image import ConfigResource
from barnabas.metadata.stores.memory import MemoryStore
from barnabas.server.broker import Broker, make_parts
from barnabas.server.hosted_partition import HostedPartition
from barnabas.storage.files import Files
from barnabas.storage.log import AppendInfo

Scenario = Callable[[Broker, ManualClock], Coroutine[Any, Any, None]]


def run_broker(
    directory: Path,
    scenario: Scenario,
    settings: Mapping[str, str] | None = None,
    *,
    store: MemoryStore | None = None,
    clock: ManualClock | None = None,
    files: Files | None = None,
) -> None:
    """`store` and `clock` may be handed from one run to the next, for restarts."""
    clock = clock or ManualClock()
    given = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.dirs": str(directory), "node.id": "0", **(settings or {})}

    async def main() -> None:
        broker = Broker(make_parts(BrokerConfig.parse(given), store=store or MemoryStore(), clock=clock, files=files))
        await broker.start()
        try:
            await scenario(broker, clock)
        finally:
            await broker.stop()

    asyncio.run(main())


async def make_topic(broker: Broker, name: str, partitions: int = 1, **configs: str) -> HostedPartition:
    """Creates it and gives its first partition; settings are spelled with underscores."""
    given = tuple((key.replace("_", "."), value) for key, value in configs.items())
    (result,) = await broker.controller.create_topics([NewTopic(name, partitions, 1, configs=given)])
    assert not result.error, result
    return broker.replicas.find(name, 0)


async def set_config(broker: Broker, resource: ConfigResource, name: str, value: str | None) -> None:
    operation = ConfigOperation.DELETE if value is None else ConfigOperation.SET
    (result,) = await broker.controller.incremental_alter_configs([(resource, [ConfigChange(name, operation, value)])])
    assert not result.error, result


def append(broker: Broker, hosted: HostedPartition, *values: bytes, **options: Any) -> AppendInfo:
    now_ms = broker.clock.now_ms()
    records = batch(*values, timestamp=options.pop("timestamp", now_ms), **options)
    return hosted.append(memoryview(records), -1, now_ms)


async def until(condition: Callable[[], bool]) -> None:
    """For what a thread or a timer of the broker brings about, of which there is no event to await."""
    async with asyncio.timeout(30):
        for _ in iter(condition, True):
            await asyncio.sleep(0.002)
