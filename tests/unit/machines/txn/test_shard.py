"""What transcripts do not show of a transaction shard: that it holds nothing for too long, and that checks can fail."""

import itertools

import pytest
from machine_driver import MachineDriver

from barnabas.machines.coordinator import ApplyContext
from barnabas.machines.txn import commands, invariants
from barnabas.machines.txn.metadata import TransactionMetadata
from barnabas.machines.txn.settings import TransactionSettings
from barnabas.machines.txn.shard import TransactionShard
from barnabas.machines.txn.state import TransactionLogState
from barnabas.protocol.messages.end_txn import EndTxnRequest
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.types import TopicPartition

PARTITION = TopicPartition("t", 0)
ONGOING = TransactionMetadata("a", 5, 3, 1000, TransactionLogState.ONGOING, 20, 10, {PARTITION: None})


def make_driver(**settings: int) -> MachineDriver:
    ids = itertools.count(1000)
    return MachineDriver(lambda: TransactionShard(5, TransactionSettings(**settings), lambda: next(ids)))


def init(driver: MachineDriver, transactional_id: str) -> tuple[int, int]:
    request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=1000)
    reply = driver.ask(commands.InitProducerId(request, 5))
    return reply.producer_id, reply.producer_epoch


def test_a_thousand_transactions_of_one_producer_arm_one_timer() -> None:
    driver = make_driver()
    producer = init(driver, "a")
    armed = 0
    for _ in range(1000):
        decision = driver.submit(commands.AddPartitionsToTxn("a", *producer, (PARTITION,), 5), object())
        armed += len(decision.timers)
        request = EndTxnRequest(
            transactional_id="a", producer_id=producer[0], producer_epoch=producer[1], committed=True
        )
        reply = driver.ask(commands.EndTxn(request, 5))
        producer = reply.producer_id, reply.producer_epoch
        driver.machine.decide(commands.MarkersWritten(driver.requests[-1], ()), None, driver.now)
        token = object()
        driver.submit(commands.MarkersWritten(driver.requests[-1], (PARTITION,)), token)
        del driver.asked[token]
    assert armed == 1
    assert producer == (1000, 1000)


YEAR_MS = 365 * 24 * 3_600_000


def begin(driver: MachineDriver, producer: tuple[int, int]) -> None:
    assert driver.submit(commands.AddPartitionsToTxn("a", *producer, (PARTITION,), 5), object()).records


def test_a_clock_set_back_keeps_no_transaction_alive() -> None:
    driver = make_driver()
    begin(driver, init(driver, "a"))
    driver.wall_ahead_ms -= YEAR_MS
    driver.advance_to(999)
    assert not driver.requests
    driver.advance_to(1000)
    assert [each.committed for each in driver.requests] == [False]


def test_a_clock_set_forward_aborts_no_live_transaction() -> None:
    """The timer of the transaction before fires in the middle of the next one."""
    driver = make_driver()
    producer = init(driver, "a")
    begin(driver, producer)
    driver.advance_to(500)
    request = EndTxnRequest(transactional_id="a", producer_id=producer[0], producer_epoch=producer[1], committed=True)
    reply = driver.ask(commands.EndTxn(request, 5))
    driver.submit(commands.MarkersWritten(driver.requests.pop(), (PARTITION,)), "written")
    begin(driver, (reply.producer_id, reply.producer_epoch))
    driver.wall_ahead_ms += 3_600_000
    driver.advance_to(1499)
    assert not driver.requests
    driver.advance_to(1500)
    assert [each.committed for each in driver.requests] == [False]


def test_a_transaction_whose_first_record_is_refused_leaves_only_a_timer() -> None:
    driver = make_driver()
    producer = init(driver, "a")
    refused = driver.machine.decide(commands.AddPartitionsToTxn("a", *producer, (PARTITION,), 5), None, driver.now)
    assert refused.if_too_large is not None
    driver.timers.update({key: deadline_ms for key, deadline_ms in refused.timers if deadline_ms is not None})
    driver.advance_to(600)
    begin(driver, producer)
    driver.advance_to(1599)
    assert not driver.requests
    driver.advance_to(1600)
    assert [each.committed for each in driver.requests] == [False]


@pytest.mark.parametrize(("moved_ms", "due_ms"), [(-YEAR_MS, 1600), (0, 1000), (YEAR_MS, 600)])
def test_after_a_load_a_transaction_has_its_timeout_at_most(moved_ms: int, due_ms: int) -> None:
    driver = make_driver()
    begin(driver, init(driver, "a"))
    driver.advance_to(600)
    driver.wall_ahead_ms += moved_ms
    driver.load()
    assert driver.timers["timeout:a"] == due_ms
    driver.advance_to(due_ms)
    assert [each.committed for each in driver.requests] == [False]


def test_timers_of_a_shard_without_transactional_ids() -> None:
    driver = make_driver(id_expiration_ms=100, expiry_check_interval_ms=1000)
    assert driver.timers == {}
    init(driver, "a")
    assert driver.timers == {"expiry": 1000}
    driver.advance_to(5000)
    assert driver.timers == {}


def test_markers_of_the_machine_before_say_nothing_to_this_one() -> None:
    driver = make_driver()
    producer = init(driver, "a")
    driver.ask(commands.AddPartitionsToTxn("a", *producer, (PARTITION,), 5))
    request = EndTxnRequest(transactional_id="a", producer_id=1000, producer_epoch=0, committed=True)
    driver.ask(commands.EndTxn(request, 5))
    driver.load()
    before, again = driver.requests
    assert (before.producer_epoch, before.partitions) == (again.producer_epoch, again.partitions)
    assert not driver.machine.decide(commands.MarkersWritten(before, (PARTITION,)), None, driver.now).records
    assert driver.machine.decide(commands.MarkersWritten(again, (PARTITION,)), None, driver.now).records


def test_no_partitions_begin_no_transaction() -> None:
    driver = make_driver()
    producer = init(driver, "a")
    decision = driver.submit(commands.AddPartitionsToTxn("a", *producer, (), 5), object())
    assert not decision.records and not decision.timers


def test_a_tombstone_for_an_unknown_id() -> None:
    driver = make_driver()
    key = ONGOING.record().key
    driver.machine.apply(key, None, ApplyContext(0, 0))
    driver.machine.check()


@pytest.mark.parametrize(
    "metadata",
    [
        ONGOING._replace(transactional_id="b"),
        ONGOING._replace(producer_id=-1),
        ONGOING._replace(producer_epoch=-1),
        ONGOING._replace(timeout_ms=0),
        ONGOING._replace(partitions={}),
        ONGOING._replace(start_ms=-1),
        ONGOING._replace(next_producer_id=6),
        ONGOING._replace(state=TransactionLogState.COMPLETE_COMMIT),
        ONGOING._replace(state=TransactionLogState.PREPARE_COMMIT),
        ONGOING._replace(state=TransactionLogState.EMPTY, partitions={}),
        ONGOING._replace(state=TransactionLogState.COMPLETE_ABORT, partitions={}, next_producer_id=6),
    ],
)
def test_broken_invariants_are_found(metadata: TransactionMetadata) -> None:
    invariants.check({"a": ONGOING}, {}, {"a": 1})
    with pytest.raises(AssertionError):
        invariants.check({"a": metadata}, {}, {"a": 1})


def test_broken_invariants_between_transactions_are_found() -> None:
    other = ONGOING._replace(transactional_id="b")
    with pytest.raises(AssertionError, match="producer id 5"):
        invariants.check({"a": ONGOING, "b": other}, {}, {"a": 1, "b": 1})
    with pytest.raises(AssertionError, match="never be aborted"):
        invariants.check({"a": ONGOING}, {}, {})
    with pytest.raises(AssertionError, match="after its end"):
        invariants.check({"a": ONGOING}, {"a": [PARTITION]}, {"a": 1})
    prepared = ONGOING._replace(state=TransactionLogState.PREPARE_ABORT)
    invariants.check({"a": prepared}, {"a": [PARTITION]}, {})
    with pytest.raises(AssertionError):
        invariants.check({"a": prepared}, {"a": [TopicPartition("u", 0)]}, {})
