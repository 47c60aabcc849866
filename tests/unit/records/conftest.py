"""The two twins of the record codec: tests that take `codec` run once for each."""

import importlib
import os
from types import ModuleType

import pytest

TWINS = ["_pure", "_native"]


@pytest.fixture(params=TWINS, scope="session")
def codec(request: pytest.FixtureRequest) -> ModuleType:
    try:
        return importlib.import_module(f"barnabas.records.{request.param}")
    except ImportError as error:
        if request.param == "_native" and os.environ.get("BARNABAS_PURE", "0") in ("", "0"):
            pytest.skip(f"the compiled codec is not built: {error}")
        raise
