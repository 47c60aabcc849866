"""Every `file:function` in DESIGN.md exists, as a function of that module or a method of one of its classes.

Every non-obvious point names a file or folder that exists.
"""

import importlib
import inspect
import re
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
DESIGN = (PROJECT / "DESIGN.md").read_text(encoding="utf-8")
STEPS = sorted(set(re.findall(r"`(\w+(?:/\w+)+):(\w+)`", DESIGN)))
POINTS = re.findall(r"^- .*\n(?:  .*\n)*", DESIGN.partition("## Non-obvious")[2], re.MULTILINE)


def test_there_are_some() -> None:
    assert len(STEPS) >= 30


@pytest.mark.parametrize(("file", "function"), STEPS)
def test_step_exists(file: str, function: str) -> None:
    module = importlib.import_module(f"barnabas.{file.replace('/', '.')}")
    classes = [each for _, each in inspect.getmembers(module, inspect.isclass) if each.__module__ == module.__name__]
    assert any(callable(getattr(owner, function, None)) for owner in [module, *classes])


@pytest.mark.parametrize("point", POINTS)
def test_non_obvious_points_name_their_place(point: str) -> None:
    places = re.findall(r"`(\w+(?:/\w+)*(?:\.\w+)?)(?::\w+)?`", point)
    assert any(
        (PROJECT / "src" / "barnabas" / (place + end)).exists() for place in places for end in ("", ".py", ".pyx")
    )


def test_there_are_points() -> None:
    assert len(POINTS) >= 50
