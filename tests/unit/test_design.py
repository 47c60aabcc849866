"""Every `file:function` in DESIGN.md exists: as a function of that module, or as a method of one of its classes."""

import importlib
import inspect
import re
from pathlib import Path

import pytest

DESIGN = Path(__file__).parents[2] / "DESIGN.md"
STEPS = sorted(set(re.findall(r"`(\w+(?:/\w+)+):(\w+)`", DESIGN.read_text(encoding="utf-8"))))


def test_there_are_some() -> None:
    assert len(STEPS) >= 30


@pytest.mark.parametrize(("file", "function"), STEPS)
def test_step_exists(file: str, function: str) -> None:
    module = importlib.import_module(f"barnabas.{file.replace('/', '.')}")
    classes = [each for _, each in inspect.getmembers(module, inspect.isclass) if each.__module__ == module.__name__]
    assert any(callable(getattr(owner, function, None)) for owner in [module, *classes])
