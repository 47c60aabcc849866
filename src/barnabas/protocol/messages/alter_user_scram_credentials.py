"""AlterUserScramCredentials (key 51), v0: set or remove SCRAM credentials (KIP-554). Flexible.

Salt and salted password stay out of repr.
"""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import BYTES, INT8, INT16, INT32, STRING, TEXT, array, field, message, struct


@struct
class ScramCredentialDeletion:
    name: str = field(STRING)
    mechanism: int = field(INT8)


@struct
class ScramCredentialUpsertion:
    name: str = field(STRING)
    mechanism: int = field(INT8)
    iterations: int = field(INT32)
    salt: bytes = field(BYTES, secret=True)
    salted_password: bytes = field(BYTES, secret=True)


@message(api_key=ApiKey.ALTER_USER_SCRAM_CREDENTIALS, versions=(0, 0), flexible=0)
class AlterUserScramCredentialsRequest:
    deletions: list[ScramCredentialDeletion] = field(array(ScramCredentialDeletion))
    upsertions: list[ScramCredentialUpsertion] = field(array(ScramCredentialUpsertion))


@struct
class AlterUserScramCredentialsResult:
    user: str = field(STRING)
    error_code: int = field(INT16)
    error_message: str | None = field(TEXT, nullable=0)


@message(api_key=ApiKey.ALTER_USER_SCRAM_CREDENTIALS, versions=(0, 0), flexible=0)
class AlterUserScramCredentialsResponse:
    throttle_time_ms: int = field(INT32)
    results: list[AlterUserScramCredentialsResult] = field(array(AlterUserScramCredentialsResult))
