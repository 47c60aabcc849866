"""`barnabas pipeline run --tables`: what cannot work is said in a line, before Spark starts."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.cli.commands.pipeline import main

Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """(exit status, what it says on stderr)"""
    monkeypatch.setattr("barnabas.pipeline.java.why_no_java", lambda: None)
    monkeypatch.setattr("barnabas.pipeline.driving.spark_session", lambda *_: pytest.fail("Spark was started"))
    monkeypatch.chdir(tmp_path)

    def run(*options: str, checkpoint: str = "checkpoint") -> tuple[int, str]:
        status = main(["run", "--checkpoint", checkpoint, *options])
        return status, capsys.readouterr().err

    return run


def test_no_place(run: Run) -> None:
    status, told = run("--tables", "mysql://db/warehouse")
    assert status == 2
    assert "--tables: mysql://db/warehouse: neither a folder nor postgresql://..." in told


def test_a_time_without_tables(run: Run) -> None:
    assert run("--tables-trigger", "1 minute") == (2, "barnabas pipeline run: --tables-trigger without --tables\n")


def test_a_database_that_is_not_there(run: Run) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and nobody listens
        port = taken.getsockname()[1]
        status, told = run("--tables", f"postgresql://me:hidden@127.0.0.1:{port}/warehouse")
    assert status == 1
    assert told.startswith(f"barnabas pipeline run: PostgreSQL at 127.0.0.1:{port}/warehouse: ")
    assert "refused" in told
    assert "hidden" not in told
    assert told.count("\n") == 1


def test_psycopg_is_missing(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    status, told = run("--tables", "postgresql://db/warehouse")
    assert status == 2
    assert told == "barnabas pipeline run: psycopg is missing: pip install 'barnabas[postgresql]'\n"


def test_a_folder_of_another_checkpoint(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Reached(Exception):
        pass

    def reached(*_: object, **__: object) -> None:
        raise Reached

    monkeypatch.setattr("barnabas.cli.commands.pipeline_run.create_topics", reached)
    with pytest.raises(Reached):
        run("--tables")
    assert (tmp_path / "checkpoint-tables" / "_barnabas.json").exists(), "the folder, when none is named"
    with pytest.raises(Reached):
        run("--tables", "checkpoint-tables")
    status, told = run("--tables", "checkpoint-tables", checkpoint="another")
    assert status == 1
    assert f"{tmp_path / 'checkpoint-tables'} has tables of another checkpoint" in told
