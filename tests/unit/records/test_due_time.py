"""When a record of an intake is due, and how those that cannot be are named."""

import pytest

from barnabas.errors import ErrorCode
from barnabas.records import BatchBuilder, CompressionType, Record
from barnabas.records.conversion import InvalidRecordsError
from barnabas.records.due_time import AT_ONCE, check_due_times, due_time, schedule_id

NOW = 1_800_000_000_000


def record(*headers: tuple[str, bytes | None], timestamp: int = NOW) -> Record:
    return Record(0, timestamp, None, b"v", headers)


@pytest.mark.parametrize(
    ("header", "due"),
    [
        (("deliver-at", b"1800000000123"), NOW + 123),
        (("deliver-at", (NOW + 5).to_bytes(8, "big")), NOW + 5),
        (("deliver-at", b"0"), 0),
        (("deliver-after", b"250"), NOW + 250),
        (("deliver-after", b"12345678"), NOW + 12_345_678),
        (("deliver-after", (70_000).to_bytes(8, "big")), NOW + 70_000),
        (("deliver-after", b"250ms"), NOW + 250),
        (("deliver-after", b"30s"), NOW + 30_000),
        (("deliver-after", b"5m"), NOW + 300_000),
        (("deliver-after", b"2h"), NOW + 7_200_000),
        (("deliver-after", b"1d"), NOW + 86_400_000),
        (("other", b"x"), AT_ONCE),
    ],
)
def test_due_time(header: tuple[str, bytes], due: int) -> None:
    assert due_time(record(header)) == due


@pytest.mark.parametrize(
    "value", [b"", None, b"soon", b"-5", b"1.5", b"5 m", b"5w", b"\xff" * 8, b"9" * 40, "٣".encode()]
)
@pytest.mark.parametrize("name", ["deliver-at", "deliver-after"])
def test_what_is_no_time_is_refused(name: str, value: bytes | None) -> None:
    with pytest.raises(ValueError, match=name):
        due_time(record((name, value)))


def test_both_headers_contradict_each_other() -> None:
    with pytest.raises(ValueError, match="both"):
        due_time(record(("deliver-at", b"1"), ("deliver-after", b"1")))


def test_a_delay_needs_a_timestamp() -> None:
    with pytest.raises(ValueError, match="timestamp"):
        due_time(record(("deliver-after", b"1"), timestamp=-1))


def test_schedule_id() -> None:
    assert schedule_id(record()) is None
    assert schedule_id(record(("schedule-id", b"a"))) == b"a"


@pytest.mark.parametrize("compression", [CompressionType.NONE, CompressionType.ZSTD])
def test_the_check_names_each_record(compression: CompressionType) -> None:
    batch = BatchBuilder(compression)
    batch.append(NOW, None, b"v", [("deliver-after", b"10s")])
    batch.append(NOW, None, b"v", [("deliver-after", b"never")])
    batch.append(NOW, None, b"v")
    batch.append(NOW, None, b"v", [("deliver-after", b"2m")])
    with pytest.raises(InvalidRecordsError) as refused:
        check_due_times(batch.build(), NOW, 60_000, False)
    assert refused.value.code is ErrorCode.INVALID_RECORD
    assert [error.batch_index for error in refused.value.record_errors] == [1, 3]
    assert "never" in refused.value.record_errors[0].message
    assert "delay.max.ms" in refused.value.record_errors[1].message
