"""CreateAcls (key 30), v1-v3: new access rules.

v1 pattern types (KIP-290); v2 flexible; v3 user resources (KIP-373).
"""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import INT8, INT16, INT32, STRING, TEXT, array, field, message, struct


@struct
class AclCreation:
    resource_type: int = field(INT8)
    resource_name: str = field(STRING)
    resource_pattern_type: int = field(INT8, default=3)
    principal: str = field(STRING)
    host: str = field(STRING)
    operation: int = field(INT8)
    permission_type: int = field(INT8)


@message(api_key=ApiKey.CREATE_ACLS, versions=(1, 3), flexible=2)
class CreateAclsRequest:
    creations: list[AclCreation] = field(array(AclCreation))


@struct
class AclCreationResult:
    error_code: int = field(INT16)
    error_message: str | None = field(TEXT, nullable=1)


@message(api_key=ApiKey.CREATE_ACLS, versions=(1, 3), flexible=2)
class CreateAclsResponse:
    throttle_time_ms: int = field(INT32)
    results: list[AclCreationResult] = field(array(AclCreationResult))
