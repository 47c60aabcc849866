"""The fast path of `send`, compiled if it could be, else in Python: chosen here and nowhere else."""

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING or os.environ.get("BARNABAS_PURE", "0") not in ("", "0"):
    from barnabas.client.producer._fast_pure import BatchSlot, Delivery, PartitionSlot, SendPath, TopicSlot
else:
    try:
        from barnabas.client.producer._fast import BatchSlot, Delivery, PartitionSlot, SendPath, TopicSlot
    except ImportError:
        from barnabas.client.producer._fast_pure import BatchSlot, Delivery, PartitionSlot, SendPath, TopicSlot

__all__ = ["BatchSlot", "Delivery", "PartitionSlot", "SendPath", "TopicSlot"]
