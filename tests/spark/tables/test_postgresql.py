"""Tables in a real PostgreSQL, written as tasks write them; Spark itself comes in test_tables_query.py."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from postgresql_server import PostgresServer
from table_tasks import fact, row, table_task

from barnabas.pipeline.tables.postgresql import DatabaseError, PostgresTables, TaskWriting
from barnabas.pipeline.tables.rows import TableRow

Select = Callable[[str], list[tuple[Any, ...]]]
DIMENSION = "dim_user_info"


@pytest.fixture
def tables(database: str) -> Iterator[PostgresTables]:
    tables = PostgresTables(database)
    yield tables
    tables.close()


@pytest.fixture
def select(database: str) -> Iterator[Select]:
    with psycopg.connect(database, autocommit=True) as connection:
        yield lambda statement: connection.execute(statement).fetchall()


@pytest.fixture
def execute(database: str) -> Iterator[Callable[[str], object]]:
    with psycopg.connect(database, autocommit=True) as connection:
        yield connection.execute


def users(select: Select) -> list[tuple[Any, ...]]:
    return select(f"SELECT id, name, _offset FROM {DIMENSION} ORDER BY _key")


def rejected(select: Select) -> list[tuple[Any, ...]]:
    return select('SELECT topic, partition, "offset", key, value, reason FROM barnabas_rejected ORDER BY 1, 2, 3')


def test_a_dimension_is_inserted_updated_and_deleted(tables: PostgresTables, select: Select) -> None:
    tables.write(table_task(DIMENSION, (b"1", row(id=1, name="a")), (b"2", row(id="2", name="b"))), "q", 0)
    assert users(select) == [("1", "a", 0), ("2", "b", 1)]
    tables.write(table_task(DIMENSION, (b"1", row(id=1, name="A")), (b"3", row(id=3, name="c")), first=2), "q", 1)
    assert users(select) == [("1", "A", 2), ("2", "b", 1), ("3", "c", 3)]
    tables.write(table_task(DIMENSION, (b"2", None), (b"3", None), (b"3", row(id=3)), first=4), "q", 2)
    assert users(select) == [("1", "A", 2), ("3", None, 6)]


def test_a_replay_replaces_and_an_older_attempt_is_refused(tables: PostgresTables, select: Select) -> None:
    first = table_task(DIMENSION, (b"1", row(id=1, name="a")), (b"2", row(id=2, name="b")))
    second = table_task(DIMENSION, (b"1", row(id=1, name="A")), (b"2", None), first=2)
    for batch, task in enumerate((first, second)):
        tables.write(task, "q", batch)
        tables.write(task, "q", batch)
    assert users(select) == [("1", "A", 2)]
    with pytest.raises(DatabaseError, match="batch 0 of dim_user_info-0 comes after a newer one"):
        tables.write(first, "q", 0)
    assert users(select) == [("1", "A", 2)], "the deleted row must not come back"


def test_a_new_checkpoint_writes_everything_once_more_and_nothing_goes_back(
    tables: PostgresTables, select: Select
) -> None:
    tables.write(table_task(DIMENSION, (b"1", row(id=1, name="a")), (b"1", row(id=1, name="b"))), "q", 0)
    tables.write(table_task(DIMENSION, (b"1", row(id=1, name="a"))), "another", 0)
    assert users(select) == [("1", "b", 1)]
    # Since there are more partitions, the key is in another one: its offsets say nothing about the old ones.
    tables.write(table_task(DIMENSION, (b"1", row(id=1, name="c")), partition=1), "another", 0)
    assert users(select) == [("1", "c", 0)]


def test_a_topic_that_was_created_again_replaces_rows_of_the_old_one(tables: PostgresTables, select: Select) -> None:
    """Its offsets begin at 0 again, and are newer all the same; a new checkpoint of the same topic is not."""

    def task(topic_id: str, *records: Any, first: int = 0) -> Any:
        made = table_task(DIMENSION, *records, first=first)
        return dataclasses.replace(made, spec=made.spec._replace(topic_id=topic_id))

    tables.write(task("one", (b"1", row(id=1, name="a")), (b"2", row(id=2, name="b")), first=70), "q", 0)
    tables.write(task("one", (b"1", row(id=1, name="older"))), "another", 0)
    assert users(select) == [("1", "a", 70), ("2", "b", 71)]
    tables.write(task("two", (b"1", row(id=1, name="new"))), "a third", 0)
    assert users(select) == [("1", "new", 0), ("2", "b", -1)]
    tables.close()
    tables.write(task("two", (b"2", None), first=1), "a third", 1)
    tables.write(task("two", (b"1", row(id=1, name="same"))), "a fourth", 0)
    tables.write(task("", (b"3", row(id=3)), first=2), "a third", 2)
    assert users(select) == [("1", "same", 0), ("3", None, 2)]


def test_a_log_has_each_record_once(tables: PostgresTables, select: Select) -> None:
    task = table_task("dwd_page_log", (b"m", row(mid="m", during_time="5", ts=7)), (b"m", row(mid="m", during_time=6)))
    tables.write(task, "q", 0)
    tables.write(task, "q", 0)
    assert select("SELECT mid, during_time, ts, _partition, _offset FROM dwd_page_log ORDER BY _offset") == [
        ("m", 5, 7, 0, 0),
        ("m", 6, None, 0, 1),
    ]


def test_the_error_log_can_be_searched(tables: PostgresTables, select: Select) -> None:
    tables.write(table_task("dwd_error_log", (b"m", b'{"err":{"error_code":7},"page":{"page_id":"home"}}')), "q", 0)
    assert select("SELECT error_code, event -> 'page' ->> 'page_id' FROM dwd_error_log") == [(7, "home")]


def test_a_fact_is_the_newest_by_key_and_says_when_it_was_deleted(tables: PostgresTables, select: Select) -> None:
    records = [
        (b"1", fact({"id": 1, "total": 5})),
        (b"1", fact({"id": 1, "total": 6}, operation="U", ts=8)),
        (b"1", fact({"id": 1, "total": 7}, table="other")),
        (b"2", fact({"id": 2}, operation="D")),
    ]
    tables.write(table_task("dwd_order_info", *records), "q", 0)
    assert select("SELECT _table, _key, total, _operation, _ts FROM dwd_order_info ORDER BY 1, 2") == [
        ("order_info", "1", "6", "U", 8),
        ("order_info", "2", None, "D", 5),
        ("other", "1", "7", "I", 5),
    ]


def test_new_columns_are_added_and_missing_ones_become_null(tables: PostgresTables, select: Select) -> None:
    tables.write(table_task(DIMENSION, (b"1", row(id=1, name="a"))), "q", 0)
    odd = {"id": 1, "name": "a", "E-Mail; DROP TABLE x": 'it"s', "ts": [1, {"a": None}]}
    tables.write(table_task(DIMENSION, (b"1", row(**odd)), first=1), "q", 1)
    assert select(f'SELECT "E-Mail; DROP TABLE x", ts FROM {DIMENSION}') == [('it"s', '[1,{"a":null}]')]
    tables.write(table_task(DIMENSION, (b"1", row(id=1)), first=2), "q", 2)
    assert select(f'SELECT name, "E-Mail; DROP TABLE x", ts FROM {DIMENSION}') == [(None, None, None)]


def test_a_table_that_the_user_made_is_honoured(
    tables: PostgresTables, select: Select, execute: Callable[[str], object]
) -> None:
    execute(
        f"CREATE TABLE {DIMENSION} (id bigint PRIMARY KEY, name text NOT NULL, birthday date, price numeric(10, 2),"
        " loaded timestamptz DEFAULT '2020-01-01 00:00+00', upper_name text GENERATED ALWAYS AS (upper(name)) STORED)"
    )
    execute(f"INSERT INTO {DIMENSION} (id, name) VALUES (1, 'was here before'), (9, 'mine')")
    good = (b"1", row(id="1", name="a", birthday="1982-04-11", price=12.5))
    bad = [
        (b"2", row(id=2, name="b", birthday="yesterday or so")),
        (b"3", row(id=3, name=None)),
        (b"4", row(id=4, name="zero \0 byte")),
    ]
    last = (b"5", row(id=5, name="e"))
    tables.write(table_task(DIMENSION, good, *bad, last), "q", 0)
    found = select(f"SELECT id, name, birthday::text, price::text, upper_name, loaded::date::text FROM {DIMENSION}")
    assert sorted(found) == [
        (1, "a", "1982-04-11", "12.50", "A", "2020-01-01"),
        (5, "e", None, None, "E", "2020-01-01"),
        (9, "mine", None, None, "MINE", "2020-01-01"),
    ]
    assert [(key, value) for _, _, _, key, value, _ in rejected(select)] == bad
    reasons = [reason for *_, reason in rejected(select)]
    assert "invalid input syntax for type date" in reasons[0]
    assert "not-null" in reasons[1]
    assert "0000" in reasons[2] or "Unicode" in reasons[2]
    tables.write(table_task(DIMENSION, (b"1", None), first=5), "q", 1)
    assert sorted(select(f"SELECT id FROM {DIMENSION}")) == [(5,), (9,)]


def test_a_replay_replaces_what_was_rejected(
    tables: PostgresTables, select: Select, execute: Callable[[str], object]
) -> None:
    execute(f"CREATE TABLE {DIMENSION} (id bigint, name date)")
    task = table_task(DIMENSION, (b"1", row(id=1, name="a")), (b"2", b"{"))
    for _ in range(2):
        tables.write(task, "q", 0)
        assert [offset for _, _, offset, *_ in rejected(select)] == [0, 1]
    execute(f"ALTER TABLE {DIMENSION} ALTER name TYPE text")
    tables.write(task, "q", 0)
    assert [offset for _, _, offset, *_ in rejected(select)] == [1]
    assert users(select) == [(1, "a", 0)]


def test_bad_rows_among_many_take_nobody_with_them(
    tables: PostgresTables, select: Select, execute: Callable[[str], object]
) -> None:
    execute(f"CREATE TABLE {DIMENSION} (id bigint CHECK (id % 97 <> 0), name text)")
    count = 6000
    tables.write(table_task(DIMENSION, *((b"%d" % n, row(id=n, name="x")) for n in range(count))), "q", 0)
    bad = {n for n in range(count) if n % 97 == 0}
    assert {int(key) for _, _, _, key, _, _ in rejected(select)} == bad
    assert {number for number, _, _ in users(select)} == set(range(count)) - bad


def test_names_that_postgresql_would_cut_are_rejected(tables: PostgresTables, select: Select) -> None:
    records = [(b"1", row(**{"x" * 64: 1})), (b"2", row(**{"": 1})), (b"3", row(id=3, name="c"))]
    tables.write(table_task(DIMENSION, *records), "q", 0)
    assert users(select) == [("3", "c", 2)]
    assert [offset for _, _, offset, *_ in rejected(select)] == [0, 1]


def test_columns_that_every_table_has_get_an_underscore(tables: PostgresTables, select: Select) -> None:
    columns = dict.fromkeys(("tableoid", "ctid", "xmin", "cmin", "xmax", "cmax"), 1.5)
    tables.write(table_task(DIMENSION, (b"1", row(id=1, **columns)), (b"2", row(id=2))), "q", 0)
    tables.write(table_task(DIMENSION, (b"2", row(id=2, xmax=3)), first=2), "q", 1)
    assert select(f"SELECT id, _xmin, _xmax FROM {DIMENSION} ORDER BY id") == [("1", "1.5", "1.5"), ("2", None, "3")]
    assert rejected(select) == []


def test_rows_that_are_large_go_a_few_at_a_time(
    tables: PostgresTables, select: Select, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A statement that is too large would fail forever, and the query with it."""
    sizes = []
    upsert = TaskWriting._upsert

    def noting(self: TaskWriting, rows: list[TableRow]) -> None:
        sizes.append(len(rows))
        upsert(self, rows)

    monkeypatch.setattr(TaskWriting, "_upsert", noting)
    records = [(b"%d" % number, row(id=number, name="x" * 4_000_000)) for number in range(11)]
    tables.write(table_task(DIMENSION, *records), "q", 0)
    assert sizes == [5, 5, 1]
    assert select(f"SELECT count(*), min(length(name)) FROM {DIMENSION}") == [(11, 4_000_000)]


def test_more_columns_than_a_table_can_have(tables: PostgresTables, select: Select) -> None:
    tables.write(table_task(DIMENSION, (b"1", row(id=1, name="a"))), "q", 0)
    wide = (b"2", row(**{f"c{number}": 1 for number in range(1700)}))
    tables.write(table_task(DIMENSION, wide, (b"3", row(id=3, name="c")), first=1), "q", 1)
    assert [key for _, key, _ in users(select)] == ["a", "c"]
    assert [key for _, _, _, key, _, _ in rejected(select)] == [b"2"]


def test_tasks_of_one_table_at_the_same_time(database: str, select: Select) -> None:
    """All of them find the table missing, and each brings a column of its own."""
    failures: list[BaseException] = []
    together = threading.Barrier(4)

    def write(partition: int) -> None:
        tables = PostgresTables(database)
        try:
            together.wait(30)
            for batch in range(3):
                record = (b"%d" % partition, row(id=partition, **{f"c{partition}_{batch}": batch}))
                tables.write(table_task(DIMENSION, record, first=batch, partition=partition), "q", batch)
        except BaseException as error:
            failures.append(error)
        finally:
            tables.close()

    threads = [threading.Thread(target=write, args=(partition,)) for partition in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    assert select(f"SELECT id, c3_2, c3_0 FROM {DIMENSION} ORDER BY id") == [
        ("0", None, None),
        ("1", None, None),
        ("2", None, None),
        ("3", "2", None),
    ]


def test_no_right_to_make_tables_is_needed_where_they_are(
    tables: PostgresTables, database: str, select: Select, execute: Callable[[str], object]
) -> None:
    tables.write(table_task(DIMENSION, (b"1", row(id=1, name="a"))), "q", 0)
    role = f"writer_{os.urandom(4).hex()}"
    execute(f"CREATE ROLE {role} LOGIN")
    execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {role}")
    writer = PostgresTables(database.replace("//barnabas@", f"//{role}@"))
    try:
        writer.write(table_task(DIMENSION, (b"2", row(id=2, name="b")), first=1), "q", 1)
        with pytest.raises(DatabaseError, match=f"table {DIMENSION}: must be owner of table"):
            writer.write(table_task(DIMENSION, (b"3", row(id=3, new=1)), first=2), "q", 2)
    finally:
        writer.close()
    assert users(select) == [("1", "a", 0), ("2", "b", 1)]


def test_a_topic_whose_name_is_no_tables() -> None:
    task = dataclasses.replace(table_task(DIMENSION, (b"1", row(id=1))), topic="dim_" + "x" * 60)
    with pytest.raises(DatabaseError, match="63 bytes at most"):
        PostgresTables("postgresql://nowhere/x").write(task, "q", 0)


def test_a_table_that_is_dropped_comes_back(
    tables: PostgresTables, select: Select, execute: Callable[[str], object]
) -> None:
    tables.write(table_task(DIMENSION, (b"1", row(id=1, name="a"))), "q", 0)
    execute(f"DROP TABLE {DIMENSION}, barnabas_progress")
    tables.write(table_task(DIMENSION, (b"2", row(id=2, name="b")), first=1), "q", 1)
    assert users(select) == [("2", "b", 1)]


def test_a_server_that_restarts_and_one_that_is_away(
    tables: PostgresTables, server: PostgresServer, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(batch: int) -> None:
        tables.write(table_task(DIMENSION, (b"%d" % batch, row(id=batch)), first=batch), "q", batch)

    write(0)
    server.stop()
    server.start()
    write(1)
    server.stop()
    monkeypatch.setattr("barnabas.pipeline.tables.postgresql._WAITS_S", (0.01,))
    try:
        address = database.partition("@")[2]
        with pytest.raises(DatabaseError, match=rf"PostgreSQL at {address}, table {DIMENSION}: .*refused"):
            write(2)
        with pytest.raises(DatabaseError, match=rf"PostgreSQL at {address}: .*refused"):
            tables.check()
    finally:
        server.start()
    write(2)
    with psycopg.connect(database) as connection:
        assert connection.execute(f"SELECT count(*) FROM {DIMENSION}").fetchone() == (3,)


@pytest.mark.parametrize("mode", ["fast", "immediate"])
@pytest.mark.parametrize("topic", [DIMENSION, "dwd_page_log"])
def test_a_server_that_restarts_in_mid_batch(
    tables: PostgresTables, server: PostgresServer, database: str, topic: str, mode: str
) -> None:
    """While a task is in its transaction: nothing of that is left, and it is done again."""
    key, held = ("_key", "'3'") if topic == DIMENSION else ("_partition, _offset", "0, 3")
    tables.write(table_task(topic, (b"0", row(mid="0"))), "q", 0)
    task = table_task(topic, *((b"%d" % number, row(mid=f"{number}")) for number in range(1, 6)), first=1)
    with ThreadPoolExecutor(1) as pool, contextlib.closing(psycopg.connect(database)) as blocker:
        # A row that is not committed yet: whoever brings one with the same key waits for what becomes of it.
        blocker.execute(f"INSERT INTO {topic} ({key}) VALUES ({held})")
        writing = pool.submit(tables.write, task, "q", 1)
        server.wait_for_lock("barnabas tables")
        with server.away(mode):
            pass  # "fast" may end the blocker first, and let the task through: that is right, too
        writing.result(120)
    tables.write(task, "q", 1)  # as Spark does if it does not learn of it
    with psycopg.connect(database) as connection:
        found = connection.execute(f"SELECT mid, _offset FROM {topic} ORDER BY _offset").fetchall()
    assert found == [(f"{number}", number) for number in range(6)]


def test_a_server_that_commits_and_dies_before_it_responds(
    tables: PostgresTables, server: PostgresServer, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, attempts = PostgresTables._write, []

    def write_and_lose_the_answer(self: PostgresTables, *task: Any) -> None:
        attempts.append(task)
        write(self, *task)
        if len(attempts) == 1:
            with server.away():
                pass
            raise psycopg.OperationalError("server closed the connection unexpectedly")

    monkeypatch.setattr(PostgresTables, "_write", write_and_lose_the_answer)
    tables.write(table_task(DIMENSION, (b"1", row(id=1)), (b"2", row(id=2)), (b"1", None)), "q", 0)
    assert len(attempts) == 2
    with psycopg.connect(database) as connection:
        assert connection.execute(f"SELECT id, _offset FROM {DIMENSION}").fetchall() == [("2", 1)]


def wait_with(monkeypatch: pytest.MonkeyPatch, sleep: Callable[[float], None]) -> None:
    """In the tables alone; whoever else waits does so as always."""
    clock = SimpleNamespace(sleep=sleep, monotonic=time.monotonic)
    monkeypatch.setattr("barnabas.pipeline.tables.postgresql.time", clock)


def test_a_server_that_is_away_for_most_of_a_minute(
    tables: PostgresTables, server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []

    def wait(seconds: float) -> None:
        before = sum(waited)
        waited.append(seconds)
        if before < 40 <= sum(waited):
            server.start()

    wait_with(monkeypatch, wait)
    server.stop()
    try:
        tables.write(table_task(DIMENSION, (b"1", row(id=1))), "q", 0)
    finally:
        if sum(waited) < 40:
            server.start()
    assert 40 <= sum(waited) <= 60


def test_a_table_that_is_never_right_is_given_up_soon(
    tables: PostgresTables, execute: Callable[[str], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []
    wait_with(monkeypatch, waited.append)
    execute(f"CREATE TABLE {DIMENSION} (id text)")
    execute(
        "CREATE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM * FROM nowhere; RETURN new; END'"
    )
    execute(f"CREATE TRIGGER broken BEFORE INSERT ON {DIMENSION} FOR EACH ROW EXECUTE FUNCTION broken()")
    words = rf'table {DIMENSION}: relation "nowhere" does not exist \(tried 4 times in \d+ s\)'
    with pytest.raises(DatabaseError, match=words):
        tables.write(table_task(DIMENSION, (b"1", row(id=1))), "q", 0)
    assert sum(waited) < 10


def test_what_the_user_has_to_mend_is_said_with_the_table(
    tables: PostgresTables, execute: Callable[[str], object]
) -> None:
    execute(f"CREATE VIEW {DIMENSION} AS SELECT 1 AS id")
    with pytest.raises(DatabaseError, match=rf"table {DIMENSION}: .*not supported for views"):
        tables.write(table_task(DIMENSION, (b"1", row(id=1))), "q", 0)
