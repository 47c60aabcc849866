"""Tables in PostgreSQL, through psycopg. Runs on executors.

One table a topic, called like it. Dimensions and facts are upserted by key (a dimension's row goes when its value is
null; a deleted fact stays, with `_operation` D), logs by where they come from: a replay replaces. A task is one
transaction, which begins by taking its place in `barnabas_progress`: an attempt that is older than what was written
since is refused. An older offset never overwrites a newer one of its partition, as long as the topic is the same.

What PostgreSQL refuses (a value that does not fit the column, a constraint) goes with its reason into
`barnabas_rejected`, that record alone.
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
"""Of records; PostgreSQL takes no statement of a gigabyte."""
_CONNECT_TIMEOUT_S: Final = 10
_WAITS_S: Final = (0.2, 1.0, 2.0, 4.0, 8.0, 15.0, 15.0, 15.0)
"""Between attempts at a task: a minute, long enough for a server that restarts and recovers."""
_LOOKS: Final = 4
"""Attempts at a table that somebody changes meanwhile: it is looked at anew, and nothing has to come back."""
_OF_THE_DATA: Final = ("21", "22", "23", "54")
"""Classes of SQLSTATE: cardinality, data, integrity, limits. Whatever else is wrong is not a record's fault."""
_TAKE_PLACE: Final = f"""INSERT INTO {PROGRESS} AS held VALUES (%s, %s, %s, %s) ON CONFLICT (query, topic, partition)
    DO UPDATE SET batch = excluded.batch WHERE held.batch <= excluded.batch"""
_TOPIC_ID: Final = -1
"""In the place of a partition: that row says of which topic the table is, by its id."""
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
    """A connection, made when first needed and again after it was lost. Not shared by threads."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: Connection[Any] | None = None
        self._schema: Schema | None = None
        self._seen: set[tuple[str, str]] = set()
        """Topics with their ids, which the tables are known to be of."""

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
        """All of a failed transaction is gone, or, if only the answer was lost, all is there: it can be done again."""
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
            logger.warning("%s, table %s: %s; trying again in %g s", address(self._url), topic, _words(failure), wait_s)
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
                    " an attempt that was given up, or two pipelines on one checkpoint"
                )
            if task.spec.topic_id and (task.topic, task.spec.topic_id) not in self._seen:
                writing.check_topic()
            writing.run()
        self._seen.add((task.topic, task.spec.topic_id))

    def _connected(self) -> tuple[Connection[Any], Schema]:
        if self._connection is None or self._schema is None or self._connection.closed:
            self._connection = psycopg.connect(
                self._url,
                autocommit=True,  # transactions are begun where they are meant
                prepare_threshold=None,  # tables get columns while this runs
                connect_timeout=_CONNECT_TIMEOUT_S,
                application_name="barnabas tables",
            )
            self._schema = Schema(self._connection)
        return self._connection, self._schema


class TaskWriting:
    """The rows of one task on their way into their table. An attempt has one; what it rejects is its own."""

    def __init__(self, connection: Connection[Any], schema: Schema, task: TaskRecords) -> None:
        self._connection = connection
        self._schema = schema
        self._task = task
        found = read_rows(task)
        self._records, self._rejected = found.records, found.rejected
        self._rows = [_without_system_columns(row) for row in newest(found.rows)]
        self._shape: TableShape | None = None

    def prepare(self) -> None:
        """The table with its columns, before the transaction."""
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
            # Too many columns: rows that fit into what there is still go in.
            self._shape = self._schema.ensure(self._task.topic, self._task.spec, ())
            self._drop(set(names) - self._shape.columns, _words(error))

    def check_topic(self) -> None:
        """If the topic was created anew since, the offsets in the table are none of its: whatever comes is newer."""
        named = {"id": self._task.spec.topic_id, "topic": self._task.topic}
        self._connection.execute(_SAME_TOPIC, named)
        if self._connection.execute(_NEW_TOPIC, named).rowcount and self._task.spec.kind != "log":
            logger.warning("topic %s was created anew: its rows replace those that are there", self._task.topic)
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
        """The rows that are there, some at a time."""
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
        """All rows at once; if some are refused, halves of them, until each of those stands alone."""
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
    """Where it is, for people; never the password."""
    parts = conninfo.conninfo_to_dict(url)
    return f"PostgreSQL at {parts.get('host', 'localhost')}:{parts.get('port', 5432)}/{parts.get('dbname', '')}"


def session_options(url: str) -> str:
    """What is set for each session, a search_path for example; mostly nothing."""
    return str(conninfo.conninfo_to_dict(url).get("options", ""))


def _without_system_columns(row: TableRow) -> TableRow:
    """Names that every table of PostgreSQL has already get an underscore, as ours do: xmin is a column of many maps."""
    if SYSTEM_COLUMNS.isdisjoint(row.columns):
        return row
    columns = {f"_{name}" if name in SYSTEM_COLUMNS else name: value for name, value in row.columns.items()}
    return row._replace(columns=columns)


def _is_of_the_data(error: psycopg.Error) -> bool:
    return error.sqlstate is not None and error.sqlstate[:2] in _OF_THE_DATA


def _words(error: psycopg.Error) -> str:
    """The reason in one line, without a position in a statement that nobody wrote."""
    text = error.diag.message_primary or str(error)
    if error.diag.message_detail and not _is_of_the_data(error):
        text += f": {error.diag.message_detail}"
    return " ".join(text.split())
