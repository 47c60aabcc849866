"""Leadership of one partition, as the broker that holds a replica of it sees it."""

from barnabas.machines.partition.state import PartitionState

__all__ = ["PartitionState"]
