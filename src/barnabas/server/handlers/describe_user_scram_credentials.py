"""DescribeUserScramCredentials (key 50), v0: which users have SCRAM credentials (KIP-554), never what they are.

Without names all users are listed; a user that is named and has none is RESOURCE_NOT_FOUND, as in Kafka.
"""

from collections import Counter

from barnabas.errors import ErrorCode
from barnabas.metadata.image import ClusterImage
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from barnabas.server.dispatch import Handler
from barnabas.server.request import CLUSTER, Operation, RequestContext
from barnabas.server.scram_users import NUMBERS, credentials_of, users_of


def handle_describe_user_scram_credentials(
    context: RequestContext, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    if not context.may(Operation.DESCRIBE, CLUSTER):
        return fail_describe_user_scram_credentials(context, request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    image = context.broker.cluster.image
    names = [user.name for user in request.users] if request.users else users_of(image)
    return DescribeUserScramCredentialsResponse(
        error_code=ErrorCode.NONE,
        error_message=None,
        results=[_result(image, user, times) for user, times in Counter(names).items()],
    )


def _result(image: ClusterImage, user: str, times: int) -> DescribeUserScramCredentialsResult:
    if times > 1:
        error = ErrorCode.DUPLICATE_RESOURCE
        message = f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}"
        return DescribeUserScramCredentialsResult(user=user, error_code=error, error_message=message)
    found = credentials_of(image, user)
    if not found:
        error = ErrorCode.RESOURCE_NOT_FOUND
        message = f"Attempt to describe a user credential that does not exist: {user}"
        return DescribeUserScramCredentialsResult(user=user, error_code=error, error_message=message)
    infos = [
        CredentialInfo(mechanism=NUMBERS[name], iterations=credential.iterations)
        for name, credential in sorted(found.items())
    ]
    return DescribeUserScramCredentialsResult(
        user=user, error_code=ErrorCode.NONE, error_message=None, credential_infos=infos
    )


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
    checks_access=True,
)
