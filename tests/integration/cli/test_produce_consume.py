"""`barnabas produce` and `barnabas consume` in this process, against the broker in this process."""

from __future__ import annotations

import io
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from barnabas import Producer
from barnabas.testing import Broker

Command = Callable[..., Any]


@pytest.fixture
def produce(barnabas: Command, monkeypatch: pytest.MonkeyPatch) -> Command:
    """`produce("lines", topic, ...)`: with these bytes on stdin."""

    def run(stdin: str | bytes, *words: str) -> Any:
        content = stdin.encode() if isinstance(stdin, str) else stdin
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        return barnabas("produce", *words)

    return run


def test_one_record_is_reported_and_many_are_counted(produce: Command, topic: str) -> None:
    one = produce("hello\n", topic, "-p", "1")
    assert one.status == 0 and one.err == ""
    assert one.out.startswith("Produced to partition 1 at offset 0 with timestamp ") and one.out.endswith(".\n")
    assert produce("a\nb\nc", topic).out == f"Produced 3 records to {topic}.\n"
    assert produce("", topic).out == f"Produced 0 records to {topic}.\n"
    told = produce("x\ny\n", topic, "-p", "1", "-v").out.splitlines()
    assert [line[:34] for line in told] == [f"Produced to partition 1 at offset {offset}"[:34] for offset in (1, 2)]
    rows = [json.loads(line) for line in produce("x\ny\n", topic, "-p", "0", "--json").out.splitlines()]
    assert [list(row) for row in rows] == [["topic", "partition", "offset", "timestamp"]] * 2


def test_keys_headers_and_null(produce: Command, barnabas: Command, topic: str) -> None:
    produce("k=v=w\nno separator\n=\nk2=\n", topic, "-K", "=", "-H", "a=1", "-H", "b", "-H", "c=", "-p", "0")
    produce("k=\n=\n", topic, "-K=", "-Z", "-p", "0")
    produce("plain\n", topic, "-k", "fixed", "-p", "0")
    done = barnabas("consume", topic, "-e", "-p", "0", "-f", "%p %o %k|%K|%s|%S|%h\n")
    assert done.out.splitlines() == [
        "0 0 k|1|v=w|3|a=1,b=NULL,c=",
        "0 1 |-1|no separator|12|a=1,b=NULL,c=",
        "0 2 |0||0|a=1,b=NULL,c=",
        "0 3 k2|2||0|a=1,b=NULL,c=",
        "0 4 k|1||-1|",
        "0 5 |-1||-1|",
        "0 6 fixed|5|plain|5|",
    ]
    assert barnabas("consume", topic, "-e", "-Z", "-K", ":", "-o", "4").out == "k:NULL\nNULL:NULL\nfixed:plain\n"


def test_files_delimiters_and_codecs(produce: Command, barnabas: Command, topic: str, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_bytes(b"one;two;\xff\x00;")
    second.write_bytes(b"three;last")
    done = barnabas("produce", topic, str(first), str(second), "-D", ";", "-z", "lz4", "-p", "0")
    assert done.out == f"Produced 5 records to {topic}.\n"
    assert barnabas("consume", topic, "-c", "2", "-f", "%R%s\\x7c%%").out == "\0\0\0\3one|%\0\0\0\3two|%"
    rows = [json.loads(line) for line in barnabas("consume", topic, "-e", "-J").out.splitlines()]
    assert [row.get("payload") for row in rows] == ["one", "two", None, "three", "last"]
    assert rows[2]["payload_base64"] == "/wA=" and list(rows[0]) == [
        *("topic", "partition", "offset", "tstype", "ts", "key", "payload"),
    ]
    missing = barnabas("produce", topic, str(tmp_path / "missing"))
    assert missing.status == 2 and "No such file" in missing.err


def test_where_to_start_and_stop(barnabas: Command, broker: Broker, topic: str) -> None:
    with Producer(broker.bootstrap) as producer:
        for number in range(10):
            producer.send(topic, b"%d" % number, partition=number % 2, timestamp=1000 * (number + 1))

    def read(*words: str) -> list[str]:
        done = barnabas("consume", topic, *words)
        assert done.status == 0, done.err
        return sorted(done.out.split())

    everything = [str(number) for number in range(10)]
    assert read("-e") == read("-c", "10") == read("-o", "beginning", "-e") == everything
    assert read("-o", "end", "-e") == []
    assert read("-o", "3", "-e") == ["6", "7", "8", "9"]
    assert read("-o", "-1", "-e") == ["8", "9"]
    assert read("-o", "-100", "-e") == everything and read("-o", "100", "-e") == []
    assert read("-o", "s@5000", "-e") == ["4", "5", "6", "7", "8", "9"]
    assert read("-o", "e@3000") == ["0", "1"]  # the past comes to an end by itself
    assert read("-o", "s@1970-01-01T00:00:03", "-o", "e@5000") == ["2", "3"]
    assert read("-o", "s@1970-01-01T00:00:03", "-o", f"e@{int(time.time() * 1000) - 1}") == everything[2:]
    assert read("-p", "1", "-e") == ["1", "3", "5", "7", "9"]
    assert len(read("-c", "3")) == 3
    assert read("-p", "0-1", "-e") == everything


def test_open_and_aborted_transactions(barnabas: Command, broker: Broker, topic: str) -> None:
    with Producer(broker.bootstrap, transactional_id=topic) as producer:
        with producer.transaction():
            producer.send(topic, b"committed", partition=0)
        producer.begin_transaction()
        producer.send(topic, b"aborted", partition=0).result()
        producer.abort_transaction()
        level = ["--isolation-level", "read_committed"]
        assert barnabas("consume", topic, "-e", *level).out == "committed\n"
        assert barnabas("consume", topic, "-e").out == "committed\naborted\n"
        producer.begin_transaction()
        producer.send(topic, b"open", partition=0).result()
        assert barnabas("consume", topic, "-e", *level).out == "committed\n"
        producer.abort_transaction()


def test_a_group_goes_on_where_it_was(produce: Command, barnabas: Command, topic: str) -> None:
    produce("".join(f"{number}\n" for number in range(20)), topic, "-p", "0")
    assert barnabas("consume", topic, "-g", f"{topic}.g", "-c", "7").out.split() == [str(each) for each in range(7)]
    assert barnabas("consume", topic, "-g", f"{topic}.g", "-e").out.split() == [str(each) for each in range(7, 20)]
    assert barnabas("consume", topic, "-g", f"{topic}.g", "-e").out == ""
    assert barnabas("consume", topic, "-g", f"{topic}.new", "-o", "end", "-e").out == ""
    pattern = f"^{topic[:-3]}..."
    assert len(barnabas("consume", pattern, "-g", f"{topic}.pattern", "-e").out.split()) == 20
    assert len(barnabas("consume", f"^{topic}$", "-e").out.split()) == 20


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("consume t -o nowhere", "-o nowhere: expected beginning"),
        ("consume t -o s@never", "-o s@ never: expected a time"),
        ("consume t -f %x", "%x means nothing here"),
        ("consume t -J -f %s", "leave out -f"),
        ("consume t -c 0", "expected a number above 0"),
        ("consume t -g g -p 0", "leave out one of the two"),
        ("consume t -g g -o 5", "reset-offsets"),
        ("consume t -p 3-1", "the range 3-1 is empty"),
        ("consume t -o stored", "only a group"),
        ("consume t -o 1 -o s@1", "exclude each other"),
        ("consume ^[ -e", "not a regular expression"),
        ("consume ^nothing-like-this$ -e", "no topic matches"),
        ("produce t -z brotli", "compression"),
        ("perf produce t -n 0", "--records 0: expected a number above 0"),
    ],
)
def test_wrong_use(barnabas: Command, words: str, said: str) -> None:
    done = barnabas(words)
    assert (done.status, done.out) == (2, "") and said in done.err and done.err.count("\n") == 1


def test_what_the_broker_refuses(produce: Command, barnabas: Command, broker: Broker, topic: str) -> None:
    for words in ("consume nosuchtopic", "perf consume nosuchtopic"):
        done = barnabas(words)
        assert (done.status, done.out) == (1, "") and "there is no such topic" in done.err
    assert "nosuchtopic" not in barnabas("topic", "list").out
    missing = barnabas("consume", topic, "-p", "7")
    assert missing.status == 2 and "has no partition 7" in missing.err
    broker.fault("Produce", error="CLUSTER_AUTHORIZATION_FAILED", count=None)
    try:
        refused = produce("a\n" * 5, topic, "--acks", "1")
        assert refused.status == 1 and refused.out == "" and "of 5 records were not produced" in refused.err
        refused = barnabas("perf", "produce", topic, "-n", "10", "--acks", "1", "--json")
        assert (refused.status, refused.json["failed"], refused.json["average_ms"]) == (1, 10, None)
        assert refused.err.endswith("barnabas perf produce: 10 of 10 records were not produced\n")
    finally:
        broker.clear_faults()


def test_a_line_that_is_too_long_is_named(produce: Command, barnabas: Command, topic: str) -> None:
    lines = "short\n" * 100
    done = produce(f"{lines}{'x' * 1_200_000}\n{lines}", topic, "-p", "0")
    assert (done.status, done.out) == (1, "")
    assert done.err.startswith("barnabas produce: 1 of 101 records were not produced: line 101: a record of 12000")
    assert done.err.endswith("; nothing after it was sent\n") and done.err.count("\n") == 1
    assert barnabas("consume", topic, "-e", "-p", "0").out == lines


def test_files_are_looked_at_before_the_first_record(barnabas: Command, topic: str, tmp_path: Path) -> None:
    first = tmp_path / "first"
    first.write_text("a\n")
    done = barnabas("produce", topic, str(first), str(tmp_path / "missing"))
    assert (done.status, done.out) == (2, "") and "No such file" in done.err
    assert barnabas("consume", topic, "-e").out == ""


def test_performance(barnabas: Command, topic: str, tmp_path: Path) -> None:
    done = barnabas("perf", "produce", topic, "-n", "5000", "-s", "20", "--print-metrics")
    assert done.status == 0 and done.out.startswith("5000 records sent, ") and "record-send-total" in done.out
    payloads = tmp_path / "payloads"
    payloads.write_text("a\nb\n")
    done = barnabas("perf", "produce", topic, "-n", "100", "--payload-file", str(payloads), "--json")
    assert done.json["records"] == 100 and list(done.json["percentiles_ms"]) == ["50", "95", "99", "99.9"]
    done = barnabas("perf", "consume", topic, "-n", "5100", "--json")
    assert (done.json["messages"], done.json["size"], done.json["complete"]) == (5100, 5000 * 20 + 100, True)
    header, row = barnabas("perf", "consume", topic, "-n", "5100").out.splitlines()
    assert header.count(", ") == row.count(", ") == 9
    too_few = barnabas("perf", "consume", topic, "-n", "9999", "--idle-ms", "300")
    assert too_few.status == 1 and "WARNING: Exiting before" in too_few.out
    latency = barnabas("perf", "latency", topic, "-n", "5")
    assert [line.split(":")[0] for line in latency.out.splitlines()[1:]] == ["Avg latency", "Percentiles"]


def test_the_dump(barnabas: Command, produce: Command, broker: Broker, topic: str) -> None:
    produce("in the file\n", topic, "-p", "0")
    directory = Path(broker._settings.get("log.dirs") or broker._temporary.name)
    (segment,) = directory.rglob(f"{topic}-0/*.log")
    done = barnabas("log", "dump", str(segment), "--print-data-log")
    assert done.status == 0 and "payload: in the file" in done.out
