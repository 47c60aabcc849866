"""The programs in examples/ that are not about threads (those are tested with the consumer): run as programs.

Each is also made to go through what it promises to survive: an aborted transaction, a crash before the commit.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pyarrow.dataset as ds
import pytest

from barnabas import Admin, Consumer, Producer, TopicPartition
from barnabas.testing import Broker

ROOT = Path(__file__).resolve().parents[2]
COUNT = 1200
UNTIL_IDLE = ("--until-idle", "2")
TESTED_WITH_THE_CONSUMER = {"consumer_per_thread", "one_consumer_many_workers"}
TESTED_HERE = {"asyncio_pipeline", "transactional_copy", "group_lag", "arrow_to_parquet"}


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker({"group.initial.rebalance.delay.ms": 0, "num.partitions": 2}) as broker:
        with Producer(broker.bootstrap) as producer:
            for number in range(COUNT):
                producer.send("orders", f"order {number}".encode(), key=str(number % 7).encode())
        yield broker


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run(name: str, *arguments: str | Path) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(ROOT / "examples" / f"{name}.py"), *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def values(bootstrap: str, topic: str) -> list[bytes]:
    """All that a reader of committed records sees, in the order of partition and offset."""
    with Consumer(bootstrap, isolation_level="read_committed") as consumer:
        partitions = [TopicPartition(topic, each.partition) for each in consumer.partitions_for(topic)]
        consumer.assign(partitions)
        consumer.seek_to_beginning()
        ends = consumer.end_offsets(partitions)
        records = []
        while any(consumer.position(each) < ends[each] for each in partitions):
            records += consumer.poll(1.0)
    return [record.value for record in sorted(records, key=lambda record: (record.partition, record.offset))]


def test_every_example_is_tested() -> None:
    assert {path.stem for path in (ROOT / "examples").glob("*.py")} == TESTED_WITH_THE_CONSUMER | TESTED_HERE


def test_asyncio_pipeline(broker: Broker) -> None:
    printed = run("asyncio_pipeline", broker.bootstrap, "orders", "priced", *UNTIL_IDLE)
    assert printed == f"{COUNT} records processed\n"
    assert values(broker.bootstrap, "priced") == [v + b" for 3 coins" for v in values(broker.bootstrap, "orders")]
    assert run("asyncio_pipeline", broker.bootstrap, "orders", "priced", *UNTIL_IDLE) == "0 records processed\n"


def test_transactional_copy(broker: Broker) -> None:
    assert run("transactional_copy", broker.bootstrap, "orders", "bills", *UNTIL_IDLE) == f"{COUNT} records copied\n"
    assert values(broker.bootstrap, "bills") == [b"bill for " + v for v in values(broker.bootstrap, "orders")]


def test_transactional_copy_repeats_what_was_aborted(broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    example = load("transactional_copy")
    broker.fault("TxnOffsetCommit", error="TRANSACTION_ABORTABLE", count=2)
    assert example.copy(broker.bootstrap, "orders", "bills", "copy", example.bill, until_idle=2) == COUNT
    assert capsys.readouterr().out.count("retrying, because the transaction was aborted") == 2
    assert values(broker.bootstrap, "bills") == [b"bill for " + v for v in values(broker.bootstrap, "orders")]


def test_group_lag(broker: Broker) -> None:
    with Admin(broker.bootstrap) as admin:
        admin.alter_group_offsets("slow", {("orders", 0): 0, ("orders", 1): 0})
    printed = run("group_lag", broker.bootstrap, "--create", "orders=6", "--create", "bills=3")
    assert printed == f"orders: was there\nbills: created\nslow: {COUNT} behind in 2 partitions\n"
    with Admin(broker.bootstrap) as admin:
        assert len(admin.describe_topic("bills").partitions) == 3


def test_arrow_to_parquet(broker: Broker, tmp_path: Path) -> None:
    printed = run("arrow_to_parquet", broker.bootstrap, "orders", tmp_path, "--rows", "500", *UNTIL_IDLE)
    assert printed == f"{COUNT} rows written\n"
    assert exported(tmp_path) == values(broker.bootstrap, "orders")


def test_arrow_to_parquet_after_a_crash_before_the_commit(broker: Broker, tmp_path: Path) -> None:
    example = load("arrow_to_parquet")
    broker.fault("OffsetCommit", error="GROUP_AUTHORIZATION_FAILED", count=None)
    with pytest.raises(Exception, match="not authorized"):
        example.export(broker.bootstrap, "orders", tmp_path, "parquet", 700, until_idle=30)
    assert list(tmp_path.glob("*.parquet"))
    broker.clear_faults()
    assert example.export(broker.bootstrap, "orders", tmp_path, "parquet", 300, until_idle=2) == COUNT
    assert exported(tmp_path) == values(broker.bootstrap, "orders")


def exported(folder: Path) -> list[bytes]:
    table = ds.dataset(sorted(map(str, folder.glob("*.parquet")))).to_table()
    values: list[bytes] = table.sort_by([("partition", "ascending"), ("offset", "ascending")])["value"].to_pylist()
    return values
