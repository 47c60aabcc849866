"""Performance tools and verifiable clients: Apache Kafka's and ours, on the same broker, line by line.

Times and rates differ from run to run: numbers are masked where they are measured, and equal where they are counted.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from confluent import make_topic, produce_all
from confluent_kafka.admin import AdminClient
from data_commands import Done, kafkas, ours

from barnabas import Consumer

pytestmark = pytest.mark.java

MEASURED = re.compile(r"\d+(\.\d+)?")


def masked(text: str) -> list[str]:
    """Lines with their decimals counted, not compared: 12.34 is N.NN."""
    return [MEASURED.sub(_digits, line) for line in text.splitlines()]


def _digits(match: re.Match[str]) -> str:
    return "N" if match[1] is None else "N." + "N" * (len(match[1]) - 1)


def both(command: str, words: list[str]) -> tuple[Done, Done]:
    return kafkas(command, *words), ours(command, *words)


def values(bootstrap: str, topic: str, count: int) -> list[bytes | None]:
    with Consumer(bootstrap) as consumer:
        consumer.assign([(topic, 0)])
        consumer.seek_to_beginning()
        records: list[Any] = []
        while len(records) < count:
            records += consumer.poll(1.0)
        assert consumer.end_offsets([(topic, 0)]) == {(topic, 0): count}
    return [record.value for record in records]


@pytest.fixture
def topics(admin: AdminClient, new_name: str) -> dict[str, str]:
    return {who: make_topic(admin, f"{new_name}.{who}", 1) for who in ("kafka", "ours")}


def test_producer_perf(bootstrap: str, topics: dict[str, str], tmp_path: Path) -> None:
    payloads = tmp_path / "payloads"
    payloads.write_text("\none\ntwo\nthree\n\n")
    loads = [
        ["--num-records", "3000", "--record-size", "100", "--throughput", "-1"],
        ["--num-records", "300", "--payload-file", str(payloads), "--throughput", "2000"],
        ["--num-records", "50", "--payload-monotonic", "--throughput", "-1", "--transactional-id", "perf"],
    ]
    written = 0
    for load in loads:
        done = {}
        for who, run in (("kafka", kafkas), ("ours", ours)):
            words = ["--topic", topics[who], *load, "--producer-props", f"bootstrap.servers={bootstrap}", "linger.ms=1"]
            done[who] = run("producer_perf_test", *words)
        assert done["ours"].status == done["kafka"].status == 0, done["ours"].err
        assert masked(done["ours"].out) == masked(done["kafka"].out)
        count = load[1]
        assert done["ours"].out.splitlines()[-1].startswith(f"{count} records sent, ")
        if "--payload-file" in load:
            assert done["ours"].out.splitlines()[:2] == done["kafka"].out.splitlines()[:2]
        written += int(count)
    # Transactions end with markers, which take an offset each.
    with Consumer(bootstrap, isolation_level="read_committed") as consumer:
        consumer.assign([(topics["ours"], 0)])
        consumer.seek_to_beginning()
        records: list[Any] = []
        while len(records) < written:
            records += consumer.poll(1.0)
    assert {len(record.value) for record in records[:3000]} == {100}
    assert {record.value for record in records[3000:3300]} == {b"one", b"two", b"three", b""}
    assert [record.value for record in records[3300:]] == [b"%d" % number for number in range(50)]
    assert len({record.value for record in records[:3000]}) == 3000


@pytest.mark.parametrize(
    "words",
    [
        ["--num-records", "0", "--record-size", "1", "--throughput", "-1"],
        ["--num-records", "1", "--record-size", "0", "--throughput", "-1"],
        ["--num-records", "1", "--record-size", "1", "--throughput", "-1", "--transaction-duration-ms", "0"],
    ],
)
def test_producer_perf_wrong_use(bootstrap: str, words: list[str]) -> None:
    arguments = ["--topic", "t", *words, "--producer-props", f"bootstrap.servers={bootstrap}"]
    expected, actual = both("producer_perf_test", arguments)
    assert (actual.status, actual.out) == (expected.status, expected.out) == (1, "")
    assert actual.err.splitlines()[0] in " ".join(expected.err.split())


def test_consumer_perf(bootstrap: str, admin: AdminClient, new_name: str) -> None:
    topic = make_topic(admin, new_name, 1)
    produce_all(bootstrap, topic, [b"x" * 1000] * 2000)
    common = ["--bootstrap-server", bootstrap, "--topic", topic]
    expected, actual = both("consumer_perf_test", [*common, "--messages", "2000"])
    assert (actual.status, masked(actual.out)) == (expected.status, masked(expected.out)), actual.err
    header, row = (line.split(", ") for line in actual.out.splitlines())
    kafka_row = expected.out.splitlines()[1].split(", ")
    told = dict(zip(header, row, strict=True))
    assert (told["data.consumed.in.MB"], told["data.consumed.in.nMsg"]) == (kafka_row[2], kafka_row[4])
    words = [*common, "--messages", "9999", "--timeout", "500", "--hide-header", "--date-format", "HH:mm"]
    expected, actual = both("consumer_perf_test", words)
    assert masked(actual.out) == masked(expected.out) and actual.out.startswith("WARNING: Exiting before consuming")
    words = [*common, "--messages", "2000", "--show-detailed-stats", "--reporting-interval", "1"]
    expected, actual = both("consumer_perf_test", words)
    assert actual.out.splitlines()[0] == expected.out.splitlines()[0]
    assert {line.count(", ") for line in actual.out.splitlines() + expected.out.splitlines()} == {9}
    assert set(masked(actual.out)[1:]) == set(masked(expected.out)[1:])


def test_end_to_end_latency(bootstrap: str, new_name: str) -> None:
    done = {}
    for who, run in (("kafka", kafkas), ("ours", ours)):
        done[who] = run("e2e_latency", bootstrap, f"{new_name}.{who}"[-100:], "20", "all", "50")
        assert done[who].status == 0, done[who].err
    expected, actual = (done[who].out.replace(f".{who}", "") for who in ("kafka", "ours"))
    # The first round trip is printed with as many digits as it has.
    assert [line for line in masked(actual) if "\t" not in line] == [
        line for line in masked(expected) if "\t" not in line
    ]
    assert re.search(r"^0\t\d+\.\d+$", actual, re.MULTILINE) and re.search(r"^0\t\d+\.\d+$", expected, re.MULTILINE)
    expected, actual = both("e2e_latency", [bootstrap, "t", "1", "0", "1"])
    assert actual.status == expected.status == 1
    assert actual.err.splitlines()[0] == expected.err.splitlines()[0]


def events(done: Done) -> list[dict[str, Any]]:
    """In order, without what time makes different; the order of the keys is part of it."""
    told = [json.loads(line) for line in done.out.splitlines()]
    for event in told:
        assert list(event)[:2] == ["timestamp", "name"]
        for name in ("timestamp", "avg_throughput"):
            event.pop(name, None)
    return told


def test_verifiable_producer(bootstrap: str, topics: dict[str, str]) -> None:
    words = ["--max-messages", "5", "--value-prefix", "7", "--repeating-keys", "2", "--throughput", "1000"]
    done = {}
    for who, run in (("kafka", kafkas), ("ours", ours)):
        done[who] = run("verifiable_producer", "--bootstrap-server", bootstrap, "--topic", topics[who], *words)
        assert done[who].status == 0
    expected, actual = (done[who].out.replace(topics[who], "T") for who in ("kafka", "ours"))
    expected_events, actual_events = (events(Done(0, text, "")) for text in (expected, actual))
    assert actual_events == expected_events
    # Kafka writes topic and partition of a success in the order of a hash that changes from run to run.
    assert [sorted(event) for event in actual_events] == [sorted(event) for event in expected_events]
    assert [event["name"] for event in actual_events] == [
        "startup_complete",
        *["producer_send_success"] * 5,
        "shutdown_complete",
        "tool_data",
    ]
    assert values(bootstrap, topics["ours"], 5) == [b"7.%d" % number for number in range(5)]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_verifiable_consumer(bootstrap: str, admin: AdminClient, new_name: str, protocol: str) -> None:
    topic = make_topic(admin, new_name, 1)
    produce_all(bootstrap, topic, [b"%d" % number for number in range(6)])
    common = ["--bootstrap-server", bootstrap, "--topic", topic, "--max-messages", "4", "--verbose"]
    common += ["--group-protocol", protocol]
    done = {}
    for who, run in (("kafka", kafkas), ("ours", ours)):
        done[who] = run("verifiable_consumer", *common, "--group-id", f"{new_name}.{who}")
        assert done[who].status == 0, done[who].err
    expected, actual = events(done["kafka"]), events(done["ours"])
    assert actual == expected
    assert [list(event) for event in actual] == [list(event) for event in expected]
    assert {"partitions_assigned", "record_data", "records_consumed", "offsets_committed"} <= {
        event["name"] for event in actual
    }
