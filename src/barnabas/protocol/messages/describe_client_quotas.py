"""DescribeClientQuotas (key 48), v0-v1: quotas of users, clients and addresses (KIP-546).

v1 flexible.
"""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import BOOL, FLOAT64, INT8, INT16, INT32, STRING, TEXT, array, field, message, struct


@struct
class ComponentData:
    entity_type: str = field(STRING)
    match_type: int = field(INT8)
    match: str | None = field(STRING, nullable=0)


@message(api_key=ApiKey.DESCRIBE_CLIENT_QUOTAS, versions=(0, 1), flexible=1)
class DescribeClientQuotasRequest:
    components: list[ComponentData] = field(array(ComponentData))
    strict: bool = field(BOOL)


@struct
class EntityData:
    entity_type: str = field(STRING)
    entity_name: str | None = field(STRING, nullable=0)


@struct
class ValueData:
    key: str = field(STRING)
    value: float = field(FLOAT64)


@struct
class EntryData:
    entity: list[EntityData] = field(array(EntityData))
    values: list[ValueData] = field(array(ValueData))


@message(api_key=ApiKey.DESCRIBE_CLIENT_QUOTAS, versions=(0, 1), flexible=1)
class DescribeClientQuotasResponse:
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(TEXT, nullable=0)
    entries: list[EntryData] | None = field(array(EntryData), nullable=0)
