"""ExpireDelegationToken (key 40), v1-v2: expire a delegation token, now or at a given time (KIP-48).

v2 flexible.
"""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import BYTES, INT16, INT32, INT64, field, message


@message(api_key=ApiKey.EXPIRE_DELEGATION_TOKEN, versions=(1, 2), flexible=2)
class ExpireDelegationTokenRequest:
    hmac: bytes = field(BYTES, secret=True)
    expiry_time_period_ms: int = field(INT64)


@message(api_key=ApiKey.EXPIRE_DELEGATION_TOKEN, versions=(1, 2), flexible=2)
class ExpireDelegationTokenResponse:
    error_code: int = field(INT16)
    expiry_timestamp_ms: int = field(INT64)
    throttle_time_ms: int = field(INT32)
