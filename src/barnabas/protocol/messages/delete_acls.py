"""DeleteAcls (key 31), v1-v3: remove the access rules that match filters.

v1 pattern types (KIP-290); v2 flexible; v3 user resources (KIP-373).
"""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import INT8, INT16, INT32, STRING, TEXT, array, field, message, struct


@struct
class DeleteAclsFilter:
    resource_type_filter: int = field(INT8)
    resource_name_filter: str | None = field(STRING, nullable=1)
    pattern_type_filter: int = field(INT8, default=3)
    principal_filter: str | None = field(STRING, nullable=1)
    host_filter: str | None = field(STRING, nullable=1)
    operation: int = field(INT8)
    permission_type: int = field(INT8)


@message(api_key=ApiKey.DELETE_ACLS, versions=(1, 3), flexible=2)
class DeleteAclsRequest:
    filters: list[DeleteAclsFilter] = field(array(DeleteAclsFilter))


@struct
class DeleteAclsMatchingAcl:
    error_code: int = field(INT16)
    error_message: str | None = field(TEXT, nullable=1)
    resource_type: int = field(INT8)
    resource_name: str = field(STRING)
    pattern_type: int = field(INT8, default=3)
    principal: str = field(STRING)
    host: str = field(STRING)
    operation: int = field(INT8)
    permission_type: int = field(INT8)


@struct
class DeleteAclsFilterResult:
    error_code: int = field(INT16)
    error_message: str | None = field(TEXT, nullable=1)
    matching_acls: list[DeleteAclsMatchingAcl] = field(array(DeleteAclsMatchingAcl))


@message(api_key=ApiKey.DELETE_ACLS, versions=(1, 3), flexible=2)
class DeleteAclsResponse:
    throttle_time_ms: int = field(INT32)
    filter_results: list[DeleteAclsFilterResult] = field(array(DeleteAclsFilterResult))
