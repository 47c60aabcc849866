"""The most common Produce request and its response: the compiled twin if it is there, the pure one if not.

`produce_one_pure` says what they do. BARNABAS_PURE=1 in the environment forces that one.
"""

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.protocol.produce_one_pure import decode_one, encode_one
else:
    try:
        if os.environ.get("BARNABAS_PURE", "0") not in ("", "0"):
            raise ImportError("BARNABAS_PURE is set")
        from barnabas.protocol.produce_one_native import decode_one, encode_one
    except ImportError:
        from barnabas.protocol.produce_one_pure import decode_one, encode_one

__all__ = ["decode_one", "encode_one"]
