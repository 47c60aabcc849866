"""A follower that has to cut its log while the disk is full: the checkpoint that comes first cannot be written."""

import asyncio
import errno
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import pytest
from broker_on_loop import until
from faulty_files import FaultyFiles
from storage_logs import NOW, append, make_batch, small_config

from barnabas.clock import ManualClock
from barnabas.config.broker import BrokerConfig
from barnabas.machines.controller.image import PartitionImage
from barnabas.machines.partition import PartitionState
from barnabas.machines.replica_fetch import Phase
from barnabas.server.hosted_partition import HostedPartition
from barnabas.server.leader_fetcher import LeaderFetcher
from barnabas.server.truncations import Truncations
from barnabas.storage.log_directories import LogDirectories
from barnabas.types import NodeId, TopicId, TopicPartition

T0 = TopicPartition("t", 0)


class Throttle:
    def is_exceeded(self) -> bool:
        return False


class Timers:
    def call_at(self, when_ms: int, callback: Any) -> None:
        pass


class Link:
    def post(self, *_: object) -> "Link":
        return self

    def when_done(self, _: object) -> None:
        pass


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_it_is_tried_again_unless_the_disk_has_failed(tmp_path: Path, code: int) -> None:
    async def scenario() -> None:
        files, clock = FaultyFiles(), ManualClock()
        directories = LogDirectories([str(tmp_path / "a")], files=files)
        directories.acquire()
        directories.identify(2, "cluster")
        directories.load(lambda _: small_config(), NOW)
        log = directories.create_log(T0, TopicId(b"t" * 16), small_config(), NOW)
        append(log, make_batch(2))
        append(log, make_batch(2))
        log.flush()
        state = PartitionState(2)
        state.apply(PartitionImage(0, (1, 2), (1, 2), 1, 1, 1), 4, 4)
        nothing = cast(Any, None)
        hosted = HostedPartition(log, state, nothing, nothing, nothing)
        with ThreadPoolExecutor(1) as executor:
            fetcher = LeaderFetcher(
                1,
                NodeId(2),
                link=cast(Any, lambda _: Link()),
                config=BrokerConfig,
                clock=clock,
                timers=cast(Any, Timers()),
                truncations=Truncations(directories, clock, executor),
                throttle=cast(Any, Throttle()),
                broker_epoch=lambda: 1,
            )
            fetcher.follow(hosted)
            (followed,) = fetcher._machine.partitions.values()
            files.error = ("write", "recovery-point", code)
            fetcher._truncate(followed, hosted, 2)
            await until(lambda: followed.phase is not Phase.BUSY)
        assert log.log_end_offset == 4
        assert followed.phase is (Phase.DELAYED if code == errno.ENOSPC else Phase.FAILED)

    asyncio.run(scenario())
