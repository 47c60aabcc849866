"""Replicas that move between the log directories of a broker: what a request begins, and how it ends."""

import errno
from pathlib import Path

import pytest
from broker_on_loop import append, make_topic, run_broker, set_config, until
from faulty_files import FaultyFiles
from storage_logs import read_all

from barnabas.clock import ManualClock
from barnabas.errors import ErrorCode
from barnabas.metadata.image import ConfigResource
from barnabas.server.broker import Broker
from barnabas.server.hosted_partition import HostedPartition
from barnabas.types import TopicPartition

T0 = TopicPartition("t", 0)


def two(tmp_path: Path) -> dict[str, str]:
    return {"log.dirs": f"{tmp_path / 'a'},{tmp_path / 'b'}"}


def other(tmp_path: Path, hosted: HostedPartition) -> str:
    a, b = str(tmp_path / "a"), str(tmp_path / "b")
    return b if hosted.log.directory.startswith(a + "/") else a


def fill(broker: Broker, hosted: HostedPartition, count: int = 50) -> None:
    for number in range(count):
        append(broker, hosted, b"%d" % number * 30_000, b"x")


async def moved(broker: Broker) -> None:
    """No move is under way, and the old folder is gone."""
    moves = broker.directory_moves
    await until(lambda: not len(moves) and not moves._ending)


def test_a_replica_moves(tmp_path: Path) -> None:
    async def scenario(broker: Broker, clock: ManualClock) -> None:
        hosted = await make_topic(broker, "t", segment_bytes="1048576")
        fill(broker, hosted)
        before, old, target = read_all(hosted.log), hosted.log, other(tmp_path, hosted)
        old_folder = Path(old.directory)
        assert broker.directory_moves.request(target, T0) is ErrorCode.NONE
        assert broker.directory_moves.request(target, T0) is ErrorCode.NONE, "it is being moved there"
        await moved(broker)
        assert hosted.log is not old and hosted.log.directory == f"{target}/t-0"
        assert [header[:] for header in read_all(hosted.log)] == [header[:] for header in before]
        assert hosted.log.high_watermark == 100 and hosted.log.leader_epochs.entries() == [(0, 0)]
        assert not old_folder.exists() and list(old_folder.parent.glob("t-0.*-delete"))
        assert not list(Path(target).glob("*-future")) and not (Path(target) / "t-0/barnabas-move").exists()
        fill(broker, hosted)
        assert hosted.log.log_end_offset == 200
        assert broker.directory_moves.request(target, T0) is ErrorCode.NONE, "it is there"

    run_broker(tmp_path, scenario, two(tmp_path))
