"""ListGroups (key 16), v0-v5: the groups that a broker coordinates.

v1 throttle time; v3 flexible; v4 filter by state (KIP-518); v5 filter by type (KIP-848).
"""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import INT16, INT32, STRING, array, field, message, struct
from barnabas.types import GroupId


@message(api_key=ApiKey.LIST_GROUPS, versions=(0, 5), flexible=3)
class ListGroupsRequest:
    states_filter: list[str] = field(array(STRING), since=4)
    types_filter: list[str] = field(array(STRING), since=5)


@struct
class ListedGroup:
    group_id: GroupId = field(STRING)
    protocol_type: str = field(STRING)
    group_state: str = field(STRING, since=4, ignorable=True)
    group_type: str = field(STRING, since=5, ignorable=True)


@message(api_key=ApiKey.LIST_GROUPS, versions=(0, 5), flexible=3)
class ListGroupsResponse:
    throttle_time_ms: int = field(INT32, since=1, ignorable=True)
    error_code: int = field(INT16)
    groups: list[ListedGroup] = field(array(ListedGroup))
