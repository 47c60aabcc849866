"""CreateTopics (key 19), v2-v7: new topics, by counts or by assignment.

v4 counts of -1 mean the broker's defaults (KIP-464); v5 flexible, settings and counts in the response
(KIP-525); v6 quotas (KIP-599); v7 topic id in the response (KIP-516).
"""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import BOOL, INT8, INT16, INT32, STRING, TEXT, UUID, array, field, message, struct


@struct
class CreatableReplicaAssignment:
    partition_index: int = field(INT32)
    broker_ids: list[int] = field(array(INT32))


@struct
class CreatableTopicConfig:
    name: str = field(STRING)
    value: str | None = field(STRING, nullable=2, secret=True)


@struct
class CreatableTopic:
    name: str = field(STRING)
    num_partitions: int = field(INT32)
    replication_factor: int = field(INT16)
    assignments: list[CreatableReplicaAssignment] = field(array(CreatableReplicaAssignment))
    configs: list[CreatableTopicConfig] = field(array(CreatableTopicConfig))


@message(api_key=ApiKey.CREATE_TOPICS, versions=(2, 7), flexible=5)
class CreateTopicsRequest:
    topics: list[CreatableTopic] = field(array(CreatableTopic))
    timeout_ms: int = field(INT32, default=60000)
    validate_only: bool = field(BOOL)


@struct
class CreatableTopicConfigs:
    name: str = field(STRING)
    value: str | None = field(STRING, nullable=5, secret=True)
    read_only: bool = field(BOOL)
    config_source: int = field(INT8, default=-1)
    is_sensitive: bool = field(BOOL)


@struct
class CreatableTopicResult:
    name: str = field(STRING)
    topic_id: bytes = field(UUID, since=7, ignorable=True)
    error_code: int = field(INT16)
    error_message: str | None = field(TEXT, nullable=2)
    topic_config_error_code: int = field(INT16, since=5, ignorable=True, tag=0)
    num_partitions: int = field(INT32, since=5, default=-1, ignorable=True)
    replication_factor: int = field(INT16, since=5, default=-1, ignorable=True)
    configs: list[CreatableTopicConfigs] | None = field(
        array(CreatableTopicConfigs), since=5, nullable=5, ignorable=True
    )


@message(api_key=ApiKey.CREATE_TOPICS, versions=(2, 7), flexible=5)
class CreateTopicsResponse:
    throttle_time_ms: int = field(INT32)
    topics: list[CreatableTopicResult] = field(array(CreatableTopicResult))
