"""The request contract is typed: `(RequestContext, Request) -> Response | Deferred[Response]`, never Any."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

from barnabas.server import handlers

FOLDER = Path(inspect.getfile(handlers)).parent
MODULES = sorted(path for path in FOLDER.glob("*.py") if path.name != "__init__.py")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_no_handler_takes_or_returns_any(path: Path) -> None:
    functions = [each for each in ast.parse(path.read_text()).body if isinstance(each, ast.FunctionDef)]
    for function in functions:
        if function.name.lstrip("_").startswith(("handle", "fail", "refuse", "try")):
            parts = [each.annotation for each in ast.walk(function.args) if isinstance(each, ast.arg)]
            types = [each for each in (*parts, function.returns) if each is not None]
            names = {name.id for each in types for name in ast.walk(each) if isinstance(name, ast.Name)}
            assert not names & {"Any", "object"}, f"{function.name} takes or returns anything"
