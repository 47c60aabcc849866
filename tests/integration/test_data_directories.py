"""Data directories that are damaged, belong to somebody else, lost their metadata, or are full.

One start looks at many damages: each partition of a topic, all with the same records, gets its own. What is expected of
every one of them: the records up to the damage, or KAFKA_STORAGE_ERROR; and the partition beside it goes on.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from barnabas_process import BarnabasProcess
from raw_client import RawClient, batch
from server_process import ServerFailed

from barnabas.errors import ErrorCode, KafkaError
from barnabas.records import BatchHeader, crc_matches, iter_headers, read_records

TOPIC, BYSTANDER = "damaged", "whole"
RECORDS = 14
VALUES = [bytes([65 + number]) * 120_000 for number in range(RECORDS)]
SEGMENT_BYTES = "1048576"  # the least that a topic may have: two segments, eight records in the first
RECORDS_IN_FIRST = 8
STORAGE_ERROR = ErrorCode.KAFKA_STORAGE_ERROR


class Damage(NamedTuple):
    file: str
    """The n-th file of a pattern, in the order of their names, as pattern:n."""
    kind: str
    at: float
    least: int = RECORDS
    """How many records must at least be there afterwards, unless the response is KAFKA_STORAGE_ERROR."""
    may_refuse: bool = False

    def do(self, folder: Path) -> None:
        pattern, _, number = self.file.partition(":")
        paths = sorted(folder.glob(pattern))
        if int(number) >= len(paths):
            return  # a crash may come before a file is written at all
        path = paths[int(number)]
        size = path.stat().st_size
        position = min(int(size * self.at), max(size - 1, 0))
        if self.kind == "cut":
            os.truncate(path, position)
        else:
            with path.open("r+b") as file:
                file.seek(position)
                length = size - position if self.kind == "zero rest" else min(64, size - position)
                file.write(bytes(length))


def in_segments(kinds: tuple[str, ...], places: tuple[float, ...], *, may_refuse: bool) -> list[Damage]:
    """Damages all over both segments; each record of a segment has the same size."""
    damages = []
    for kind in kinds:
        for at in places:
            before = int(at * RECORDS_IN_FIRST)
            damages.append(Damage("*.log:0", kind, at, before, may_refuse))
            before = RECORDS_IN_FIRST + int(at * (RECORDS - RECORDS_IN_FIRST))
            damages.append(Damage("*.log:1", kind, at, before, may_refuse))
    return damages


BESIDE_THE_SEGMENTS = [
    Damage(file, kind, at)
    for file in ("*.index:0", "*.index:1", "*.timeindex:0", "*.timeindex:1", "leader-epoch-checkpoint:0")
    for kind, at in (("cut", 0.0), ("cut", 0.5), ("zero", 0.3), ("zero rest", 0.0))
] + [Damage("*.snapshot:0", kind, at) for kind, at in (("cut", 0.0), ("cut", 0.5), ("zero", 0.3))]
IDENTITY = [Damage("partition.metadata:0", kind, 0.4, may_refuse=True) for kind in ("cut", "zero rest")]
AFTER_A_CRASH = (
    in_segments(("cut", "zero", "zero rest"), (0.0, 0.001, 0.3, 0.62, 0.9999), may_refuse=False)
    + BESIDE_THE_SEGMENTS
    + IDENTITY
)
AFTER_A_CLEAN_STOP = in_segments(("cut", "zero rest"), (0.0, 0.4, 0.9999), may_refuse=True) + BESIDE_THE_SEGMENTS


def written(broker: BarnabasProcess, partitions: int) -> None:
    with RawClient(broker.bootstrap) as client:
        client.create_topic(TOPIC, partitions, segment_bytes=SEGMENT_BYTES)
        client.create_topic(BYSTANDER)
        for partition in range(partitions):
            for sequence, value in enumerate(VALUES):
                records = batch(value, producer_id=partition, producer_epoch=0, base_sequence=sequence)
                assert client.produce(TOPIC, records, partition=partition).error_code == 0
        assert client.produce(BYSTANDER, batch(b"as ever")).error_code == 0


def read_values(client: RawClient, topic: str, partition: int = 0) -> list[bytes] | ErrorCode:
    """Every record there is, each batch checked as a client does; or the error."""
    values: list[bytes] = []
    offset = 0
    while True:
        response = client.fetch(topic, offset, partition=partition)
        if response.error_code:
            return ErrorCode(response.error_code)
        try:
            batches = whole_batches(bytes(response.records or b""))
        except KafkaError as error:
            return error.code
        if not batches:
            assert offset == response.high_watermark
            return values
        for header, records in batches:
            values += [each.value or b"" for each in read_records(records)]
            offset = header.next_offset


def whole_batches(fetched: bytes) -> list[tuple[BatchHeader, memoryview]]:
    """What a client would take of a response. Raises KafkaError where it would not."""
    batches = []
    for position, header in iter_headers(fetched):
        if not crc_matches(fetched, position, header):
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE)
        batches.append((header, memoryview(fetched)[position : position + header.size_in_bytes]))
    return batches


@pytest.mark.parametrize(
    ("stop", "damages"),
    [(BarnabasProcess.kill, AFTER_A_CRASH), (BarnabasProcess.stop, AFTER_A_CLEAN_STOP)],
    ids=["crash", "clean stop"],
)
def test_damaged_files_cost_no_more_than_what_they_hold(
    tmp_path: Path, stop: Callable[[BarnabasProcess], int], damages: list[Damage]
) -> None:
    broker = BarnabasProcess(tmp_path)
    with broker:
        written(broker, len(damages))
        stop(broker)
        for partition, damage in enumerate(damages):
            damage.do(broker.data / f"{TOPIC}-{partition}")
        broker.start()
        with RawClient(broker.bootstrap) as client:
            for partition, damage in enumerate(damages):
                check_damaged(client, partition, damage)
            assert read_values(client, BYSTANDER) == [b"as ever"]
            assert client.produce(BYSTANDER, batch(b"goes on")).base_offset == 1
        assert broker.stop() == 0


def check_damaged(client: RawClient, partition: int, damage: Damage) -> None:
    found = read_values(client, TOPIC, partition)
    if isinstance(found, ErrorCode):
        assert damage.may_refuse and found in (STORAGE_ERROR, ErrorCode.CORRUPT_MESSAGE), (damage, found)
        return
    assert found == VALUES[: len(found)] and len(found) >= damage.least, (damage, len(found))
    response = client.produce(TOPIC, batch(b"goes on"), partition=partition)
    assert (response.error_code, response.base_offset) == (0, len(found)), damage


@pytest.mark.parametrize("kind", ["cut", "zero rest"])
def test_damaged_checkpoints_of_a_directory_cost_only_time(tmp_path: Path, kind: str) -> None:
    broker = BarnabasProcess(tmp_path)
    with broker:
        written(broker, 1)
        broker.stop()
        for path in [*broker.data.glob("*checkpoint"), broker.data / ".kafka_cleanshutdown"]:
            Damage(f"{path.name}:0", kind, 0.5).do(broker.data)
        broker.start()
        with RawClient(broker.bootstrap) as client:
            assert read_values(client, TOPIC) == VALUES
            assert read_values(client, BYSTANDER) == [b"as ever"]


def test_a_flipped_bit_in_a_closed_segment_reaches_the_reader_as_a_crc_error(tmp_path: Path) -> None:
    broker = BarnabasProcess(tmp_path)
    with broker:
        written(broker, 1)
        broker.stop()
        with sorted((broker.data / f"{TOPIC}-0").glob("*.log"))[0].open("r+b") as file:
            file.seek(500_000)
            byte = file.read(1)[0]
            file.seek(500_000)
            file.write(bytes([byte ^ 0x10]))
        broker.start()
        with RawClient(broker.bootstrap) as client:
            assert read_values(client, TOPIC) is ErrorCode.CORRUPT_MESSAGE
            after = whole_batches(bytes(client.fetch(TOPIC, 5).records))
            assert [header.base_offset for header, _ in after] == [5, 6, 7], "the batches after it are whole"
            assert client.produce(TOPIC, batch(b"goes on")).base_offset == RECORDS
            assert read_values(client, BYSTANDER) == [b"as ever"]


# ---- whose directory it is


def refusal(broker: BarnabasProcess) -> str:
    with pytest.raises(ServerFailed, match="exited with 1 ") as failed:
        broker.start()
    return str(failed.value)


def test_a_directory_of_another_cluster_is_refused_as_it_is(tmp_path: Path) -> None:
    with BarnabasProcess(tmp_path / "one", "--metadata", str(tmp_path / "one.sqlite")) as one:
        written(one, 1)
    with BarnabasProcess(tmp_path / "two", "--metadata", str(tmp_path / "two.sqlite")):
        pass
    before = content_of(one.data)
    mixed = BarnabasProcess(tmp_path / "one", "--metadata", str(tmp_path / "two.sqlite"))
    assert "belongs to cluster" in refusal(mixed)
    assert content_of(one.data) == before
    with one, RawClient(one.bootstrap) as client:
        assert read_values(client, TOPIC) == VALUES


def test_a_directory_of_another_node_is_refused_as_it_is(tmp_path: Path) -> None:
    with BarnabasProcess(tmp_path) as broker:
        written(broker, 1)
    before = content_of(broker.data)
    assert "belongs to node 0, this is node 7" in refusal(BarnabasProcess(tmp_path, "--node-id", "7"))
    assert content_of(broker.data) == before


def test_a_second_broker_on_the_directory_is_refused(tmp_path: Path) -> None:
    with BarnabasProcess(tmp_path) as broker:
        assert "in use" in refusal(BarnabasProcess(tmp_path))
        with RawClient(broker.bootstrap) as client:
            client.create_topic("first-one-goes-on")


@pytest.mark.parametrize("kind", ["cut", "zero rest"])
def test_a_directory_that_does_not_say_whose_it_is_is_refused(tmp_path: Path, kind: str) -> None:
    with BarnabasProcess(tmp_path) as broker:
        pass
    Damage("meta.properties:0", kind, 0.5).do(broker.data)
    assert "meta.properties" in refusal(broker)


def content_of(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file() and path.name != ".lock"
    }


# ---- metadata that is lost, folders that nobody knows


def test_a_lost_metadata_file_costs_settings_but_no_records(tmp_path: Path) -> None:
    broker = BarnabasProcess(tmp_path)
    with broker:
        written(broker, 3)
        broker.stop()
        for path in broker.data.glob("barnabas-metadata*"):
            path.unlink()
        broker.start()
        assert "retention.ms=-1" in broker.printed()
        with RawClient(broker.bootstrap) as client:
            assert [read_values(client, TOPIC, partition) for partition in range(3)] == [VALUES] * 3
            again = batch(VALUES[-1], producer_id=1, producer_epoch=0, base_sequence=RECORDS - 1)
            assert client.produce(TOPIC, again, partition=1).base_offset == RECORDS - 1, "a retry is known as one"
            assert client.produce(TOPIC, batch(b"goes on"), partition=1).base_offset == RECORDS


def test_a_folder_that_nobody_knows_is_kept_and_makes_room(tmp_path: Path) -> None:
    with BarnabasProcess(tmp_path / "other") as other:
        written(other, 1)
    broker = BarnabasProcess(tmp_path / "mine")
    with broker:
        broker.stop()
        shutil.copytree(other.data / f"{TOPIC}-0", broker.data / f"{TOPIC}-0")
        broker.start()
        assert f"{TOPIC}-0 is not on this broker any more" in broker.printed()
        with RawClient(broker.bootstrap) as client:
            assert TOPIC not in [topic.name for topic in client.metadata().topics]
            client.create_topic(TOPIC)
            assert client.produce(TOPIC, batch(b"new")).base_offset == 0
            assert read_values(client, TOPIC) == [b"new"]
        (stray,) = broker.data.glob("*-stray")
        assert content_of(stray).keys() >= content_of(other.data / f"{TOPIC}-0").keys()
        broker.stop()
        broker.start()
        with RawClient(broker.bootstrap) as client:
            assert read_values(client, TOPIC) == [b"new"]
        assert stray.exists()


# ---- a disk without room


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", str(disk)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no mount command")
    if done.returncode:
        pytest.skip(f"a small file system cannot be mounted here: {done.stderr.strip()}")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_full_disk_is_a_storage_error_until_there_is_room(small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    with BarnabasProcess(small_disk) as broker, RawClient(broker.bootstrap) as client:
        client.create_topic(TOPIC, segment_bytes=SEGMENT_BYTES, segment_index_bytes="1024")
        ballast.write_bytes(bytes(6_000_000))
        kept: list[bytes] = []
        while not (response := client.produce(TOPIC, batch(VALUES[len(kept) % RECORDS]))).error_code:
            kept.append(VALUES[len(kept) % RECORDS])
        assert response.error_code == STORAGE_ERROR and len(kept) > 10
        assert read_values(client, TOPIC) == kept, "reading goes on"
        ballast.unlink()
        response = client.produce(TOPIC, batch(b"room again"))
        assert (response.error_code, response.base_offset) == (0, len(kept))
        assert read_values(client, TOPIC) == [*kept, b"room again"]
    with broker, RawClient(broker.bootstrap) as client:
        assert read_values(client, TOPIC) == [*kept, b"room again"]


def fill_up(disk: Path) -> Path:
    """Takes every byte that is left."""
    filler = disk / "filler"
    with filler.open("ab", buffering=0) as file:
        for size in (1 << 16, 4096, 1):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                pass
    return filler


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_stop_and_a_start_on_a_full_disk(small_disk: Path, end: str, tmp_path: Path) -> None:
    broker = BarnabasProcess(small_disk)
    broker.output = tmp_path / "server.out"
    with broker, RawClient(broker.bootstrap) as client:
        client.create_topic(TOPIC, segment_bytes=SEGMENT_BYTES, segment_index_bytes="1024")
        kept = [VALUES[number % RECORDS] for number in range(12)]
        for value in kept:
            assert client.produce(TOPIC, batch(value)).error_code == 0
        filler = fill_up(small_disk)
        assert client.produce(TOPIC, batch(VALUES[0])).error_code == STORAGE_ERROR
        if end == "kill":
            broker.kill()
        else:
            assert broker.stop() == 0
        assert "Traceback" not in broker.printed()
    for _ in range(3):
        fill_up(small_disk)
        broker.start()
        with RawClient(broker.bootstrap) as client:
            assert read_values(client, TOPIC) == kept, "reading is possible"
            assert client.produce(TOPIC, batch(VALUES[0])).error_code == STORAGE_ERROR
            fill_up(small_disk)
        if end == "kill":
            broker.kill()
        else:
            assert broker.stop() == 0
        assert "Traceback" not in broker.printed() and "not clean" not in broker.printed()
    broker.start()
    filler.unlink()
    with RawClient(broker.bootstrap) as client:
        assert client.produce(TOPIC, batch(b"room again")).error_code == 0
        assert read_values(client, TOPIC) == [*kept, b"room again"]
    assert broker.stop() == 0
