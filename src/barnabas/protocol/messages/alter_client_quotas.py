"""AlterClientQuotas (key 49), v0-v1: set or remove quotas (KIP-546).

v1 flexible.
"""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import BOOL, FLOAT64, INT16, INT32, STRING, TEXT, array, field, message, struct


@struct
class EntityData:
    entity_type: str = field(STRING)
    entity_name: str | None = field(STRING, nullable=0)


@struct
class OpData:
    key: str = field(STRING)
    value: float = field(FLOAT64)
    remove: bool = field(BOOL)


@struct
class EntryData:
    entity: list[EntityData] = field(array(EntityData))
    ops: list[OpData] = field(array(OpData))


@message(api_key=ApiKey.ALTER_CLIENT_QUOTAS, versions=(0, 1), flexible=1)
class AlterClientQuotasRequest:
    entries: list[EntryData] = field(array(EntryData))
    validate_only: bool = field(BOOL)


@struct
class ResponseEntryData:
    error_code: int = field(INT16)
    error_message: str | None = field(TEXT, nullable=0)
    entity: list[EntityData] = field(array(EntityData))


@message(api_key=ApiKey.ALTER_CLIENT_QUOTAS, versions=(0, 1), flexible=1)
class AlterClientQuotasResponse:
    throttle_time_ms: int = field(INT32)
    entries: list[ResponseEntryData] = field(array(ResponseEntryData))
