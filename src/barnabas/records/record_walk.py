"""The walk over the records of a batch: the compiled twin if it is there, the pure one if not.

`_pure/record_walk` says what they do. BARNABAS_PURE=1 in the environment forces that one.
"""

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.records._pure.record_walk import find_by_time, renumber, walk_records
else:
    try:
        if os.environ.get("BARNABAS_PURE", "0") not in ("", "0"):
            raise ImportError("BARNABAS_PURE is set")
        from barnabas.records._native.record_walk import find_by_time, renumber, walk_records
    except ImportError:
        from barnabas.records._pure.record_walk import find_by_time, renumber, walk_records

__all__ = ["find_by_time", "renumber", "walk_records"]
