"""Compiled modules have a twin in plain Python with the same interface. Which of the two is used is decided here.

BARNABAS_PURE=1 in the environment selects the pure ones; a compiled module that was not built is replaced too.
"""

import os
from importlib import import_module
from typing import Any, Final

PURE: Final = os.environ.get("BARNABAS_PURE", "0") not in ("", "0")


def choose_twin(native: str, pure: str) -> Any:
    """One of two modules, given by name. The caller annotates the result with the Protocol of the pair."""
    if not PURE:
        try:
            return import_module(native)
        except ImportError:
            pass
    return import_module(pure)
