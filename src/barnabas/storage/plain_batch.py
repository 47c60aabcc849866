"""Recognising a batch as producers nearly always send it: the compiled twin if it is there, the pure one if not.

`plain_batch_pure` says what it does. BARNABAS_PURE=1 in the environment forces that one.
"""

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.storage.plain_batch_pure import read_plain_header
else:
    try:
        if os.environ.get("BARNABAS_PURE", "0") not in ("", "0"):
            raise ImportError("BARNABAS_PURE is set")
        from barnabas.storage.plain_batch_native import read_plain_header
    except ImportError:
        from barnabas.storage.plain_batch_pure import read_plain_header

__all__ = ["read_plain_header"]
