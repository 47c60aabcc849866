"""What admin calls raise.

A call about one key raises its `KafkaError`. A call about many returns a mapping if all succeeded, and otherwise raises
`AdminError`, which has the results and the errors by key.
"""

from collections.abc import Mapping
from typing import Any

from barnabas.client.errors import ClientError, error_for
from barnabas.errors import ErrorCode, KafkaError

_WHAT_TO_DO = {
    ErrorCode.TOPIC_ALREADY_EXISTS: "ask for if_not_exists if that is fine",
    ErrorCode.NON_EMPTY_GROUP: "stop its members, then try again",
    ErrorCode.GROUP_ID_NOT_FOUND: "list_groups shows those there are",
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: "stop the members that read the topic, then try again",
    ErrorCode.TOPIC_DELETION_DISABLED: "set delete.topic.enable=true on the brokers",
    ErrorCode.SECURITY_DISABLED: "set authorizer.class.name on the brokers",
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: "list_transactions shows those there are",
    ErrorCode.REASSIGNMENT_IN_PROGRESS: "wait for it, or cancel it",
    ErrorCode.OFFSET_OUT_OF_RANGE: "list_offsets shows the earliest and latest",
    ErrorCode.RESOURCE_NOT_FOUND: "look for a typo in its name",
    ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED: "set delegation.token.secret.key on the brokers",
    ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED: "log in over TLS or SASL, and not with a token",
    ErrorCode.DELEGATION_TOKEN_NOT_FOUND: "describe_delegation_tokens shows those there are",
    ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH: "ask its owner, or one of its renewers",
    ErrorCode.DELEGATION_TOKEN_EXPIRED: "create another one",
    ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED: "ask for an ACL: CreateTokens on the user who is to own it",
    ErrorCode.LOG_DIR_NOT_FOUND: "describe_log_dirs shows those of the broker",
    ErrorCode.BROKER_ID_NOT_REGISTERED: "describe_cluster shows the brokers",
    ErrorCode.TRANSACTION_COORDINATOR_FENCED: "describe_producers shows the coordinator epoch to use",
}


class AdminError(ClientError):
    """Some or all of the things that one call was about failed: `errors` by key, and in `results` those that succeeded.

    `code` is that of the first failure; `retriable` if every failure is.
    """

    def __init__(self, errors: Mapping[Any, KafkaError], results: Mapping[Any, Any]) -> None:
        self.errors = dict(errors)
        self.results = dict(results)
        first = next(iter(self.errors.values()))
        more = len(self.errors) - 1
        text = first.message if not more else f"{first.message} (and {more} more failed, see .errors)"
        super().__init__(text, first.code)

    @property
    def retriable(self) -> bool:
        return all(error.retriable for error in self.errors.values())


def admin_error(
    code: int,
    message: str | None = None,
    *,
    topic: str | None = None,
    partition: int | None = None,
    group: str | None = None,
    transactional_id: str | None = None,
    hint: str | None = None,
) -> KafkaError:
    """The exception for a code that an admin call got, with what to do in an administrator's words."""
    error = error_for(code, message, topic=topic, partition=partition, group=group, transactional_id=transactional_id)
    hint = hint or _WHAT_TO_DO.get(error.code)
    if hint is not None:
        error.add_hint(hint)
    return error


def check(code: int, message: str | None = None, **about: Any) -> None:
    """Raise what a code stands for, unless it is NONE."""
    if code:
        raise admin_error(code, message, **about)
