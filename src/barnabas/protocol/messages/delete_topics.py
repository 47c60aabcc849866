"""DeleteTopics (key 20), v1-v6: topics to remove, by name or id.

v3 TOPIC_DELETION_DISABLED; v4 flexible; v5 error messages, quotas (KIP-599); v6 topics as structs that hold a name or
a topic id (KIP-516).
"""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import INT16, INT32, STRING, TEXT, UUID, array, field, message, struct


@struct
class DeleteTopicState:
    name: str | None = field(STRING, nullable=6, default=None)
    topic_id: bytes = field(UUID)


@message(api_key=ApiKey.DELETE_TOPICS, versions=(1, 6), flexible=4)
class DeleteTopicsRequest:
    topics: list[DeleteTopicState] = field(array(DeleteTopicState), since=6)
    topic_names: list[str] = field(array(STRING), until=5, ignorable=True)
    timeout_ms: int = field(INT32)


@struct
class DeletableTopicResult:
    name: str | None = field(STRING, nullable=6)
    topic_id: bytes = field(UUID, since=6, ignorable=True)
    error_code: int = field(INT16)
    error_message: str | None = field(TEXT, since=5, nullable=5, default=None, ignorable=True)


@message(api_key=ApiKey.DELETE_TOPICS, versions=(1, 6), flexible=4)
class DeleteTopicsResponse:
    throttle_time_ms: int = field(INT32)
    responses: list[DeletableTopicResult] = field(array(DeletableTopicResult))
