"""`Delivery`, compiled if it could be, else in Python: chosen here and nowhere else."""

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING or os.environ.get("BARNABAS_PURE", "0") not in ("", "0"):
    from barnabas.client.producer._fast_pure import Delivery
else:
    try:
        from barnabas.client.producer._fast import Delivery
    except ImportError:
        from barnabas.client.producer._fast_pure import Delivery

__all__ = ["Delivery"]
