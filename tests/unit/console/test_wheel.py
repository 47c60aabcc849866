"""The page is in the wheel."""

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[3]
PACKAGE = PROJECT / "src/barnabas"


def page_files() -> set[str]:
    found = {each.relative_to(PACKAGE).as_posix() for each in (PACKAGE / "console/static").rglob("*") if each.is_file()}
    assert len(found) >= 8
    return found


def test_every_file_of_the_page_is_package_data() -> None:
    settings = tomllib.loads((PROJECT / "pyproject.toml").read_text())["tool"]["setuptools"]
    packed = {
        each.relative_to(PACKAGE).as_posix()
        for pattern in settings["package-data"]["barnabas"]
        for each in PACKAGE.glob(pattern)
    }
    assert page_files() <= packed


@pytest.mark.soak
def test_every_file_of_the_page_is_in_a_wheel_that_was_built(tmp_path: Path) -> None:
    source = tmp_path / "source"
    subprocess.run(["git", "clone", "--quiet", "--depth", "1", f"file://{PROJECT}", str(source)], check=True)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path), str(source)]
    subprocess.run(command, check=True, timeout=900)
    (wheel,) = tmp_path.glob("barnabas-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        assert {f"barnabas/{each}" for each in page_files()} <= set(archive.namelist())
