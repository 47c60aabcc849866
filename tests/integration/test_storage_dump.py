"""Apache Kafka's own dump tool reads the files of a log with many segments, transactions and recovered indexes."""

from pathlib import Path

import pytest
from kafka_process import run_tool, why_no_kafka
from storage_logs import NOW, append, append_marker, make_batch, make_marker, open_test_log, small_config

pytestmark = [pytest.mark.java, pytest.mark.skipif(why_no_kafka() is not None, reason=str(why_no_kafka()))]


@pytest.mark.parametrize("recovered", [False, True])
def test_dump_tool_finds_no_fault(tmp_path: Path, recovered: bool) -> None:
    log = open_test_log(tmp_path, small_config(segment_bytes=2000))
    for number in range(60):
        batch = make_batch(3, size=30, producer_id=1, epoch=0, sequence=number * 3, timestamp=NOW + number)
        append(log, batch, epoch=number // 20)
    append(log, make_batch(producer_id=2, epoch=0, sequence=0, transactional=True), epoch=3)
    append_marker(log, make_marker(abort=True, producer_id=2, coordinator_epoch=7), epoch=3)
    if recovered:
        log = open_test_log(tmp_path, small_config(segment_bytes=2000))
    log.close()
    suffixes = {".log", ".index", ".timeindex", ".txnindex", ".snapshot"}
    files = sorted(str(path) for path in tmp_path.iterdir() if path.suffix in suffixes)
    done = run_tool("kafka.tools.DumpLogSegments", "--files", ",".join(files), "--deep-iteration")
    assert done.returncode == 0, done.stderr
    for complaint in ("Mismatches", "not found", "Found timestamp mismatch", "isvalid: false", "Exception"):
        assert complaint not in done.stdout + done.stderr
    assert "producerId: 2 firstOffset: 180 lastOffset: 181 lastStableOffset: 182" in done.stdout
    assert "producerId: 2 producerEpoch: 0 coordinatorEpoch: 7" in done.stdout
    assert "endTxnMarker: ABORT" in done.stdout and "| offset: 179 " in done.stdout
