"""DescribeUserScramCredentials (key 50), v0: which users have SCRAM credentials (KIP-554).

Nobody has any, because no listener authenticates by SCRAM: the list of all is empty, and a user that is named is
RESOURCE_NOT_FOUND, as in Kafka.
"""

from collections import Counter

from barnabas.errors import ErrorCode
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from barnabas.server.dispatch import Handler
from barnabas.server.request import RequestContext


def handle_describe_user_scram_credentials(
    context: RequestContext, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    counts = Counter(user.name for user in request.users or [])
    return DescribeUserScramCredentialsResponse(
        error_code=ErrorCode.NONE, error_message=None, results=[_result(*item) for item in counts.items()]
    )


def _result(user: str, times: int) -> DescribeUserScramCredentialsResult:
    if times > 1:
        error = ErrorCode.DUPLICATE_RESOURCE
        message = f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}"
    else:
        error = ErrorCode.RESOURCE_NOT_FOUND
        message = f"Attempt to describe a user credential that does not exist: {user}"
    return DescribeUserScramCredentialsResult(user=user, error_code=error, error_message=message)


def fail_describe_user_scram_credentials(
    context: RequestContext, request: DescribeUserScramCredentialsRequest, error: ErrorCode
) -> DescribeUserScramCredentialsResponse:
    return DescribeUserScramCredentialsResponse(error_code=error, error_message=error.text)


HANDLER = Handler(
    api_key=ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
    min_version=0,
    max_version=0,
    request=DescribeUserScramCredentialsRequest,
    handle=handle_describe_user_scram_credentials,
    fail=fail_describe_user_scram_credentials,
)
