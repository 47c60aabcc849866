"""Numbers that nothing can hold are wrong use: a line, status 2, and no broker is asked."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from barnabas.cli.main import main
from barnabas.cli.numbers import NumberError, bytes_per_second

NOBODY = "127.0.0.1:1"
FIVE_GIGA, TWENTY_DIGITS = "5000000000", "9" * 20


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    try:
        status = main([*words, "-b", NOBODY])
    except SystemExit as ended:
        status = int(ended.code or 0)
    captured = capsys.readouterr()
    assert (status, captured.out) == (2, ""), captured.err
    return captured.err.splitlines()[-1]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (f"topic create x -p {FIVE_GIGA}", "argument -p/--partitions: 5000000000: the largest possible is 2147483647"),
        ("topic create x -r 99999", "argument -r/--replication-factor: 99999: the largest possible is 32767"),
        ("topic create x -p three", "argument -p/--partitions: 'three' is not a whole number"),
        (f"topic create x -a 0:{FIVE_GIGA}", "is not a list of broker ids"),
        (f"topic add-partitions x --to {FIVE_GIGA}", "the largest possible is 2147483647"),
        (f"topic add-partitions x --by {FIVE_GIGA}", "the largest possible is 2147483647"),
        (f"topic offsets x --at {TWENTY_DIGITS}", "--at 99999999999999999999: expected a time like"),
        ("topic offsets x --at 0001-01-01", "--at 0001-01-01: expected a time like"),
        ("topic delete-records x --before 1 -p -1", "argument -p/--partition: -1: partitions are counted from 0"),
        ("transaction find-hanging --topic t --partition -1", "partitions are counted from 0"),
        ("produce t -p -1", "argument -p/--partition: -1: partitions are counted from 0"),
        ('produce ""', "a topic has a name"),
        (f"topic delete-records x --before {TWENTY_DIGITS}", "the largest possible is 9223372036854775807"),
        (f"topic delete-records x --before 1 -p {FIVE_GIGA}", "the largest possible is 2147483647"),
        (f"group reset-offsets g --topic t --to-offset {TWENTY_DIGITS}", "the largest possible is 922337203685477580"),
        (f"group reset-offsets g --topic t:{FIVE_GIGA} --to-earliest", "expected TOPIC or TOPIC:0,1"),
        (f"group reset-offsets g --topic t --to-datetime {TWENTY_DIGITS}", "expected a time like"),
        (f"group reset-offsets g --topic t --by-duration {TWENTY_DIGITS}d", "expected a duration like"),
        (f"group reset-offsets g --topic t --by-duration P{TWENTY_DIGITS}D", "expected a duration like"),
        (f"group delete-offsets g --topic t:{FIVE_GIGA}", "expected TOPIC or TOPIC:0,1"),
        (f"partition reassign t:{FIVE_GIGA}=1", "expected TOPIC:PARTITION"),
        (f"partition reassign t:0={FIVE_GIGA}", "expected TOPIC:PARTITION=BROKER"),
        (f"partition elect t:{FIVE_GIGA}", "expected TOPIC:PARTITION"),
        (f"transaction producers t:0 --broker {FIVE_GIGA}", "the largest possible is 2147483647"),
        (f"transaction list --producer-id {TWENTY_DIGITS}", "the largest possible is 9223372036854775807"),
        (f"transaction list --longer-than {TWENTY_DIGITS}d", "expected a duration like"),
        ("transaction abort t:0 --producer-id 1 --producer-epoch 40000", "the largest possible is 32767"),
        (f"config get broker {FIVE_GIGA}", "expected a broker id"),
        (f"user create alice --iterations {FIVE_GIGA}", "the largest possible is 2147483647"),
        (f"produce t -p {FIVE_GIGA}", "the largest possible is 2147483647"),
        (f"consume t -o s@{TWENTY_DIGITS}", "-o s@ 99999999999999999999: expected a time like"),
        (f"consume t -o e@{TWENTY_DIGITS}", "-o e@ 99999999999999999999: expected a time like"),
        ("topic list --timeout nan", "argument --timeout: nan: expected seconds from 0 to 2147483"),
        ("topic list --timeout inf", "argument --timeout: inf: expected seconds"),
        ("topic list --timeout -1", "argument --timeout: -1: expected seconds"),
        ("topic list --timeout soon", "argument --timeout: 'soon' is not a number of seconds"),
    ],
)
def test_numbers_that_do_not_fit(words: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert told in refused(capsys, *shlex.split(words))


@pytest.mark.parametrize(
    ("words", "content"),
    [
        ("topic delete-records --file", '{"partitions": [{"topic": "t", "partition": 5000000000, "offset": 1}]}'),
        ("topic delete-records --file", '{"partitions": [{"topic": "t", "partition": 0, "offset": 1e30}]}'),
        ("partition reassign --file", '{"partitions": [{"topic": "t", "partition": 0, "replicas": [5000000000]}]}'),
    ],
)
def test_numbers_in_files(words: str, content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "wanted.json"
    path.write_text(content)
    told = refused(capsys, *words.split(), str(path))
    assert f"{path}: expected " in told and "the largest possible is" in told


@pytest.mark.parametrize(
    ("text", "rate"), [("1000", 1000), ("50MB", 50_000_000), ("1.5 kb/s", 1500), ("2GB/s", 2_000_000_000)]
)
def test_rates(text: str, rate: int) -> None:
    assert bytes_per_second(text) == rate


@pytest.mark.parametrize("text", ["", "MB", "-1MB", "0", "inf", "nan", "1e999", "5 apples", "9e30"])
def test_what_is_no_rate(text: str) -> None:
    with pytest.raises(NumberError):
        bytes_per_second(text)
