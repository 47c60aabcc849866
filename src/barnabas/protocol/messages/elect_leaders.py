"""ElectLeaders (key 43), v0-v2: trigger preferred or unclean leader elections.

v1 election type, a top-level error (KIP-460); v2 flexible.
"""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import INT8, INT16, INT32, STRING, TEXT, array, field, message, struct


@struct
class TopicPartitions:
    topic: str = field(STRING)
    partitions: list[int] = field(array(INT32))


@message(api_key=ApiKey.ELECT_LEADERS, versions=(0, 2), flexible=2)
class ElectLeadersRequest:
    election_type: int = field(INT8, since=1)
    topic_partitions: list[TopicPartitions] | None = field(array(TopicPartitions), nullable=0)
    timeout_ms: int = field(INT32, default=60000)


@struct
class PartitionResult:
    partition_id: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(TEXT, nullable=0)


@struct
class ReplicaElectionResult:
    topic: str = field(STRING)
    partition_result: list[PartitionResult] = field(array(PartitionResult))


@message(api_key=ApiKey.ELECT_LEADERS, versions=(0, 2), flexible=2)
class ElectLeadersResponse:
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16, since=1)
    replica_election_results: list[ReplicaElectionResult] = field(array(ReplicaElectionResult))
