"""A follower whose leader's log starts within a batch, since DeleteRecords may cut one there."""

import gc
from pathlib import Path
from typing import Any, cast

import pytest
from faulty_files import FaultyFiles
from storage_logs import NOW, make_batch, small_config

from barnabas.machines.controller.image import PartitionImage
from barnabas.machines.partition import PartitionState
from barnabas.records.header import patch_in_place
from barnabas.server.hosted_partition import HostedPartition
from barnabas.storage.log_directories import LogDirectories
from barnabas.types import TopicId, TopicPartition

T0 = TopicPartition("t", 0)
NOTHING = cast(Any, None)


def opened(folder: Path, files: FaultyFiles) -> LogDirectories:
    directories = LogDirectories([str(folder / "a")], files=files)
    directories.acquire()
    directories.identify(2, "cluster")
    directories.load(lambda _: small_config(), NOW)
    return directories


@pytest.mark.parametrize("seed", range(8))
def test_a_power_loss_after_the_first_batch_is_no_damage(tmp_path: Path, seed: int) -> None:
    """The empty log had been flushed up to the leader's start: the batch begins below it, and was never flushed."""
    files = FaultyFiles()
    directories = opened(tmp_path, files)
    log = directories.create_log(T0, TopicId(b"t" * 16), small_config(), NOW)
    directories.truncate_fully_and_start_at(log, 10, NOW)
    log.flush()
    directories.checkpoint_recovery_points()
    state = PartitionState(2)
    state.apply(PartitionImage(0, (1, 2), (1, 2), 1, 0, 0), 10, 10)
    hosted = HostedPartition(log, state, NOTHING, NOTHING, NOTHING)
    batch = make_batch(10, size=100)
    patch_in_place(batch, 0, 5, 0)
    hosted.append_as_follower(batch, 0, 10, 10, NOW)
    assert (log.log_start_offset, log.log_end_offset) == (10, 15)
    directories.release()
    del directories, log, hosted
    gc.collect()
    files.lose_power(str(tmp_path), seed)
    assert opened(tmp_path, FaultyFiles()).damaged == {}
