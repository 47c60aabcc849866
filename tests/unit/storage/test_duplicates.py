"""A retry gets the same response as the first attempt, for the last five batches of a producer, also after restarts."""

from pathlib import Path

import pytest
from storage_logs import NOW, append, make_batch, open_test_log, small_config

from barnabas.errors import ErrorCode, KafkaError
from barnabas.storage import producer_history
from barnabas.storage.log import Log
from barnabas.storage.producer_history import ProducerHistory


def send(log: Log, sequence: int, producer_id: int = 1) -> tuple[int, bool]:
    info = append(log, make_batch(2, producer_id=producer_id, epoch=0, sequence=sequence))
    return info.first_offset, info.duplicate


def refused(log: Log, sequence: int, producer_id: int = 1) -> bool:
    with pytest.raises(KafkaError) as caught:
        send(log, sequence, producer_id)
    return caught.value.code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("segment_bytes", [300, 1_000_000])
@pytest.mark.parametrize("new_batches", [0, 2])
def test_five_batches_are_known_after_a_restart(
    tmp_path: Path, clean: bool, segment_bytes: int, new_batches: int
) -> None:
    log = open_test_log(tmp_path, small_config(segment_bytes=segment_bytes))
    for number in range(8):
        send(log, number * 2)
        send(log, number * 2, producer_id=2)
    log.close()
    again = open_test_log(tmp_path, log.config, clean=clean)
    for number in range(8, 8 + new_batches):
        assert send(again, number * 2) == (16 + number * 2, False)
    end = again.log_end_offset
    for number in range(8 - (5 - new_batches), 8):
        assert send(again, number * 2) == (number * 4, True)
    assert refused(again, (7 - (5 - new_batches)) * 2), "older ones are forgotten, as before the restart"
    for number in range(3, 8):
        assert send(again, number * 2, producer_id=2) == (number * 4 + 2, True)
    assert again.log_end_offset == end
    assert send(again, 16 + new_batches * 2) == (end, False)


def test_a_wrong_sequence_makes_the_log_read_back_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_test_log(tmp_path)
    for number in range(8):
        send(log, number * 2)
    log.close()
    again = open_test_log(tmp_path, clean=True)
    reads: list[ProducerHistory] = []
    refill = ProducerHistory.refill_batches
    monkeypatch.setattr(ProducerHistory, "refill_batches", lambda self: (reads.append(self), refill(self)))
    for _ in range(3):
        assert refused(again, 100)
    assert len(reads) == 1


def test_only_the_end_of_the_log_is_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_test_log(tmp_path, small_config(segment_bytes=1_000_000))
    for number in range(3):
        send(log, number * 2)
    for _ in range(100):
        append(log, make_batch(size=50, timestamp=NOW))
    send(log, 6)
    log.close()
    monkeypatch.setattr(producer_history, "REFILL_BYTES", 2000)
    again = open_test_log(tmp_path, log.config, clean=True)
    assert refused(again, 4)
    assert send(again, 6) == (106, True)


def test_a_new_epoch_knows_no_batches_of_the_old(tmp_path: Path) -> None:
    log = open_test_log(tmp_path)
    send(log, 0)
    append(log, make_batch(2, producer_id=1, epoch=1, sequence=0))
    append(log, make_batch(2, producer_id=1, epoch=1, sequence=2))
    log.close()
    again = open_test_log(tmp_path, clean=True)
    info = append(again, make_batch(2, producer_id=1, epoch=1, sequence=0))
    assert (info.first_offset, info.duplicate) == (2, True)
    assert [batch.first_offset for batch in again.producers.producers[1].batches] == [2, 4]
