"""ControlledShutdown (key 7), v3: a broker that is about to stop asks the controller to move its leaderships away.

Kafka 4 has removed it (its brokers ask by heartbeats to the controller's quorum), so only the last version of Kafka 3
is here: it travels between brokers only. Flexible; with broker epochs (KIP-380).
"""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import INT16, INT32, INT64, STRING, array, field, message, struct


@message(api_key=ApiKey.CONTROLLED_SHUTDOWN, versions=(3, 3), flexible=3)
class ControlledShutdownRequest:
    broker_id: int = field(INT32)
    broker_epoch: int = field(INT64, default=-1, ignorable=True)


@struct
class RemainingPartition:
    topic_name: str = field(STRING)
    partition_index: int = field(INT32)


@message(api_key=ApiKey.CONTROLLED_SHUTDOWN, versions=(3, 3), flexible=3)
class ControlledShutdownResponse:
    error_code: int = field(INT16)
    remaining_partitions: list[RemainingPartition] = field(array(RemainingPartition))
