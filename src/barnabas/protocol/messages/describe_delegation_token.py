"""DescribeDelegationToken (key 41), v1-v3: the delegation tokens of some owners, or all of them (KIP-48).

v2 flexible; v3 who requested a token (KIP-373).
"""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import BYTES, INT16, INT32, INT64, STRING, array, field, message, struct


@struct
class DescribeDelegationTokenOwner:
    principal_type: str = field(STRING)
    principal_name: str = field(STRING)


@message(api_key=ApiKey.DESCRIBE_DELEGATION_TOKEN, versions=(1, 3), flexible=2)
class DescribeDelegationTokenRequest:
    owners: list[DescribeDelegationTokenOwner] | None = field(array(DescribeDelegationTokenOwner), nullable=1)


@struct
class DescribedDelegationTokenRenewer:
    principal_type: str = field(STRING)
    principal_name: str = field(STRING)


@struct
class DescribedDelegationToken:
    principal_type: str = field(STRING)
    principal_name: str = field(STRING)
    token_requester_principal_type: str = field(STRING, since=3)
    token_requester_principal_name: str = field(STRING, since=3)
    issue_timestamp: int = field(INT64)
    expiry_timestamp: int = field(INT64)
    max_timestamp: int = field(INT64)
    token_id: str = field(STRING)
    hmac: bytes = field(BYTES, secret=True)
    renewers: list[DescribedDelegationTokenRenewer] = field(array(DescribedDelegationTokenRenewer))


@message(api_key=ApiKey.DESCRIBE_DELEGATION_TOKEN, versions=(1, 3), flexible=2)
class DescribeDelegationTokenResponse:
    error_code: int = field(INT16)
    tokens: list[DescribedDelegationToken] = field(array(DescribedDelegationToken))
    throttle_time_ms: int = field(INT32)
