"""Files that somebody damaged: what is wrong is reported with its place, and the rest is dumped all the same."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from storage_logs import NOW, append, make_batch, open_test_log, small_config

from barnabas.cli.commands.log import main as log_main
from barnabas.cli.dump.command import kafka_main

BATCHES, RECORDS = 3, 2


class Dumped(NamedTuple):
    status: int
    lines: list[str]
    complaints: list[str]

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines]


@pytest.fixture
def segment(tmp_path: Path) -> Path:
    """Three batches of the same size with two records each."""
    log = open_test_log(tmp_path, small_config(segment_bytes=2000))
    for number in range(BATCHES):
        append(log, make_batch(RECORDS, size=30, timestamp=NOW + number))
    log.close()
    return tmp_path / "00000000000000000000.log"


def size_of_a_batch(segment: Path) -> int:
    return segment.stat().st_size // BATCHES


def damage_a_record(segment: Path) -> int:
    """The second batch's first record says that it has headers; gives the position of the batch."""
    content, position = bytearray(segment.read_bytes()), size_of_a_batch(segment)
    value = content.index(b"A" * 30, position) + 30
    assert content[value] == 0
    content[value] = 14
    segment.write_bytes(content)
    return position


def dump(capsys: pytest.CaptureFixture[str], *words: object) -> Dumped:
    status = log_main(["dump", *map(str, words)])
    captured = capsys.readouterr()
    return Dumped(status, captured.out.splitlines(), captured.err.splitlines())


def kafka_dump(capsys: pytest.CaptureFixture[str], *words: object) -> Dumped:
    status = kafka_main(list(map(str, words)))
    captured = capsys.readouterr()
    return Dumped(status, captured.out.splitlines(), captured.err.splitlines())


def test_a_record_that_cannot_be_read(segment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    position = damage_a_record(segment)
    whole = segment.with_name("00000000000000000009.log")
    whole.write_bytes(b"")
    done = dump(capsys, segment, whole, "--print-data-log")
    assert done.status == 1
    (told, crc) = done.complaints
    assert told.startswith(f"{segment}: the batch at position {position} (base offset 2) cannot be read: ")
    assert "headers" in told
    assert crc == f"{segment}: the CRC of the batch at position {position} (base offset 2) does not match"
    assert sum(line.startswith("baseOffset: ") for line in done.lines) == BATCHES
    assert [line.split()[2] for line in done.lines if line.startswith("| ")] == ["0", "1", "4", "5"]
    assert done.lines[-2:] == [f"Dumping {whole}", "Log starting offset: 9"]


def test_kafka_s_command_goes_on_too(segment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Kafka's own ends there with a stack trace and status 1; where it goes on, the status is 0."""
    position = damage_a_record(segment)
    done = kafka_dump(capsys, "--files", segment, "--print-data-log")
    assert done.status == 1 and sum(line.startswith("baseOffset: ") for line in done.lines) == BATCHES
    assert len(done.complaints) == 1 and f"position {position} (base offset 2) cannot be read" in done.complaints[0]
    shallow = kafka_dump(capsys, "--files", segment)
    assert (shallow.status, shallow.complaints) == (0, []) and "isvalid: false" in "".join(shallow.lines)


def test_a_codec_that_there_is_not(segment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = bytearray(segment.read_bytes())
    content[size_of_a_batch(segment) + 22] |= 7
    segment.write_bytes(content)
    done = dump(capsys, segment)
    assert done.status == 1 and "cannot be read: there is no compression codec 7" in done.complaints[0]
    assert [line.split()[1] for line in done.lines if line.startswith("baseOffset: ")] == ["0", "4"]


def test_damage_as_json(segment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    position = damage_a_record(segment)
    done = dump(capsys, segment, "--json", "--deep-iteration")
    assert done.status == 1
    (damaged,) = [row for row in done.rows if "error" in row]
    assert (damaged["file"], damaged["position"], damaged["base_offset"]) == (str(segment), position, 2)
    assert [row["valid"] for row in done.rows if "valid" in row] == [True, False, True]
    assert [row["offset"] for row in done.rows if "offset" in row] == [0, 1, 4, 5]


@pytest.mark.parametrize("garbage", [b"torn", b"\xff" * 30, b"\0" * 80])
def test_what_follows_the_last_batch(segment: Path, garbage: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    size = segment.stat().st_size
    segment.write_bytes(segment.read_bytes() + garbage)
    told = f"{segment}: {len(garbage)} invalid bytes from position {size} on"
    text = dump(capsys, segment)
    assert (text.status, text.complaints) == (1, [told])
    assert text.lines[-1] == f"Found {len(garbage)} invalid bytes at the end of {segment.name}"
    as_json = dump(capsys, segment, "--json")
    assert (as_json.status, as_json.complaints) == (1, [told])
    assert as_json.rows[-1] == {"file": str(segment), "position": size, "invalid_bytes": len(garbage)}
    assert dump(capsys, segment, "--max-bytes", size + 1).status == 0
    assert kafka_dump(capsys, "--files", segment).status == 0


def test_a_record_that_a_time_index_points_to(segment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    index = segment.with_suffix(".timeindex")
    index.write_bytes(b"".join((NOW + 1 + n).to_bytes(8) + (2 * n + 1).to_bytes(4) for n in range(BATCHES)))
    assert dump(capsys, index).status == 0
    position = damage_a_record(segment)
    done = dump(capsys, index)
    assert done.status == 1 and len(done.lines) == 1 + BATCHES
    assert done.complaints[0].startswith(f"{segment}: the batch at position {position} (base offset 2) cannot be read")


def test_a_snapshot_that_cannot_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    snapshot = tmp_path / "00000000000000000007.snapshot"
    snapshot.write_bytes(b"none")
    done = dump(capsys, snapshot)
    assert (done.status, done.complaints) == (1, [f"{snapshot} cannot be read: 4 bytes are too few"])
    assert kafka_dump(capsys, "--files", snapshot) == (0, [f"Dumping {snapshot}"], ["4 bytes are too few"])


def test_every_kind_of_file_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = open_test_log(tmp_path, small_config(segment_bytes=2000, index_interval_bytes=1))
    for number in range(4):
        append(log, make_batch(2, size=30, timestamp=NOW + number, producer_id=1, epoch=0, sequence=2 * number))
    log.close()
    segment = tmp_path / "00000000000000000000.log"
    index, times = segment.with_suffix(".index"), segment.with_suffix(".timeindex")
    (snapshot,) = tmp_path.glob("*.snapshot")
    second = segment.stat().st_size // 4
    assert dump(capsys, index, "--json").rows[0] == {"file": str(index), "offset": 3, "position": second}
    assert dump(capsys, times, "--json").rows[0].keys() == {"file", "timestamp", "offset"}
    (producer,) = dump(capsys, snapshot, "--json").rows
    assert producer["file"] == str(snapshot) and producer["producer_id"] == 1 and producer["last_sequence"] == 7
    assert dump(capsys, index, "--json", "--index-sanity-check").rows == [{"file": str(index), "sane": True}]
    transactions = segment.with_suffix(".txnindex")
    transactions.write_bytes(b"")
    assert dump(capsys, transactions, "--json") == (0, [], [])


def test_a_reader_that_has_gone(segment: Path) -> None:
    """It is not the file that cannot be read."""
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-u", "-m", "barnabas", "log", "dump", "--json", str(segment)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[4] / "src")}
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, env=environment, timeout=60, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")
