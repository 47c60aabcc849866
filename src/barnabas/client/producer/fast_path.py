"""The fast path of `send`, compiled if it could be, else in Python: chosen here and nowhere else."""

from typing import TYPE_CHECKING

from barnabas.twins import choose_twin

if TYPE_CHECKING:
    from barnabas.client.producer._fast_pure import BatchSlot, Delivery, PartitionSlot, SendPath, TopicSlot
else:
    _twin = choose_twin("barnabas.client.producer._fast", "barnabas.client.producer._fast_pure")
    BatchSlot, Delivery, PartitionSlot = _twin.BatchSlot, _twin.Delivery, _twin.PartitionSlot
    SendPath, TopicSlot = _twin.SendPath, _twin.TopicSlot

__all__ = ["BatchSlot", "Delivery", "PartitionSlot", "SendPath", "TopicSlot"]
