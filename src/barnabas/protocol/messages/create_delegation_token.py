"""CreateDelegationToken (key 38), v1-v3: a token that authenticates its holder as the owner (KIP-48).

v2 flexible; v3 a token for another owner (KIP-373).
"""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import BYTES, INT16, INT32, INT64, STRING, array, field, message, struct


@struct
class CreatableRenewers:
    principal_type: str = field(STRING)
    principal_name: str = field(STRING)


@message(api_key=ApiKey.CREATE_DELEGATION_TOKEN, versions=(1, 3), flexible=2)
class CreateDelegationTokenRequest:
    owner_principal_type: str | None = field(STRING, since=3, nullable=3)
    owner_principal_name: str | None = field(STRING, since=3, nullable=3)
    renewers: list[CreatableRenewers] = field(array(CreatableRenewers))
    max_lifetime_ms: int = field(INT64)


@message(api_key=ApiKey.CREATE_DELEGATION_TOKEN, versions=(1, 3), flexible=2)
class CreateDelegationTokenResponse:
    error_code: int = field(INT16)
    principal_type: str = field(STRING)
    principal_name: str = field(STRING)
    token_requester_principal_type: str = field(STRING, since=3)
    token_requester_principal_name: str = field(STRING, since=3)
    issue_timestamp_ms: int = field(INT64)
    expiry_timestamp_ms: int = field(INT64)
    max_timestamp_ms: int = field(INT64)
    token_id: str = field(STRING)
    hmac: bytes = field(BYTES, secret=True)
    throttle_time_ms: int = field(INT32)
