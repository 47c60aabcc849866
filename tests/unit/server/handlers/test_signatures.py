"""The request contract is typed: `(RequestContext, Request) -> Response | Deferred[Response]`, never Any."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path
from typing import Any

import pytest

from barnabas.server import handlers
from barnabas.server.dispatch import AnyHandler
from barnabas.server.request import RequestContext

FOLDER = Path(inspect.getfile(handlers)).parent
MODULES = sorted(path for path in FOLDER.glob("*.py") if path.name != "__init__.py")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_no_signature_in_a_handler_s_file_says_any(path: Path) -> None:
    for function in ast.walk(ast.parse(path.read_text())):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            parts = [each.annotation for each in ast.walk(function.args) if isinstance(each, ast.arg)]
            types = [each for each in (*parts, function.returns) if each is not None]
            names = {name.id for each in types for name in ast.walk(each) if isinstance(name, ast.Name)}
            assert not names & {"Any", "object"}, f"{function.name} takes or returns anything"


@pytest.mark.parametrize("handler", handlers.HANDLERS, ids=lambda handler: handler.api_key.name)
def test_a_handler_takes_its_context_and_its_request(handler: AnyHandler) -> None:
    context, request = inspect.signature(handler.handle).parameters.values()
    assert context.annotation is RequestContext
    assert request.annotation not in (Any, object, inspect.Parameter.empty)
