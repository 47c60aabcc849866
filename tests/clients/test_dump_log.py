"""Our dump and Apache Kafka's, line by line, on the same files: whole ones, and ones that somebody damaged."""

import contextlib
import io
from pathlib import Path

import pytest
from confluent import produce_all
from confluent_kafka import Consumer, Producer
from kafka_commands import KafkaTools
from kafka_process import QuickKafka, why_no_kafka
from storage_logs import NOW, append, append_marker, make_batch, make_marker, open_test_log, small_config

from barnabas.cli.commands.log import main
from barnabas.cli.dump.command import kafka_main
from barnabas.testing import Broker

pytestmark = [pytest.mark.java, pytest.mark.skipif(why_no_kafka() is not None, reason=str(why_no_kafka()))]


def ours(*arguments: str) -> tuple[list[str], list[str], int]:
    out, complaints = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(complaints):
        status = kafka_main(arguments)
    return out.getvalue().splitlines(), complaints.getvalue().splitlines(), status


def same_as_kafka(tools: KafkaTools, *arguments: str) -> list[str]:
    """The lines of both tools, equal; gives them back."""
    kafka = tools.run_class("kafka.tools.DumpLogSegments", *arguments)
    assert kafka.status == 0, kafka.err
    lines, complaints, _ = ours(*arguments)
    assert lines == kafka.out.splitlines()
    assert complaints == kafka.err.splitlines()
    return lines


@pytest.fixture
def segments(tmp_path: Path) -> Path:
    log = open_test_log(tmp_path, small_config(segment_bytes=2000))
    for number in range(60):
        batch = make_batch(3, size=30, producer_id=1, epoch=0, sequence=number * 3, timestamp=NOW + number)
        append(log, batch, epoch=number // 20)
    append(log, make_batch(producer_id=2, epoch=0, sequence=0, transactional=True), epoch=3)
    append_marker(log, make_marker(abort=True, producer_id=2, coordinator_epoch=7), epoch=3)
    log.close()
    return tmp_path


def test_files_of_a_log(segments: Path, kafka_tools: KafkaTools) -> None:
    suffixes = {".log", ".index", ".timeindex", ".txnindex", ".snapshot"}
    files = ",".join(sorted(str(path) for path in segments.iterdir() if path.suffix in suffixes))
    lines = same_as_kafka(kafka_tools, "--files", files, "--print-data-log")
    assert sum(line.startswith("| ") for line in lines) == 182
    assert any("endTxnMarker: ABORT coordinatorEpoch: 7" in line for line in lines)
    same_as_kafka(kafka_tools, "--files", files)
    same_as_kafka(kafka_tools, "--files", files, "--index-sanity-check")
    same_as_kafka(kafka_tools, "--files", files, "--verify-index-only", "--deep-iteration", "--skip-record-metadata")


def test_damage_is_found_as_kafka_finds_it(segments: Path, kafka_tools: KafkaTools) -> None:
    first, second = sorted(segments.glob("*.log"))[:2]
    index = first.with_suffix(".index")
    entries = bytearray(index.read_bytes())
    entries[3] ^= 1  # the offset of the first entry
    index.write_bytes(entries)
    with first.open("ab") as file:
        file.write(b"torn")
    content = bytearray(second.read_bytes())
    content[-5] ^= 1  # a value: the CRC no longer fits
    second.write_bytes(content)
    for paths in (f"{index},{first}", f"{second}"):
        same_as_kafka(kafka_tools, "--files", paths, "--deep-iteration")
    lines, complaints, status = ours("--files", f"{index},{first}")
    assert lines[-1] == f"Found 4 invalid bytes at the end of {first.name}"
    assert complaints[0] == f"Mismatches in :{index}" and status == 0
    assert main(["dump", str(index), str(first)]) == 1
    assert "isvalid: false" in ours("--files", str(second))[0][-1]


def test_internal_topics(tmp_path: Path, kafka_tools: KafkaTools) -> None:
    with Broker(data_dir=tmp_path) as broker:
        address = {"bootstrap.servers": broker.bootstrap}
        produce_all(broker.bootstrap, "orders", [b"one", b"two"])
        producer = Producer({**address, "transactional.id": "billing"})
        producer.init_transactions()
        producer.begin_transaction()
        producer.produce("bills", b"1")
        producer.commit_transaction()
        for protocol in ("classic", "consumer"):
            group = {"group.id": f"group-{protocol}", "group.protocol": protocol, "auto.offset.reset": "earliest"}
            consumer = Consumer({**address, **group})
            consumer.subscribe(["orders"])
            while consumer.poll(10) is None:
                pass
            consumer.commit(asynchronous=False)
            consumer.close()
    offsets = _written(tmp_path, "__consumer_offsets")
    lines = same_as_kafka(kafka_tools, "--files", offsets, "--offsets-decoder")
    assert any('"groupId":"group-consumer"' in line for line in lines)
    assert any('"subscription":{"topics":["orders"]' in line for line in lines)
    transactions = _written(tmp_path, "__transaction_state")
    lines = same_as_kafka(kafka_tools, "--files", transactions, "--transaction-log-decoder")
    assert any('"transactionalId":"billing"' in line for line in lines)


def test_metadata_log_of_kafka(tmp_path: Path, kafka_tools: KafkaTools) -> None:
    kafka = QuickKafka(tmp_path).start()
    address = f"127.0.0.1:{kafka.port}"
    try:
        produce_all(address, "orders", [b"one"])
        for settings in ("SCRAM-SHA-256=[password=secret]", "producer_byte_rate=1024"):
            change = ("--alter", "--entity-type", "users", "--entity-name", "alice", "--add-config", settings)
            kafka_tools.checked("kafka.admin.ConfigCommand", address, *change)
    finally:
        kafka.stop()
    files = [*tmp_path.glob("data/__cluster_metadata-0/*.log"), *tmp_path.glob("data/**/*.checkpoint")]
    lines = same_as_kafka(kafka_tools, "--files", ",".join(map(str, files)), "--cluster-metadata-decoder")
    shown = "\n".join(lines)
    for record in ("LeaderChange: ", "USER_SCRAM_CREDENTIAL_RECORD", "CLIENT_QUOTA_RECORD", "REGISTER_BROKER_RECORD"):
        assert record in shown


def test_rows_for_programs(segments: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import json

    assert main(["dump", "--json", "--deep-iteration", str(min(segments.glob("*.log")))]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    batches = [row for row in rows if "base_offset" in row]
    assert batches[0]["base_offset"] == 0 and batches[0]["valid"] is True and batches[0]["record_count"] == 3
    assert [row["offset"] for row in rows if "base_offset" not in row][:4] == [0, 1, 2, 3]


def test_decoder_that_is_not_known(segments: Path) -> None:
    _, complaints, status = ours("--files", str(min(segments.glob("*.log"))), "--value-decoder-class", "com.acme.Avro")
    assert status == 1 and "'Avro'" in complaints[0]


def _written(data: Path, topic: str) -> str:
    return ",".join(str(path) for path in sorted(data.glob(f"{topic}-*/*.log")) if path.stat().st_size)


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--print-data-log"],
        ["--files"],
        ["--nonsense", "x"],
        ["--files", "0.log", "--max-bytes", "few"],
    ],
)
def test_wrong_use_ends_as_with_kafka(words: list[str], kafka_tools: KafkaTools) -> None:
    kafka = kafka_tools.run_class("kafka.tools.DumpLogSegments", *words)
    lines, complaints, status = ours(*words)
    assert status == kafka.status == 1
    assert not lines  # where Kafka finds out late it has printed something by then
    assert complaints[0] in kafka.err, kafka.err
