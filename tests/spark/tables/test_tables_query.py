"""The query for tables on a real Spark: committed records only, each batch once, whatever is replayed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pyarrow.dataset
import pytest
from eventually import eventually
from postgresql_server import PostgresServer
from table_tasks import fact, row

from barnabas import Admin, Consumer, Producer
from barnabas.pipeline.driving import Driver
from barnabas.pipeline.generator import GeneratorOptions, generate
from barnabas.pipeline.routing import parse_routing
from barnabas.pipeline.sending import send_records
from barnabas.pipeline.tables.place import Place, parse_place
from barnabas.pipeline.tables.query import TablesQuery
from barnabas.pipeline.warehouse import DEFAULT_ROUTING, topics
from barnabas.testing import Broker

ROUTING = parse_routing('[tables.order_info]\nkind = "fact"\n[tables.user_info]\nkind = "dimension"\n')
USER, ORDER, PAGE = "dim_user_info", "dwd_order_info", "dwd_page_log"


@pytest.fixture
def broker() -> Iterator[Broker]:
    """Of its own: the names of the warehouse's topics are fixed."""
    with Broker({"group.initial.rebalance.delay.ms": "0"}) as broker:
        yield broker


class Warehouse:
    """Topics as the pipeline leaves them, and the query that makes tables of them."""

    def __init__(
        self, spark: Any, broker: Broker, folder: Path, place: Place, interval: str = "100 milliseconds"
    ) -> None:
        self.bootstrap = broker.bootstrap
        self._spark = spark
        self._checkpoint = folder / "checkpoint"
        self.query = TablesQuery({"bootstrap.servers": self.bootstrap}, str(self._checkpoint), "test", place, interval)
        self.query.prepare()
        with Admin(self.bootstrap) as admin:
            for name in (USER, ORDER, PAGE):
                admin.create_topic(name, 2)

    def send(self, *records: tuple[str, bytes, bytes | None], commit: bool = True) -> None:
        """In one transaction. All records of a key go to one partition, as the pipeline's do."""
        with Producer(self.bootstrap, transactional_id="pipeline") as producer:
            producer.begin_transaction()
            for topic, key, value in records:
                producer.send(topic, value, key=key)
            producer.flush()
            producer.commit_transaction() if commit else producer.abort_transaction()

    def run(self) -> None:
        query = self.query.start(self._spark, [ROUTING], once=True)
        assert query.awaitTermination(120)

    def forget_last_commit(self) -> None:
        """As if the driver had died between the tasks' work and its own note in the checkpoint."""
        [folder] = (self._checkpoint / "tables").iterdir()
        last = max(int(path.name) for path in (folder / "commits").iterdir() if path.name.isdecimal())
        (folder / "commits" / str(last)).unlink()
        (folder / "commits" / f".{last}.crc").unlink(missing_ok=True)


def fill_in_two_batches(warehouse: Warehouse) -> None:
    """With a replay of each; 3 users of whom one changes and one goes, 2 orders, 50 pages; and what was aborted."""
    pages = [(PAGE, b"m%d" % n, row(mid=f"m{n}", during_time=n, ts=1000 + n)) for n in range(50)]
    warehouse.send(
        *pages,
        *((USER, b"%d" % n, row(id=n, name=f"user {n}")) for n in (1, 2, 3)),
        (ORDER, b"1", fact({"id": 1, "total": 5.5})),
        (ORDER, b"2", fact({"id": 2, "total": 6.5})),
    )
    warehouse.send(*pages, (USER, b"1", row(id=1, name="aborted")), commit=False)
    warehouse.run()
    warehouse.forget_last_commit()
    warehouse.send(
        (USER, b"1", row(id=1, name="changed", age=40)),
        (USER, b"3", None),
        (ORDER, b"2", fact({"id": 2, "total": 7.5}, operation="U")),
        (PAGE, b"m1", b"not JSON"),
    )
    warehouse.run()
    warehouse.forget_last_commit()
    warehouse.run()


def committed_offsets(bootstrap: str, topic: str) -> list[int]:
    """Of partition 0."""
    with Consumer(bootstrap, isolation_level="read_committed", auto_offset_reset="earliest") as consumer:
        tp = (topic, 0)
        consumer.assign([tp])
        end = consumer.end_offsets([tp])[tp]
        offsets: list[int] = []
        while consumer.position(tp) < end:
            offsets += consumer.poll_arrow(0.1).column("offset").to_pylist()
    return offsets


def newest_by_key(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    newest: dict[str, dict[str, Any]] = {}
    for each in sorted(rows, key=lambda each: each["_offset"]):
        newest[each["_key"]] = each
    return [newest[key] for key in sorted(newest)]


def test_parquet(spark: Any, broker: Broker, tmp_path: Path) -> None:
    folder = tmp_path / "tables"
    fill_in_two_batches(Warehouse(spark, broker, tmp_path, parse_place(str(folder))))
    by_arrow = {name: pyarrow.dataset.dataset(folder / name).to_table() for name in (PAGE, "barnabas_rejected")}
    pages = by_arrow[PAGE].to_pylist()
    assert sorted(each["during_time"] for each in pages) == list(range(50))
    assert len({(each["_partition"], each["_offset"]) for each in pages}) == 50
    assert [each["value"] for each in by_arrow["barnabas_rejected"].to_pylist()] == [b"not JSON"]
    read = spark.read.option("mergeSchema", "true").parquet
    users = [each.asDict() for each in read(str(folder / USER)).collect()]
    assert len(users) == 5
    assert [(each["id"], each["name"], each["age"], each["_deleted"]) for each in newest_by_key(users)] == [
        ("1", "changed", "40", False),
        ("2", "user 2", None, False),
        (None, None, None, True),
    ]
    orders = newest_by_key([each.asDict() for each in read(str(folder / ORDER)).collect()])
    assert [(each["id"], each["total"], each["_operation"]) for each in orders] == [
        ("1", "5.5", "I"),
        ("2", "7.5", "U"),
    ]


def test_postgresql(spark: Any, broker: Broker, tmp_path: Path, database: str) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE {ORDER} (id bigint PRIMARY KEY, total numeric(10, 2))")
        warehouse = Warehouse(spark, broker, tmp_path, parse_place(database))
        fill_in_two_batches(warehouse)

        def select(statement: str) -> list[tuple[Any, ...]]:
            return connection.execute(statement).fetchall()

        assert select(f"SELECT count(*), sum(during_time), count(DISTINCT mid) FROM {PAGE}") == [(50, 1225, 50)]
        assert select(f"SELECT id, name, age FROM {USER} ORDER BY id") == [
            ("1", "changed", "40"),
            ("2", "user 2", None),
        ]
        assert select(f"SELECT id, total::text, _operation FROM {ORDER} ORDER BY id") == [
            (1, "5.50", "I"),
            (2, "7.50", "U"),
        ]
        assert select("SELECT topic, value FROM barnabas_rejected") == [(PAGE, b"not JSON")]
        with Admin(warehouse.bootstrap) as admin:
            done = admin.list_group_offsets("test-tables")
        assert {tp.topic for tp in done} == {USER, ORDER, PAGE}, "the lag shows in every tool"


def test_a_server_that_restarts_while_the_query_runs(
    spark: Any, broker: Broker, tmp_path: Path, server: PostgresServer, database: str
) -> None:
    """Between two batches, and in the middle of one; the query itself goes on, and every record is there once."""
    warehouse = Warehouse(spark, broker, tmp_path, parse_place(database))

    def pages(first: int) -> list[tuple[str, bytes, bytes]]:
        return [(PAGE, b"m%d" % n, row(mid=f"m{n}", during_time=n)) for n in range(first, first + 50)]

    def select(statement: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(database) as connection:
            return connection.execute(statement).fetchall()

    def wait_for(page_count: int, user_count: int) -> None:
        counts = f"SELECT (SELECT count(*) FROM {PAGE}), (SELECT count(*) FROM {USER})"
        eventually(lambda: select(counts), lambda found: found == [(page_count, user_count)], timeout=120)

    query = warehouse.query.start(spark, [ROUTING])
    try:
        warehouse.send(*pages(0), (USER, b"1", row(id=1, name="a")))
        wait_for(50, 1)
        with server.away("fast"):
            warehouse.send(*pages(50), (USER, b"2", row(id=2, name="b")))
        wait_for(100, 2)
        with contextlib.closing(psycopg.connect(database)) as blocker:
            blocker.execute(f"INSERT INTO {USER} (_key) VALUES ('7')")
            warehouse.send(*pages(100), *((USER, b"%d" % n, row(id=n, name="c")) for n in range(2, 10)))
            server.wait_for_lock("barnabas tables")
            with server.away():
                pass
        wait_for(150, 9)
        assert query.isActive and query.exception() is None
    finally:
        warehouse.query.stop()
    assert select(f"SELECT sum(during_time), count(DISTINCT mid) FROM {PAGE}") == [(sum(range(150)), 150)]
    assert select(f"SELECT id, name FROM {USER} ORDER BY id") == [("1", "a"), *((f"{n}", "c") for n in range(2, 10))]
    assert select("SELECT * FROM barnabas_rejected") == []


def test_the_whole_pipeline_into_tables(spark: Any, broker: Broker, tmp_path: Path) -> None:
    """Every committed record of every DWD and DIM topic is in its table, and nothing else."""
    client = {"bootstrap.servers": broker.bootstrap}
    driver = Driver(client, str(tmp_path / "checkpoint"), "whole")
    routing = driver.take_routing(DEFAULT_ROUTING)
    plans = topics(routing, with_sources=True)
    with Admin(broker.bootstrap) as admin:
        for plan in plans:
            admin.create_topic(plan.name, 1, config=plan.config)
    with Producer(broker.bootstrap) as producer:
        send_records(producer, generate(GeneratorOptions(seed=7, dirty=0.02, duplicates=0.02)), count=1500)
    tables = TablesQuery(client, str(tmp_path / "checkpoint"), "whole", parse_place(str(tmp_path / "tables")))
    tables.prepare()
    query = driver.start(spark, trigger={"availableNow": True})
    assert driver.follow(query, None, lambda batch: None, tables=tables) is None
    driver.start_tables(spark, tables, once=True)
    assert driver.follow_tables(tables) is None
    counts = {}
    for name in sorted(plan.name for plan in plans if plan.name.startswith(("dwd_", "dim_"))):
        wanted = committed_offsets(broker.bootstrap, name)
        counts[name] = len(wanted)
        if wanted:
            found = pyarrow.dataset.dataset(tmp_path / "tables" / name).to_table()
            assert sorted(found.column("_offset").to_pylist()) == wanted, name
    assert not (tmp_path / "tables" / "barnabas_rejected").exists()
    assert sum(count > 0 for count in counts.values()) > 15, counts


def test_a_table_that_fails_is_named_with_its_reason_and_ends_the_pipeline(
    spark: Any, broker: Broker, tmp_path: Path, database: str
) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(f"CREATE VIEW {PAGE} AS SELECT 1 AS id")
    client = {"bootstrap.servers": broker.bootstrap}
    driver = Driver(client, str(tmp_path / "checkpoint"), "failing")
    with Admin(broker.bootstrap) as admin:
        for plan in topics(driver.take_routing(DEFAULT_ROUTING), with_sources=True):
            admin.create_topic(plan.name, 1)
    with Producer(broker.bootstrap) as producer:
        producer.send(PAGE, row(mid="m"), key=b"m")
    tables = TablesQuery(client, str(tmp_path / "checkpoint"), "failing", parse_place(database), "1 second")
    query = driver.start(spark)
    driver.start_tables(spark, tables)
    failure = driver.follow(query, None, lambda batch: None, tables=tables)
    assert failure is not None
    address = database.partition("@")[2]
    assert failure.startswith(f"failing-tables: PostgreSQL at {address}, table {PAGE}: ")
    assert failure.endswith("not supported for views.")
    assert not query.isActive


def test_a_new_table_in_the_routing_is_followed(spark: Any, broker: Broker, tmp_path: Path) -> None:
    client = {"bootstrap.servers": broker.bootstrap}
    place = parse_place(str(tmp_path / "tables"))
    tables = TablesQuery(client, str(tmp_path / "checkpoint"), "new", place, "100 milliseconds")
    tables.prepare()
    with Admin(broker.bootstrap) as admin:
        admin.create_topic(PAGE, 1)
        tables.start(spark, [ROUTING])
        first = tables.query
        tables.maybe_restart([ROUTING])
        assert tables.query is first
        admin.create_topic("dim_shop", 1)
    with Producer(broker.bootstrap) as producer:
        producer.send("dim_shop", row(id=1), key=b"1")
    more = parse_routing('[tables.shop]\nkind = "dimension"\n')
    tables.maybe_restart([ROUTING, more])
    try:
        eventually((tmp_path / "tables" / "dim_shop").exists, timeout=60)
    finally:
        tables.stop()
