"""DeleteGroups (key 42), v0-v2: remove empty groups and their offsets (KIP-229).

v2 flexible.
"""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import INT16, INT32, STRING, array, field, message, struct
from barnabas.types import GroupId


@message(api_key=ApiKey.DELETE_GROUPS, versions=(0, 2), flexible=2)
class DeleteGroupsRequest:
    groups_names: list[GroupId] = field(array(STRING))


@struct
class DeletableGroupResult:
    group_id: GroupId = field(STRING)
    error_code: int = field(INT16)


@message(api_key=ApiKey.DELETE_GROUPS, versions=(0, 2), flexible=2)
class DeleteGroupsResponse:
    throttle_time_ms: int = field(INT32)
    results: list[DeletableGroupResult] = field(array(DeletableGroupResult))
