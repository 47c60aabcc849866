"""Tables in PostgreSQL, through psycopg. Runs on executors.

One table per topic, with the same name. Dimensions and facts are upserted by key (a dimension's row is deleted when its
value is null; a deleted fact stays, with `_operation` D), logs by their origin: a replay replaces them. A task is one
transaction, which starts with its row in `barnabas_progress`: an attempt older than what was written since is rejected.
An older offset never overwrites a newer one of its partition, as long as the topic is the same.

A record that PostgreSQL rejects (a value that does not fit the column, a constraint) goes to `barnabas_rejected` with
the reason; others are not affected.
"""

import contextlib
import logging
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

import orjson
import psycopg
from psycopg import Connection, conninfo, errors, sql

from barnabas.pipeline.tables.rows import (
    KEY,
    OFFSET,
    PARTITION,
    RejectedRecord,
    TableRow,
    TaskRecords,
    columns_of,
    newest,
    read_rows,
)
from barnabas.pipeline.tables.schema import LONGEST_NAME, PROGRESS, REJECTED, SYSTEM_COLUMNS, Schema, TableShape

if TYPE_CHECKING:
    from psycopg.sql import Composed

logger = logging.getLogger(__name__)
_ROWS_AT_A_TIME: Final = 5000
_BYTES_AT_A_TIME: Final = 16 * 1024 * 1024
"""Maximum bytes of records per statement; PostgreSQL rejects statements of a gigabyte."""
_CONNECT_TIMEOUT_S: Final = 10
_WAITS_S: Final = (0.2, 1.0, 2.0, 4.0, 8.0, 15.0, 15.0, 15.0)
"""Delays between attempts at a task: a minute in total, long enough for a server to restart and recover."""
_LOOKS: Final = 4
"""Attempts if a table is changed meanwhile: its schema is read again, without a delay."""
_OF_THE_DATA: Final = ("21", "22", "23", "54")
"""Classes of SQLSTATE: cardinality, data, integrity, limits. Other errors are not the fault of a record."""
_TAKE_PLACE: Final = f"""INSERT INTO {PROGRESS} AS held VALUES (%s, %s, %s, %s) ON CONFLICT (query, topic, partition)
    DO UPDATE SET batch = excluded.batch WHERE held.batch <= excluded.batch"""
_TOPIC_ID: Final = -1
"""Used as partition number: the row that holds the id of the table's topic."""
_SAME_TOPIC: Final = f"""INSERT INTO {PROGRESS} SELECT %(id)s, %(topic)s, {_TOPIC_ID}, 0 WHERE NOT EXISTS
    (SELECT FROM {PROGRESS} WHERE topic = %(topic)s AND partition = {_TOPIC_ID}) ON CONFLICT DO NOTHING"""
_NEW_TOPIC: Final = f"""UPDATE {PROGRESS} SET query = %(id)s
    WHERE topic = %(topic)s AND partition = {_TOPIC_ID} AND query <> %(id)s"""
_CLEAR_REJECTED: Final = f'DELETE FROM {REJECTED} WHERE topic = %s AND partition = %s AND "offset" BETWEEN %s AND %s'
_ADD_REJECTED: Final = f"""INSERT INTO {REJECTED} (topic, partition, "offset", key, value, reason)
    VALUES (%s, %s, %s, %s, %s, %s)"""


class DatabaseError(Exception):
    """The database cannot be used; the text has its address and the reason."""


class PostgresTables:
    """A connection, opened on first use and again after it was lost. Not thread-safe."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: Connection[Any] | None = None
        self._schema: Schema | None = None
        self._seen: set[tuple[str, str]] = set()
        """Topics with their ids that the tables were verified to match."""

    def check(self) -> None:
        """On the driver, before a query starts. Raises DatabaseError."""
        try:
            with psycopg.connect(self._url, connect_timeout=_CONNECT_TIMEOUT_S) as connection:
                connection.execute("SELECT 1")
        except psycopg.Error as error:
            raise DatabaseError(f"{address(self._url)}: {_words(error)}") from None

    def write(self, task: TaskRecords, query: str, batch: int) -> None:
        """Replaces what an earlier attempt at this batch wrote. Raises DatabaseError."""
        if len(task.topic) > LONGEST_NAME:
            raise DatabaseError(f"a name has {LONGEST_NAME} bytes at most in PostgreSQL: no table for {task.topic}")
        self._retrying(task.topic, lambda: self._write(task, query, batch))

    def close(self) -> None:
        connection, self._connection, self._schema = self._connection, None, None
        if connection is not None:
            with contextlib.suppress(psycopg.Error):
                connection.close()

    def _retrying(self, topic: str, work: Callable[[], None]) -> None:
        """A failed transaction was rolled back or, if only the response was lost, committed: it can be repeated."""
        started = time.monotonic()
        for attempt, wait_s in enumerate((*_WAITS_S, None), 1):
            try:
                return work()
            except (errors.UndefinedTable, errors.UndefinedColumn) as error:
                failure: psycopg.Error = error
                may_pass = attempt < _LOOKS
                if self._schema is not None:
                    self._schema.forget(topic)
            except psycopg.OperationalError as error:
                # Lost connection, server restarting, deadlock.
                failure, may_pass = error, True
                self.close()
            except psycopg.Error as error:
                self.close()
                raise DatabaseError(f"{address(self._url)}, table {topic}: {_words(error)}") from None
            if wait_s is None or not may_pass:
                tried = f"tried {attempt} times in {time.monotonic() - started:.0f} s"
                raise DatabaseError(f"{address(self._url)}, table {topic}: {_words(failure)} ({tried})") from None
            logger.warning("%s, table %s: %s; retrying in %g s", address(self._url), topic, _words(failure), wait_s)
            time.sleep(wait_s)
        return None

    def _write(self, task: TaskRecords, query: str, batch: int) -> None:
        connection, schema = self._connected()
        writing = TaskWriting(connection, schema, task)
        writing.prepare()
        with connection.transaction():
            taken = connection.execute(_TAKE_PLACE, (query, task.topic, task.partition, batch)).rowcount
            if not taken:
                raise DatabaseError(
                    f"{address(self._url)}: batch {batch} of {task.topic}-{task.partition} comes after a newer one:"
                    " an abandoned attempt, or two pipelines on one checkpoint"
                )
            if task.spec.topic_id and (task.topic, task.spec.topic_id) not in self._seen:
                writing.check_topic()
            writing.run()
        self._seen.add((task.topic, task.spec.topic_id))

    def _connected(self) -> tuple[Connection[Any], Schema]:
        if self._connection is None or self._schema is None or self._connection.closed:
            self._connection = psycopg.connect(
                self._url,
                autocommit=True,  # transactions are explicit
                prepare_threshold=None,  # columns may be added while this runs
                connect_timeout=_CONNECT_TIMEOUT_S,
                application_name="barnabas tables",
            )
            self._schema = Schema(self._connection)
        return self._connection, self._schema


class TaskWriting:
    """Writes the rows of one task to their table. One per attempt, with its own rejected records."""

    def __init__(self, connection: Connection[Any], schema: Schema, task: TaskRecords) -> None:
        self._connection = connection
        self._schema = schema
        self._task = task
        found = read_rows(task)
        self._records, self._rejected = found.records, found.rejected
        self._rows = [_without_system_columns(row) for row in newest(found.rows)]
        self._shape: TableShape | None = None

    def prepare(self) -> None:
        """Creates the table with its columns, before the transaction."""
        names = columns_of(self._rows)
        odd = {name for name in names if not 0 < len(name.encode()) <= LONGEST_NAME or "\0" in name}
        if odd:
            self._drop(odd, f"a column's name has 1 to {LONGEST_NAME} bytes in PostgreSQL")
            names = [name for name in names if name not in odd]
        try:
            self._shape = self._schema.ensure(self._task.topic, self._task.spec, names)
        except psycopg.Error as error:
            if not _is_of_the_data(error):
                raise
            # Too many columns: rows that only need existing ones are still written.
            self._shape = self._schema.ensure(self._task.topic, self._task.spec, ())
            self._drop(set(names) - self._shape.columns, _words(error))

    def check_topic(self) -> None:
        """If the topic was recreated since, the offsets in the table are not comparable: every new record is newer."""
        named = {"id": self._task.spec.topic_id, "topic": self._task.topic}
        self._connection.execute(_SAME_TOPIC, named)
        if self._connection.execute(_NEW_TOPIC, named).rowcount and self._task.spec.kind != "log":
            logger.warning("topic %s was recreated: its rows replace the existing ones", self._task.topic)
            statement = sql.SQL("UPDATE {} SET {} = -1")
            self._connection.execute(statement.format(sql.Identifier(self._task.topic), sql.Identifier(OFFSET)))

    def run(self) -> None:
        task = self._task
        for chunk in self._chunks():
            self._upsert(chunk)
        self._delete([row for row in self._rows if row.deleted])
        span = (task.topic, task.partition, task.first_offset, task.last_offset)
        self._connection.execute(_CLEAR_REJECTED, span)
        if self._rejected:
            with self._connection.cursor() as cursor:
                cursor.executemany(_ADD_REJECTED, [(task.topic, task.partition, *each) for each in self._rejected])

    def _chunks(self) -> Iterator[list[TableRow]]:
        """The rows that are not deleted, in chunks."""
        chunk: list[TableRow] = []
        size = 0
        for row in self._rows:
            if row.deleted:
                continue
            chunk.append(row)
            size += len(self._records[row.record][1] or b"")
            if len(chunk) >= _ROWS_AT_A_TIME or size >= _BYTES_AT_A_TIME:
                yield chunk
                chunk, size = [], 0
        if chunk:
            yield chunk

    def _upsert(self, rows: list[TableRow]) -> None:
        """All rows at once; if some are rejected, bisects until each of those is alone."""
        try:
            with self._connection.transaction():
                payload = orjson.dumps([row.columns for row in rows]).decode()
                self._connection.execute(self._statement(rows), (payload,))
        except psycopg.Error as error:
            if not _is_of_the_data(error):
                raise
            if len(rows) == 1:
                self._reject(rows[0], _words(error))
                return
            middle = len(rows) // 2
            self._upsert(rows[:middle])
            self._upsert(rows[middle:])

    def _statement(self, rows: list[TableRow]) -> "Composed":
        assert self._shape is not None
        shape, table = self._shape, sql.Identifier(self._task.topic)
        named = shape.left_alone.intersection(columns_of(rows)) if shape.left_alone else ()
        columns = [*shape.written, *sorted(named)]
        listed = sql.SQL(", ").join(map(sql.Identifier, columns))
        target = sql.SQL(", ").join(map(sql.Identifier, shape.target))
        changes = sql.SQL(", ").join(sql.SQL("{0} = excluded.{0}").format(sql.Identifier(name)) for name in columns)
        return sql.SQL(
            "INSERT INTO {table} AS held ({listed}) SELECT {listed} FROM json_populate_recordset(NULL::{table}, %s)"
            " ON CONFLICT ({target}) DO UPDATE SET {changes} WHERE held.{partition} IS DISTINCT FROM"
            " excluded.{partition} OR held.{offset} <= excluded.{offset}"
        ).format(
            table=table,
            listed=listed,
            target=target,
            changes=changes,
            partition=sql.Identifier(PARTITION),
            offset=sql.Identifier(OFFSET),
        )

    def _delete(self, rows: list[TableRow]) -> None:
        if not rows:
            return
        statement = sql.SQL(
            "DELETE FROM {table} AS held USING unnest(%s::text[], %s::bigint[]) AS gone (key, until)"
            " WHERE held.{key} = gone.key AND (held.{partition} <> %s OR held.{offset} <= gone.until)"
        ).format(
            table=sql.Identifier(self._task.topic),
            key=sql.Identifier(KEY),
            partition=sql.Identifier(PARTITION),
            offset=sql.Identifier(OFFSET),
        )
        keys = [row.columns[KEY] for row in rows]
        self._connection.execute(statement, (keys, [row.offset for row in rows], self._task.partition))

    def _drop(self, columns: set[str], reason: str) -> None:
        """Rows with such columns are rejected."""
        for row in self._rows:
            if not columns.isdisjoint(row.columns):
                self._reject(row, reason)
        self._rows = [row for row in self._rows if columns.isdisjoint(row.columns)]

    def _reject(self, row: TableRow, reason: str) -> None:
        key, value = self._records[row.record]
        self._rejected.append(RejectedRecord(row.offset, key, value, reason))


def address(url: str) -> str:
    """The address for display, without the password."""
    parts = conninfo.conninfo_to_dict(url)
    return f"PostgreSQL at {parts.get('host', 'localhost')}:{parts.get('port', 5432)}/{parts.get('dbname', '')}"


def session_options(url: str) -> str:
    """Session options such as search_path; usually empty."""
    return str(conninfo.conninfo_to_dict(url).get("options", ""))


def _without_system_columns(row: TableRow) -> TableRow:
    """Names of PostgreSQL's system columns get an underscore, like ours: xmin is a column of many maps."""
    if SYSTEM_COLUMNS.isdisjoint(row.columns):
        return row
    columns = {f"_{name}" if name in SYSTEM_COLUMNS else name: value for name, value in row.columns.items()}
    return row._replace(columns=columns)


def _is_of_the_data(error: psycopg.Error) -> bool:
    return error.sqlstate is not None and error.sqlstate[:2] in _OF_THE_DATA


def _words(error: psycopg.Error) -> str:
    """The reason in one line, without the position in a generated statement."""
    text = error.diag.message_primary or str(error)
    if error.diag.message_detail and not _is_of_the_data(error):
        text += f": {error.diag.message_detail}"
    return " ".join(text.split())
