"""Replicas that move between the log directories of a broker: what a request begins, and how it ends."""

import asyncio
import errno
import threading
from pathlib import Path
from typing import Any, NoReturn

import pytest
from broker_on_loop import append, make_topic, run_broker, set_config, until
from faulty_files import FaultyFiles
from storage_logs import read_all

from barnabas.clock import ManualClock
from barnabas.errors import ErrorCode, KafkaError, StorageError
from barnabas.machines.controller.commands import TopicToDelete
from barnabas.metadata.image import ConfigResource
from barnabas.metadata.stores.memory import MemoryStore
from barnabas.server.broker import Broker
from barnabas.server.hosted_partition import HostedPartition
from barnabas.storage.log_directory import LogDirectory
from barnabas.types import TopicPartition

T0 = TopicPartition("t", 0)
A_LOT = 1 << 40
SEGMENT = {"segment_bytes": "1048576"}


def settings(tmp_path: Path, **more: str) -> dict[str, str]:
    given = {key.replace("_", "."): value for key, value in more.items()}
    return {"log.dirs": f"{tmp_path / 'a'},{tmp_path / 'b'}", "replica.fetch.backoff.ms": "5", **given}


def places(broker: Broker, hosted: HostedPartition) -> tuple[LogDirectory, LogDirectory]:
    """Where the log is, and where it is not."""
    source = broker.log_directories.directory_of(hosted.log)
    return source, next(each for each in broker.log_directories.directories if each is not source)


def fill(broker: Broker, hosted: HostedPartition, count: int = 50) -> None:
    for number in range(count):
        append(broker, hosted, b"%d" % number * 30_000, b"x")


def request(broker: Broker, target: LogDirectory, topic_partition: TopicPartition = T0) -> ErrorCode:
    return broker.directory_moves.request(target.path, topic_partition)


def hold(broker: Broker) -> None:
    """Moves wait for the limit until `let_go`."""
    broker.directory_moves.throttle.set_rate(1)
    broker.directory_moves.throttle.record(A_LOT)


def let_go(broker: Broker) -> None:
    broker.directory_moves.throttle.set_rate(A_LOT * 2)


async def over(broker: Broker) -> None:
    """No move is under way, and the old folder is gone."""
    moves = broker.directory_moves
    await until(lambda: not len(moves) and not moves._ending)


def folders(tmp_path: Path) -> set[str]:
    """Of the partition, without those to be deleted and without what is random in their names."""
    found = [each for each in tmp_path.glob("*/t-0*") if not each.name.endswith("-delete")]
    return {f"{each.parent.name}/{each.name[:3]}{each.suffix[33:]}" for each in found}


def assert_same(hosted: HostedPartition, before: list[object]) -> None:
    assert [header[:] for header in read_all(hosted.log)] == before


def test_a_replica_moves(tmp_path: Path) -> None:
    async def scenario(broker: Broker, clock: ManualClock) -> None:
        hosted = await make_topic(broker, "t", **SEGMENT)
        append(broker, hosted, b"p", producer_id=7, producer_epoch=0, base_sequence=0)
        fill(broker, hosted)
        hosted.delete_records_before(1)
        old, (_, target) = hosted.log, places(broker, hosted)
        before = [header[:] for header in read_all(old)]
        assert request(broker, target) is ErrorCode.NONE
        assert request(broker, target) is ErrorCode.NONE, "it is being moved there"
        await over(broker)
        assert hosted.log is not old and hosted.log.directory == f"{target.path}/t-0"
        assert_same(hosted, before)
        assert hosted.log.high_watermark == 101 and hosted.log.leader_epochs.entries() == [(0, 1)]
        assert folders(tmp_path) == {f"{Path(target.path).name}/t-0"}
        assert not broker.log_directories.moves._files.exists(f"{target.path}/t-0/barnabas-move")
        assert append(broker, hosted, b"p", producer_id=7, producer_epoch=0, base_sequence=0).duplicate, (
            "its producer is known, although its record is not there to be copied"
        )
        fill(broker, hosted)
        assert hosted.log.log_end_offset == 201
        assert request(broker, target) is ErrorCode.NONE, "it is there"

    run_broker(tmp_path, scenario, settings(tmp_path))


def test_what_comes_while_a_replica_moves_is_there_too(tmp_path: Path) -> None:
    """Records, a truncation with other records after it, and DeleteRecords in the middle of a batch."""

    async def scenario(broker: Broker, clock: ManualClock) -> None:
        hosted = await make_topic(broker, "t", **SEGMENT)
        fill(broker, hosted)
        hosted.delete_records_before(3)
        throttle, (_, target) = broker.directory_moves.throttle, places(broker, hosted)
        throttle.set_rate(1)
        assert request(broker, target) is ErrorCode.NONE
        future = target.futures[T0]
        await until(throttle.is_exceeded)
        assert 10 < future.log_end_offset < 100, "one piece, since the clock stands still"
        broker.log_directories.truncate_to(hosted.log, 9, 0)
        hosted.on_truncated()
        fill(broker, hosted, 60)
        hosted.delete_records_before(5)
        before = [header[:] for header in read_all(hosted.log)]
        let_go(broker)
        await over(broker)
        assert hosted.log is future and hosted.log.log_start_offset == 5
        assert_same(hosted, before)

    run_broker(tmp_path, scenario, settings(tmp_path))


def test_a_move_is_continued_after_a_restart(tmp_path: Path) -> None:
    store, clock = MemoryStore(), ManualClock()

    async def before(broker: Broker, clock: ManualClock) -> None:
        hosted = await make_topic(broker, "t", **SEGMENT)
        fill(broker, hosted)
        broker.directory_moves.throttle.set_rate(1)
        _, target = places(broker, hosted)
        assert request(broker, target) is ErrorCode.NONE
        await until(broker.directory_moves.throttle.is_exceeded)

    async def after(broker: Broker, clock: ManualClock) -> None:
        hosted = broker.replicas.find("t", 0)
        assert hosted.log.log_end_offset == 100
        await over(broker)
        assert folders(tmp_path) == {f"{Path(hosted.log.directory).parent.name}/t-0"}
        moved.append(hosted.log.directory)

    moved: list[str] = []
    run_broker(tmp_path, before, settings(tmp_path), store=store, clock=clock)
    at_first = folders(tmp_path)
    assert len(at_first) == 2
    run_broker(tmp_path, after, settings(tmp_path), store=store, clock=clock)
    assert f"{Path(moved[0]).parent.name}/t-0-future" in at_first


def test_a_move_is_cancelled_or_goes_elsewhere(tmp_path: Path) -> None:
    async def scenario(broker: Broker, clock: ManualClock) -> None:
        hosted = await make_topic(broker, "t", **SEGMENT)
        fill(broker, hosted, 10)
        hold(broker)
        source, target = places(broker, hosted)
        (third,) = [each for each in broker.log_directories.directories if each not in (source, target)]
        home = f"{Path(source.path).name}/t-0"
        assert request(broker, target) is ErrorCode.NONE
        assert request(broker, third) is ErrorCode.NONE
        assert folders(tmp_path) == {home, f"{Path(third.path).name}/t-0-future"}
        assert request(broker, source) is ErrorCode.NONE, "where it is: no move at all"
        assert folders(tmp_path) == {home} and not len(broker.directory_moves)
        assert request(broker, third) is ErrorCode.NONE
        let_go(broker)
        await over(broker)
        assert request(broker, source) is ErrorCode.NONE, "and back"
        await over(broker)
        assert folders(tmp_path) == {home} and hosted.log.log_end_offset == 20

    more = f"{tmp_path / 'a'},{tmp_path / 'b'},{tmp_path / 'c'}"
    run_broker(tmp_path, scenario, settings(tmp_path, log_dirs=more))


def test_a_full_directory_is_waited_for(tmp_path: Path) -> None:
    files = FaultyFiles()

    async def scenario(broker: Broker, clock: ManualClock) -> None:
        hosted = await make_topic(broker, "t", **SEGMENT)
        fill(broker, hosted)
        _, target = places(broker, hosted)
        hold(broker)
        assert request(broker, target) is ErrorCode.NONE
        files.error = ("write", target.path, errno.ENOSPC)
        let_go(broker)
        steps = files.steps
        await until(lambda: files.steps > steps + 5)
        assert not target.is_offline and len(broker.directory_moves) == 1
        fill(broker, hosted, 1)
        files.error = None
        await over(broker)
        assert hosted.log.directory == f"{target.path}/t-0" and hosted.log.log_end_offset == 102

    run_broker(tmp_path, scenario, settings(tmp_path), files=files)


@pytest.mark.parametrize("operation", ["write", "fsync", "rename"])
def test_the_target_fails(tmp_path: Path, operation: str) -> None:
    """The replica stays where it is, and serves; whatever the copy was being done to."""
    files = FaultyFiles()

    async def scenario(broker: Broker, clock: ManualClock) -> None:
        hosted = await make_topic(broker, "t", **SEGMENT)
        fill(broker, hosted)
        log, (source, target) = hosted.log, places(broker, hosted)
        hold(broker)
        assert request(broker, target) is ErrorCode.NONE
        files.error = (operation, f"{target.path}/t-0.", errno.EIO)
        let_go(broker)
        await over(broker)
        await until(lambda: target.is_offline)
        assert not source.is_offline and broker.replicas.find("t", 0).log is log
        fill(broker, hosted, 1)
        await until(lambda: not files.exists(f"{log.directory}/barnabas-move"))
        assert request(broker, source) is ErrorCode.NONE
        assert request(broker, target) is ErrorCode.KAFKA_STORAGE_ERROR

    run_broker(tmp_path, scenario, settings(tmp_path), files=files)


def test_the_target_fails_at_the_last_moment(tmp_path: Path) -> None:
    """Both folders have their notes by then. That of the log goes, or a start would believe it to be out of date."""
    noted: list[bool] = []

    async def scenario(broker: Broker, clock: ManualClock) -> None:
        hosted = await make_topic(broker, "t", **SEGMENT)
        fill(broker, hosted)
        log, (_, target) = hosted.log, places(broker, hosted)
        moves, note = broker.log_directories.moves, f"{log.directory}/barnabas-move"

        def take_over(*_: object) -> NoReturn:
            noted.append(log.files.exists(note))
            failure = StorageError("the disk is gone")
            target.fail(failure)
            raise failure

        moves.take_over = take_over  # type: ignore[method-assign]
        assert request(broker, target) is ErrorCode.NONE
        await over(broker)
        assert noted == [True] and not log.files.exists(note)
        assert hosted.log is log and hosted.log.failure is None
        fill(broker, hosted, 1)

    run_broker(tmp_path, scenario, settings(tmp_path))


def test_the_source_fails(tmp_path: Path) -> None:
    files = FaultyFiles()

    async def scenario(broker: Broker, clock: ManualClock) -> None:
        hosted = await make_topic(broker, "t", **SEGMENT)
        fill(broker, hosted)
        source, target = places(broker, hosted)
        hold(broker)
        assert request(broker, target) is ErrorCode.NONE
        files.error = ("write", source.path, errno.EIO)
        with pytest.raises(Exception, match="appending"):
            fill(broker, hosted)
        let_go(broker)
        await over(broker)
        assert source.is_offline and not target.is_offline
        assert f"{Path(target.path).name}/t-0-future" in folders(tmp_path), "for a start that finds the log again"
        with pytest.raises(KafkaError):
            broker.replicas.find("t", 0)
        assert request(broker, target) is ErrorCode.KAFKA_STORAGE_ERROR
        files.error = None

    run_broker(tmp_path, scenario, settings(tmp_path), files=files)


def test_a_topic_is_deleted_while_it_moves(tmp_path: Path) -> None:
    async def scenario(broker: Broker, clock: ManualClock) -> None:
        hosted = await make_topic(broker, "t", **SEGMENT)
        fill(broker, hosted)
        hold(broker)
        assert request(broker, places(broker, hosted)[1]) is ErrorCode.NONE
        (deleted,) = await broker.controller.delete_topics([TopicToDelete("t")])
        assert not deleted.error
        let_go(broker)
        await over(broker)
        assert folders(tmp_path) == set()

    run_broker(tmp_path, scenario, settings(tmp_path))


def test_a_directory_is_chosen_for_a_partition_to_come(tmp_path: Path) -> None:
    async def scenario(broker: Broker, clock: ManualClock) -> None:
        first, second = broker.log_directories.directories
        for target, name in ((first, "t"), (first, "u"), (second, "v"), (first, "w")):
            assert request(broker, target, TopicPartition(name, 0)) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            hosted = await make_topic(broker, name)
            assert hosted.log.directory == f"{target.path}/{name}-0"
        fewest = await make_topic(broker, "x")
        assert fewest.log.directory == f"{second.path}/x-0", "else it is the one with the fewest"

    run_broker(tmp_path, scenario, settings(tmp_path))


def test_the_limit_is_a_setting_of_the_broker(tmp_path: Path) -> None:
    async def scenario(broker: Broker, clock: ManualClock) -> None:
        hosted = await make_topic(broker, "t", **SEGMENT)
        fill(broker, hosted)
        name, resource = "replica.alter.log.dirs.io.max.bytes.per.second", ConfigResource.broker(0)
        await set_config(broker, resource, name, "1000")
        _, target = places(broker, hosted)
        assert request(broker, target) is ErrorCode.NONE
        future = target.futures[T0]
        await until(lambda: future.log_end_offset > 0 and broker.directory_moves.throttle.is_exceeded())
        await asyncio.sleep(0.05)
        assert future.log_end_offset < 100, "a piece, then the limit is exceeded, and the clock stands still"
        await set_config(broker, resource, name, None)
        await over(broker)
        assert hosted.log is future

    run_broker(tmp_path, scenario, settings(tmp_path))


def test_a_log_that_moves_is_not_compacted(tmp_path: Path) -> None:
    async def scenario(broker: Broker, clock: ManualClock) -> None:
        hosted = await make_topic(broker, "t", cleanup_policy="compact", **SEGMENT)
        append(broker, hosted, b"v", b"w")
        cleaner = broker.compaction._cleaner
        assert cleaner is not None
        cleaner._checkpoint(hosted.log).set(T0, 42)
        hosted.log.state.was_cleaned = True
        hold(broker)
        _, target = places(broker, hosted)
        assert request(broker, target) is ErrorCode.NONE
        assert T0 in cleaner._paused
        let_go(broker)
        await over(broker)
        assert T0 not in cleaner._paused and hosted.log.state.was_cleaned
        assert cleaner.clean_offset(hosted.log) == 42
        content = broker.log_directories.moves._files.read(f"{target.path}/cleaner-offset-checkpoint")
        assert b"t 0 42" in content

    run_broker(tmp_path, scenario, settings(tmp_path, log_cleaner_backoff_ms="1000000"))


def test_a_folder_that_could_not_go_is_not_in_the_way(tmp_path: Path) -> None:
    """The last step of a move failed: to move back there would take the whole directory offline."""
    files = FaultyFiles()

    async def scenario(broker: Broker, clock: ManualClock) -> None:
        hosted = await make_topic(broker, "t", **SEGMENT)
        fill(broker, hosted)
        source, target = places(broker, hosted)
        moves, finish = broker.log_directories.moves, broker.log_directories.moves.finish

        def without_room(*given: Any) -> None:
            files.error = ("write", f"{target.path}/recovery-point", errno.ENOSPC)
            try:
                finish(*given)
            finally:
                files.error = None

        moves.finish = without_room  # type: ignore[method-assign]
        assert request(broker, target) is ErrorCode.NONE
        await over(broker)
        moves.finish = finish  # type: ignore[method-assign]
        assert hosted.log.directory == f"{target.path}/t-0" and files.exists(f"{source.path}/t-0")
        assert request(broker, source) is ErrorCode.KAFKA_STORAGE_ERROR
        await over(broker)
        assert not source.is_offline and not len(broker.directory_moves)
        fill(broker, hosted, 1)

    run_broker(tmp_path, scenario, settings(tmp_path), files=files)


def test_a_folder_that_could_not_go_while_the_replica_was_to_move_back(tmp_path: Path) -> None:
    files = FaultyFiles()

    async def scenario(broker: Broker, clock: ManualClock) -> None:
        hosted = await make_topic(broker, "t", **SEGMENT)
        fill(broker, hosted)
        source, target = places(broker, hosted)
        moves, finish, asked = broker.log_directories.moves, broker.log_directories.moves.finish, threading.Event()

        def without_room(*given: Any) -> None:
            asked.wait()
            files.error = ("write", f"{target.path}/recovery-point", errno.ENOSPC)
            try:
                finish(*given)
            finally:
                files.error = None

        moves.finish = without_room  # type: ignore[method-assign]
        assert request(broker, target) is ErrorCode.NONE
        await until(lambda: hosted.log.directory == f"{target.path}/t-0")
        assert request(broker, source) is ErrorCode.NONE
        move = broker.directory_moves._moves[T0]
        asked.set()
        await until(lambda: source.is_offline or move._reported != "")
        assert not source.is_offline and "still in" in move._reported
        fill(broker, hosted, 1)

    run_broker(tmp_path, scenario, settings(tmp_path), files=files)
