"""AlterUserScramCredentials (key 51), v0: sets and removes users' SCRAM credentials (KIP-554).

No listener authenticates by SCRAM, so a credential that was kept would protect nothing: UNSUPPORTED_SASL_MECHANISM.
There is none to remove: RESOURCE_NOT_FOUND, as in Kafka. A user that is named twice gets DUPLICATE_RESOURCE.
"""

from collections import Counter

from barnabas.errors import ErrorCode
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from barnabas.server.dispatch import Handler
from barnabas.server.request import RequestContext


def handle_alter_user_scram_credentials(
    context: RequestContext, request: AlterUserScramCredentialsRequest
) -> AlterUserScramCredentialsResponse:
    counts = Counter(_users(request))
    upserted = {change.name for change in request.upsertions}
    return AlterUserScramCredentialsResponse(
        results=[_refused(user, times, user in upserted) for user, times in counts.items()]
    )


def _users(request: AlterUserScramCredentialsRequest) -> list[str]:
    return [each.name for each in request.deletions] + [each.name for each in request.upsertions]


def _refused(user: str, times: int, upserted: bool) -> AlterUserScramCredentialsResult:
    if times > 1:
        error = ErrorCode.DUPLICATE_RESOURCE
        message = "A user credential cannot be altered twice in the same request"
    elif upserted:
        error = ErrorCode.UNSUPPORTED_SASL_MECHANISM
        message = "No listener of this broker authenticates by SCRAM, so no credential is kept."
    else:
        error = ErrorCode.RESOURCE_NOT_FOUND
        message = "Attempt to delete a user credential that does not exist"
    return AlterUserScramCredentialsResult(user=user, error_code=error, error_message=message)


def fail_alter_user_scram_credentials(
    context: RequestContext, request: AlterUserScramCredentialsRequest, error: ErrorCode
) -> AlterUserScramCredentialsResponse:
    users = dict.fromkeys(_users(request))
    return AlterUserScramCredentialsResponse(
        results=[
            AlterUserScramCredentialsResult(user=user, error_code=error, error_message=error.text) for user in users
        ]
    )


HANDLER = Handler(
    api_key=ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
    min_version=0,
    max_version=0,
    request=AlterUserScramCredentialsRequest,
    handle=handle_alter_user_scram_credentials,
    fail=fail_alter_user_scram_credentials,
)
