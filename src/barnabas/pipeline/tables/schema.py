"""The schema of the tables in PostgreSQL, and its creation. Runs on executors, in its own transactions.

A missing table is created: numbers of the logs as bigint, everything else as text. An existing table keeps its types,
defaults and constraints; only missing columns are added. Columns with a default and generated columns are the user's:
they are not set unless rows have them.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from psycopg import Connection, sql

from barnabas.pipeline.tables.rows import (
    IDENTITY,
    LINEAGE,
    LOG_FIGURES,
    OFFSET,
    PARTITION,
    WHOLE_EVENT,
    TableKind,
    TableSpec,
)

if TYPE_CHECKING:
    from psycopg.sql import Composed

REJECTED: Final = "barnabas_rejected"
PROGRESS: Final = "barnabas_progress"
LONGEST_NAME: Final = 63
"""In bytes; PostgreSQL truncates longer names."""
SYSTEM_COLUMNS: Final = frozenset({"tableoid", "ctid", "xmin", "cmin", "xmax", "cmax"})
_LOCK: Final = int.from_bytes(b"barnabas")
_LINEAGE_TYPES: Final = {PARTITION: "integer", OFFSET: "bigint", "_ts": "bigint"}
_OWN_TABLES: Final = {
    PROGRESS: f"""CREATE TABLE {PROGRESS} (query text, topic text, partition integer, batch bigint,
    PRIMARY KEY (query, topic, partition))""",
    REJECTED: f"""CREATE TABLE {REJECTED} (topic text, partition integer, "offset" bigint, key bytea, value bytea,
    reason text, at timestamptz DEFAULT now(), PRIMARY KEY (topic, partition, "offset"))""",
}
_COLUMNS: Final = """SELECT attname, attgenerated <> '', atthasdef OR attidentity <> '' FROM pg_attribute
    WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped"""
_UNIQUE: Final = """SELECT indisprimary, array_agg(attname::text) FROM pg_index
    JOIN pg_attribute ON attrelid = indrelid AND attnum = ANY (indkey)
    WHERE indrelid = %s::regclass AND indisunique AND indpred IS NULL AND indexprs IS NULL
    GROUP BY indexrelid, indisprimary"""


@dataclass(frozen=True, slots=True)
class TableShape:
    columns: frozenset[str]
    written: tuple[str, ...]
    """The columns that a row sets, to null if it has no value."""
    left_alone: frozenset[str]
    """Set only if rows have them."""
    target: tuple[str, ...]
    """The columns of the ON CONFLICT clause."""


class Schema:
    """The shapes of tables, as one connection has seen or created them."""

    def __init__(self, connection: Connection[Any]) -> None:
        self._connection = connection
        self._shapes: dict[str, TableShape] = {}
        self._has_own_tables = False

    def ensure(self, topic: str, spec: TableSpec, names: Iterable[str]) -> TableShape:
        """The table with all of these columns."""
        wanted = [*dict.fromkeys((*names, *LINEAGE[spec.kind]))]
        shape = self._shapes.get(topic)
        if shape is None or not shape.columns.issuperset(wanted):
            shape = self._shapes[topic] = self._make(topic, spec, wanted)
        return shape

    def forget(self, topic: str) -> None:
        """The table was changed by someone else."""
        self._shapes.pop(topic, None)
        self._has_own_tables = False

    def _make(self, topic: str, spec: TableSpec, names: list[str]) -> TableShape:
        """Short, and never while rows are being written: it may wait for other transactions, but never blocks them."""
        kind = spec.kind
        table = sql.Identifier(topic)
        with self._connection.transaction():
            self._run(sql.SQL("SELECT pg_advisory_xact_lock({})").format(_LOCK))
            if not self._has_own_tables:
                for name, statement in _OWN_TABLES.items():
                    if not self._exists(name):
                        self._connection.execute(statement)
            if not self._exists(topic):
                columns = sql.SQL(", ").join(_column(name, kind) for name in names)
                key = _names(IDENTITY[kind])
                self._run(sql.SQL("CREATE TABLE {} ({}, PRIMARY KEY ({}))").format(table, columns, key))
            found = self._columns(topic)
            missing = [_column(name, kind) for name in names if name not in found]
            if missing:
                added = sql.SQL(", ").join(sql.SQL("ADD COLUMN {}").format(each) for each in missing)
                self._run(sql.SQL("ALTER TABLE {} {}").format(table, added))
                found = self._columns(topic)
            target = self._target(topic, spec)
        self._has_own_tables = True
        usable = [name for name, (generated, _) in found.items() if not generated]
        alone = frozenset(name for name in usable if found[name][1])
        written = tuple(name for name in usable if name not in alone)
        return TableShape(frozenset(found), written, alone, target)

    def _exists(self, table: str) -> bool:
        """Instead of IF NOT EXISTS, which needs the right to create tables even if all of them exist."""
        found = self._connection.execute("SELECT to_regclass(%s) IS NOT NULL", (self._quoted(table),)).fetchone()
        return bool(found is not None and found[0])

    def _columns(self, topic: str) -> dict[str, tuple[bool, bool]]:
        """By name: (is generated, has a default)"""
        rows = self._connection.execute(_COLUMNS, (self._quoted(topic),)).fetchall()
        return {name: (generated, has_default) for name, generated, has_default in rows}

    def _target(self, topic: str, spec: TableSpec) -> tuple[str, ...]:
        """The primary key of a user's table, if it is the row's key; else our own unique index."""
        own = IDENTITY[spec.kind]
        found = self._connection.execute(_UNIQUE, (self._quoted(topic),)).fetchall()
        by_user = any(is_primary and set(columns) == set(spec.key) for is_primary, columns in found)
        # Deleted rows of a dimension are always found by ours.
        if not any(set(columns) == set(own) for _, columns in found) and not (by_user and spec.kind == "fact"):
            self._run(sql.SQL("CREATE UNIQUE INDEX ON {} ({})").format(sql.Identifier(topic), _names(own)))
        return spec.key if by_user else own

    def _quoted(self, topic: str) -> str:
        return sql.Identifier(topic).as_string(self._connection)

    def _run(self, statement: "Composed") -> None:
        self._connection.execute(statement)


def _column(name: str, kind: TableKind) -> "Composed":
    if name in LINEAGE[kind]:
        type_name = _LINEAGE_TYPES.get(name, "text")
    elif kind == "log":
        type_name = "bigint" if name in LOG_FIGURES else "jsonb" if name == WHOLE_EVENT else "text"
    else:
        type_name = "text"
    return sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL(type_name))


def _names(columns: Iterable[str]) -> "Composed":
    return sql.SQL(", ").join(map(sql.Identifier, columns))
