"""`kafka-delegation-tokens.sh`: creates, renews, expires and describes delegation tokens.

Prints what Kafka's tool prints, HMACs included. The difference: --describe without an owner shows every token that the
user may see, as Kafka's help says; Kafka's tool then asks for the tokens of nobody.
"""

from __future__ import annotations

import base64
import binascii
from datetime import datetime
from typing import TYPE_CHECKING

from barnabas.cli.kafka.failures import FailureReport, with_admin
from barnabas.cli.kafka.flags import (
    BOOTSTRAP_SERVER,
    COMMAND_CONFIG,
    COMMAND_PROPERTY,
    Flag,
    Options,
    Tool,
    long,
    refuse,
)
from barnabas.cli.kafka.principals import check_principal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from barnabas.client.admin import Admin
    from barnabas.client.admin.types import DelegationToken

ACTIONS = ("create", "renew", "expire", "describe")
ROW = "\n{:<15} {:<30} {:<15} {:<15} {:<25} {:<15} {:<15} {:<15}"
HEADERS = ("TOKENID", "HMAC", "OWNER", "REQUESTER", "RENEWERS", "ISSUEDATE", "EXPIRYDATE", "MAXDATE")

TOOL = Tool(
    "kafka-delegation-tokens.sh",
    "This tool helps to create, renew, expire, or describe delegation tokens.",
    (
        BOOTSTRAP_SERVER,
        COMMAND_CONFIG._replace(help="A file of properties for the client (required: TLS or SASL)."),
        COMMAND_PROPERTY,
        Flag("create", "Create a token."),
        Flag("renew", "Let a token live longer."),
        Flag("expire", "End a token."),
        Flag("describe", "Show tokens."),
        Flag("owner-principal", "Whose the token is, as User:name; with --describe repeatable.", "PRINCIPAL"),
        Flag("renewer-principal", "Who else may renew and end the new token (repeatable).", "PRINCIPAL"),
        Flag("max-life-time-period", "Longest life of the new token in ms; -1 is the brokers' limit.", "MS", long),
        Flag("renew-time-period", "How long from now in ms; -1 is the brokers' default.", "MS", long),
        Flag("expiry-time-period", "When to end it, in ms from now; -1 is at once.", "MS", long),
        Flag("hmac", "The token's HMAC in base64.", "HMAC"),
    ),
)


def _check(options: Options) -> None:
    if len(options.given_of(*ACTIONS)) != 1:
        refuse("Command must include exactly one action: --create, --renew, --expire or --describe")
    options.require("bootstrap-server")
    if not options.has("command-property"):
        options.require("command-config")
    if options.has("create"):
        options.require("max-life-time-period")
    if options.has("renew"):
        options.require("hmac", "renew-time-period")
    if options.has("expire"):
        options.require("hmac", "expiry-time-period")
    options.forbid("create", "hmac", "renew-time-period", "expiry-time-period")
    options.forbid("renew", "renewer-principal", "max-life-time-period", "expiry-time-period", "owner-principal")
    options.forbid("expire", "renewer-principal", "max-life-time-period", "renew-time-period", "owner-principal")
    options.forbid(
        "describe", "renewer-principal", "max-life-time-period", "hmac", "renew-time-period", "expiry-time-period"
    )


def _run(admin: Admin, options: Options) -> None:
    action = next(each for each in ACTIONS if options.has(each))
    {"create": _create, "renew": _renew, "expire": _expire, "describe": _describe}[action](admin, options)


def _create(admin: Admin, options: Options) -> None:
    renewers, owners = _principals(options, "renewer-principal"), _principals(options, "owner-principal")
    max_lifetime_ms = options.value("max-life-time-period")
    print(
        f"Calling create token operation with renewers :{_java_list(renewers)} ,"
        f" max-life-time-period :{max_lifetime_ms}"
    )
    token = admin.create_delegation_token(
        owner=owners[0] if owners else None, renewers=renewers, max_lifetime_ms=max_lifetime_ms
    )
    print(f"Created delegation token with tokenId : {token.token_id}")
    _print_tokens([token])


def _renew(admin: Admin, options: Options) -> None:
    period_ms = options.value("renew-time-period")
    print(
        f"Calling renew token operation with hmac :{options.value('hmac')} , renew-time-period :{period_ms}", flush=True
    )
    expires = admin.renew_delegation_token(_hmac(options), period_ms=period_ms)
    print(f"Completed renew operation. New expiry date : {_date(expires)}")


def _expire(admin: Admin, options: Options) -> None:
    period_ms = options.value("expiry-time-period")
    print(
        f"Calling expire token operation with hmac :{options.value('hmac')} , expire-time-period :{period_ms}",
        flush=True,
    )
    expires = admin.expire_delegation_token(_hmac(options), period_ms=period_ms)
    print(f"Completed expire operation. New expiry date : {_date(expires)}")


def _describe(admin: Admin, options: Options) -> None:
    owners = _principals(options, "owner-principal")
    if owners:
        print(f"Calling describe token operation for owners: {_java_list(owners)}")
    else:
        print("Calling describe token operation for current user.")
    tokens = admin.describe_delegation_tokens(owners or None)
    print(f"Total number of tokens : {len(tokens)}", end="")
    _print_tokens(tokens)


def _principals(options: Options, flag: str) -> list[str]:
    principals = [each.strip() for each in options.values(flag)]
    for each in principals:
        check_principal(each)
    return principals


def _hmac(options: Options) -> bytes:
    try:
        return base64.b64decode(options.value("hmac"), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("the HMAC is not base64") from None


def _print_tokens(tokens: Sequence[DelegationToken]) -> None:
    print(ROW.format(*HEADERS))
    for token in tokens:
        times = (token.issue_timestamp, token.expiry_timestamp, token.max_timestamp)
        print(
            ROW.format(
                token.token_id,
                token.password,
                token.owner,
                token.requester,
                _java_list(token.renewers),
                *map(_date, times),
            )
        )


def _java_list(items: Sequence[str]) -> str:
    return f"[{', '.join(items)}]"


def _date(timestamp_ms: int) -> str:
    """In the zone of this machine, as Kafka's tool has it."""
    return f"{datetime.fromtimestamp(timestamp_ms / 1000):%Y-%m-%dT%H:%M}"


FAILURE = FailureReport(with_exception=True, also=(ValueError,))
main = TOOL.main(_check, with_admin(_run, FAILURE))
