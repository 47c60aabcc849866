"""The destination of tables, as given by the user: a folder for Parquet files, or the address of a PostgreSQL database.

Separate from the writers, so that the command can parse its options without importing them.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, Protocol

if TYPE_CHECKING:
    from barnabas.pipeline.tables.rows import TaskRecords

_POSTGRESQL: Final = ("postgresql://", "postgres://")
_PARQUET: Final = "parquet:"


class Tables(Protocol):
    def write(self, task: "TaskRecords", query: str, batch: int) -> None: ...


class PlaceError(ValueError):
    """The place cannot be used; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class Place:
    kind: Literal["parquet", "postgresql"]
    where: str
    """A folder (absolute, or a URI), or the address with all that is needed to connect."""

    @property
    def shown(self) -> str:
        """For display; never with a password."""
        if self.kind == "parquet":
            return f"Parquet in {self.where}"
        from barnabas.pipeline.tables.postgresql import address

        return address(self.where)

    @property
    def checkpoint_name(self) -> str:
        """Every place has its own progress: a new one starts at the beginning of the topics."""
        place = self.shown
        if self.kind == "postgresql":
            from barnabas.pipeline.tables.postgresql import session_options

            place += session_options(self.where)  # they may name a schema
        return f"{self.kind}-{hashlib.sha256(place.encode()).hexdigest()[:12]}"

    def open(self) -> Tables:
        return _OPEN[self.kind](self.where)

    def prepare(self, owner: str, *, has_begun: bool) -> None:
        """On the driver, before anything starts, so that errors are reported at once. Raises PlaceError.

        `owner` is the name of the checkpoint, and `has_begun` whether it has written here before.
        """
        if self.kind == "parquet":
            from barnabas.pipeline.tables.parquet import FolderError, ParquetTables

            try:
                ParquetTables(self.where).prepare(owner, has_begun=has_begun)
            except (FolderError, OSError) as error:
                raise PlaceError(str(error)) from None
            return
        from barnabas.pipeline.tables.postgresql import DatabaseError, PostgresTables

        try:
            PostgresTables(self.where).check()
        except DatabaseError as error:
            raise PlaceError(str(error)) from None


def parse_place(text: str) -> Place:
    """`DIR`, `parquet:DIR` or `postgresql://USER@HOST/DATABASE`. Raises PlaceError."""
    if text.startswith(_POSTGRESQL):
        return Place("postgresql", _checked_url(text))
    folder = text.removeprefix(_PARQUET)
    if not folder:
        raise PlaceError("the folder is missing")
    if "://" not in folder:
        return Place("parquet", str(Path(folder).absolute()))
    from pyarrow import ArrowException, fs

    try:
        fs.FileSystem.from_uri(folder)
    except (ArrowException, OSError, ValueError) as error:
        reason = str(error).split("\n")[0]
        raise PlaceError(f"{folder}: neither a folder nor postgresql://...: {reason}") from None
    return Place("parquet", folder)


def _checked_url(url: str) -> str:
    from psycopg import ProgrammingError, conninfo

    try:
        conninfo.conninfo_to_dict(url)
    except ProgrammingError as error:
        reason = " ".join(str(error).split())
        raise PlaceError(f"not the address of a PostgreSQL database: {reason}") from None
    return url


def _open_parquet(where: str) -> Tables:
    from barnabas.pipeline.tables.parquet import ParquetTables

    return ParquetTables(where)


def _open_postgresql(where: str) -> Tables:
    from barnabas.pipeline.tables.postgresql import PostgresTables

    return PostgresTables(where)


_OPEN: Final[dict[str, Callable[[str], Tables]]] = {"parquet": _open_parquet, "postgresql": _open_postgresql}
