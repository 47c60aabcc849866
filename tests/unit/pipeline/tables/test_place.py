"""Where tables go, as users say it."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.pipeline.tables.place import Place, PlaceError, parse_place


@pytest.mark.parametrize("text", ["warehouse", "parquet:warehouse", "./warehouse"])
def test_a_folder(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert parse_place(text) == Place("parquet", str(tmp_path / "warehouse"))


def test_a_folder_on_any_file_system() -> None:
    assert parse_place("parquet:file:///data/tables") == Place("parquet", "file:///data/tables")


@pytest.mark.parametrize("scheme", ["postgresql", "postgres"])
def test_a_database(scheme: str) -> None:
    place = parse_place(f"{scheme}://me:secret@db.example:5433/warehouse")
    assert place.kind == "postgresql"
    assert place.shown == "PostgreSQL at db.example:5433/warehouse"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "the folder is missing"),
        ("parquet:", "the folder is missing"),
        ("mysql://me@db/warehouse", "neither a folder nor postgresql://"),
        ("postgresql://me@db/x?hots=1", "not the address of a PostgreSQL database"),
    ],
)
def test_what_is_no_place(text: str, reason: str) -> None:
    with pytest.raises(PlaceError, match=reason):
        parse_place(text)


def test_each_place_has_progress_of_its_own() -> None:
    texts = ["a", "b", "postgresql://db/x", "postgresql://db/y", "postgresql://other/x"]
    texts += [f"postgresql://db/x?options=-csearch_path%3D{schema}" for schema in ("one", "two")]
    names = [parse_place(text).checkpoint_name for text in texts]
    assert len(set(names)) == len(texts)
    with_password = parse_place("postgresql://me:secret@db/x").checkpoint_name
    assert with_password == parse_place("postgresql://me:changed@db/x").checkpoint_name
