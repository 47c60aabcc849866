"""DescribeUserScramCredentials (key 50), v0: mechanisms and iterations of users (KIP-554). Flexible."""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import INT8, INT16, INT32, STRING, TEXT, array, field, message, struct


@struct
class UserName:
    name: str = field(STRING)


@message(api_key=ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, versions=(0, 0), flexible=0)
class DescribeUserScramCredentialsRequest:
    users: list[UserName] | None = field(array(UserName), nullable=0)


@struct
class CredentialInfo:
    mechanism: int = field(INT8)
    iterations: int = field(INT32)


@struct
class DescribeUserScramCredentialsResult:
    user: str = field(STRING)
    error_code: int = field(INT16)
    error_message: str | None = field(TEXT, nullable=0)
    credential_infos: list[CredentialInfo] = field(array(CredentialInfo))


@message(api_key=ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, versions=(0, 0), flexible=0)
class DescribeUserScramCredentialsResponse:
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(TEXT, nullable=0)
    results: list[DescribeUserScramCredentialsResult] = field(array(DescribeUserScramCredentialsResult))
