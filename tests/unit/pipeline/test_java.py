"""One line that says how to get Java, instead of what Py4J says."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.pipeline.java import why_no_java


def java(folder: Path, version_line: str) -> Path:
    command = folder / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.write_text(f"#!/bin/sh\necho '{version_line}' >&2\n")
    command.chmod(0o755)
    return folder


@pytest.fixture(autouse=True)
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))


def test_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reason = why_no_java()
    assert reason is not None and "\n" not in reason
    assert reason.startswith("Spark needs Java 17 or later, and there is none on PATH: install one")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    assert f"JAVA_HOME is {tmp_path / 'gone'}, which has none" in (why_no_java() or "")


@pytest.mark.parametrize(
    ("line", "version"),
    [('java version "1.8.0_392"', 8), ('openjdk version "11.0.2" 2019-01-15', 11), ('openjdk version "16-ea"', 16)],
)
def test_it_is_too_old(tmp_path: Path, line: str, version: int) -> None:
    java(tmp_path, line)
    assert f"is Java {version}: install one" in (why_no_java() or "")


@pytest.mark.parametrize("line", ['openjdk version "17.0.15" 2025-04-15', 'openjdk version "21" 2023-09-19'])
def test_it_will_do(tmp_path: Path, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    java(tmp_path, line)
    assert why_no_java() is None
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert why_no_java() is None


def test_what_does_not_say_what_it_is(tmp_path: Path) -> None:
    java(tmp_path, "hello")
    assert "does not report" in (why_no_java() or "")
