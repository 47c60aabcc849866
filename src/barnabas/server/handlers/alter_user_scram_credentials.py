"""AlterUserScramCredentials (key 51), v0: sets and removes users' SCRAM credentials (KIP-554).

The client has hashed the password; what can be used to check it, not to log in, is kept. As in Kafka the number of
iterations is bounded, and a user that is named twice gets DUPLICATE_RESOURCE.
"""

from collections import Counter
from functools import partial

from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.controller.commands import ScramChange, ScramResult
from barnabas.machines.sasl.scram import LEAST_ITERATIONS
from barnabas.machines.sasl.scram_server import ScramCredential
from barnabas.net.deferred import Deferred, then
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialUpsertion,
)
from barnabas.server.dispatch import Handler
from barnabas.server.request import CLUSTER, Operation, RequestContext
from barnabas.server.scram_users import MECHANISMS
from barnabas.server.steps import MAX_CONTROLLER_ITEMS, fail_in_steps

MOST_ITERATIONS = 16_384
TWICE = "A user credential cannot be altered twice in the same request"
UNSUPPORTED = ErrorCode.UNSUPPORTED_SASL_MECHANISM
UNACCEPTABLE = ErrorCode.UNACCEPTABLE_CREDENTIAL


def handle_alter_user_scram_credentials(
    context: RequestContext, request: AlterUserScramCredentialsRequest
) -> AlterUserScramCredentialsResponse | Deferred[AlterUserScramCredentialsResponse]:
    if not context.may(Operation.ALTER, CLUSTER):
        return fail_alter_user_scram_credentials(context, request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    users = _users(request)
    if len(users) > MAX_CONTROLLER_ITEMS:
        return then(context.in_slices(fail_in_steps(len(users), partial(_too_many, users))), _of)
    return context.run(_alter(context, request))


def _too_many(users: list[str], start: int, end: int) -> list[AlterUserScramCredentialsResult]:
    return [_result(user, ErrorCode.POLICY_VIOLATION) for user in users[start:end]]


def _of(results: list[AlterUserScramCredentialsResult]) -> AlterUserScramCredentialsResponse:
    return AlterUserScramCredentialsResponse(results=results)


async def _alter(
    context: RequestContext, request: AlterUserScramCredentialsRequest
) -> AlterUserScramCredentialsResponse:
    refused = _faults(request)
    changes = [
        ScramChange(each.name, MECHANISMS[each.mechanism]) for each in request.deletions if each.name not in refused
    ]
    changes += [
        ScramChange(each.name, MECHANISMS[each.mechanism], _credential(each).text())
        for each in request.upsertions
        if each.name not in refused
    ]
    try:
        results: tuple[ScramResult, ...] = await context.broker.controller.alter_scram_credentials(changes)
    except KafkaError as error:
        return fail_alter_user_scram_credentials(context, request, error.code)
    done = {each.user: _result(each.user, each.error, each.message) for each in results}
    return AlterUserScramCredentialsResponse(
        results=[refused.get(user) or done[user] for user in dict.fromkeys(_users(request))]
    )


def _faults(request: AlterUserScramCredentialsRequest) -> dict[str, AlterUserScramCredentialsResult]:
    """What is wrong whatever the cluster holds, by user. Naming a user twice is the first of all faults."""
    found: dict[str, AlterUserScramCredentialsResult] = {}
    for user, times in Counter(_users(request)).items():
        if times > 1:
            found[user] = _result(user, ErrorCode.DUPLICATE_RESOURCE, TWICE)
        elif not user:
            found[user] = _result(user, UNACCEPTABLE, "Username must not be empty.")
    for deletion in request.deletions:
        if deletion.name not in found and deletion.mechanism not in MECHANISMS:
            found[deletion.name] = _result(deletion.name, UNSUPPORTED, "Unknown SCRAM mechanism")
    for change in request.upsertions:
        if change.name not in found and (fault := _fault(change)) is not None:
            found[change.name] = fault
    return found


def _fault(change: ScramCredentialUpsertion) -> AlterUserScramCredentialsResult | None:
    if change.mechanism not in MECHANISMS:
        return _result(change.name, UNSUPPORTED, "Unknown SCRAM mechanism")
    if change.iterations < LEAST_ITERATIONS:
        return _result(change.name, UNACCEPTABLE, "Too few iterations")
    if change.iterations > MOST_ITERATIONS:
        return _result(change.name, UNACCEPTABLE, "Too many iterations")
    if not change.salt or not change.salted_password:
        return _result(change.name, UNACCEPTABLE, "Salt and salted password must not be empty.")
    return None


def _credential(change: ScramCredentialUpsertion) -> ScramCredential:
    return ScramCredential.of(
        MECHANISMS[change.mechanism], bytes(change.salt), bytes(change.salted_password), change.iterations
    )


def _users(request: AlterUserScramCredentialsRequest) -> list[str]:
    return [each.name for each in request.deletions] + [each.name for each in request.upsertions]


def _result(user: str, error: ErrorCode, message: str | None = None) -> AlterUserScramCredentialsResult:
    text = message if message is not None or not error else error.text
    return AlterUserScramCredentialsResult(user=user, error_code=error, error_message=text)


def fail_alter_user_scram_credentials(
    context: RequestContext, request: AlterUserScramCredentialsRequest, error: ErrorCode
) -> AlterUserScramCredentialsResponse:
    return AlterUserScramCredentialsResponse(results=[_result(user, error) for user in dict.fromkeys(_users(request))])


HANDLER = Handler(
    api_key=ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
    min_version=0,
    max_version=0,
    request=AlterUserScramCredentialsRequest,
    handle=handle_alter_user_scram_credentials,
    fail=fail_alter_user_scram_credentials,
    forwards=True,
    checks_access=True,
)
