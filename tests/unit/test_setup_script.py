"""scripts/venv.sh, with stand-ins for Python: what it refuses, what it replaces, what it leaves alone."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

STAND_IN = """#!/bin/sh
case "$1$2" in
  -c*) exit {too_old} ;;
  --version) echo "Python {version}" ;;
  -mvenv) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
  -mpip) ;;
esac
"""


def stand_in(path: Path, version: str, *, too_old: bool) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(STAND_IN.format(version=version, too_old=int(too_old)))
    path.chmod(0o755)
    return path


def make_environment(tmp_path: Path, python: str | Path) -> subprocess.CompletedProcess[str]:
    command = [str(ROOT / "scripts" / "venv.sh"), str(tmp_path / "venv"), str(python)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def recent(tmp_path: Path) -> Path:
    return stand_in(tmp_path / "recent", "3.12.1", too_old=False)


def test_makes_an_environment(tmp_path: Path, recent: Path) -> None:
    assert make_environment(tmp_path, recent).returncode == 0
    assert (tmp_path / "venv" / "bin" / "python").exists()


def test_refuses_an_old_python_before_it_writes_anything(tmp_path: Path) -> None:
    ended = make_environment(tmp_path, stand_in(tmp_path / "old", "3.9.2", too_old=True))
    assert ended.returncode == 1
    assert "needs Python 3.11 or later" in ended.stderr and "3.9.2" in ended.stderr
    assert not (tmp_path / "venv").exists()


def test_refuses_a_python_that_is_not_there(tmp_path: Path) -> None:
    ended = make_environment(tmp_path, "python-that-is-not-there")
    assert ended.returncode == 1 and "there is no 'python-that-is-not-there'" in ended.stderr
    assert not (tmp_path / "venv").exists()


def test_replaces_a_broken_environment(tmp_path: Path, recent: Path) -> None:
    (tmp_path / "venv" / "bin").mkdir(parents=True)
    (tmp_path / "venv" / "bin" / "python").symlink_to(tmp_path / "gone")
    (tmp_path / "venv" / "rest").write_text("of the broken one")
    ended = make_environment(tmp_path, recent)
    assert ended.returncode == 0 and "Replacing" in ended.stdout
    assert not (tmp_path / "venv" / "rest").exists() and (tmp_path / "venv" / "bin" / "python").exists()


def test_leaves_a_working_environment_alone(tmp_path: Path, recent: Path) -> None:
    make_environment(tmp_path, recent)
    (tmp_path / "venv" / "installed").write_text("something")
    assert make_environment(tmp_path, "python-that-is-not-there").returncode == 0
    assert (tmp_path / "venv" / "installed").exists()
