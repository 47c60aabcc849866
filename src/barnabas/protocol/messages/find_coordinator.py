"""FindCoordinator (key 10), v0-v6: the broker that coordinates a group, a transactional id or a share partition.

v1 key type, throttle time, error message; v3 flexible; v4 many keys at once (KIP-699); v5 TRANSACTION_ABORTABLE
(KIP-890); v6 share groups (KIP-932).
"""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import INT8, INT16, INT32, STRING, TEXT, array, field, message, struct


@message(api_key=ApiKey.FIND_COORDINATOR, versions=(0, 6), flexible=3)
class FindCoordinatorRequest:
    key: str = field(STRING, until=3)
    key_type: int = field(INT8, since=1)
    coordinator_keys: list[str] = field(array(STRING), since=4)


@struct
class Coordinator:
    key: str = field(STRING)
    node_id: int = field(INT32)
    host: str = field(STRING)
    port: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(TEXT, nullable=4)


@message(api_key=ApiKey.FIND_COORDINATOR, versions=(0, 6), flexible=3)
class FindCoordinatorResponse:
    throttle_time_ms: int = field(INT32, since=1, ignorable=True)
    error_code: int = field(INT16, until=3)
    error_message: str | None = field(TEXT, since=1, until=3, nullable=1, ignorable=True)
    node_id: int = field(INT32, until=3)
    host: str = field(STRING, until=3)
    port: int = field(INT32, until=3)
    coordinators: list[Coordinator] = field(array(Coordinator), since=4)
