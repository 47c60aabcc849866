"""`barnabas token`: delegation tokens, which let programs log in for a while as the user who asked for them.

    barnabas token create --renewer scheduler --to job.properties    # options of a client that logs in with it
    barnabas token list
    barnabas token renew TOKEN-ID --for 12h
    barnabas token expire TOKEN-ID

A token is named by its id, which is no secret: its HMAC, which is, is never typed, and printed by `create` alone.
"""

import argparse
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from barnabas.cli.command import Command, Refused, UsageError, noun_main, with_admin
from barnabas.cli.output import Output, Table
from barnabas.cli.times import duration_ms

if TYPE_CHECKING:
    from barnabas.client.admin import Admin
    from barnabas.client.admin.types import DelegationToken

MECHANISMS = ("SCRAM-SHA-512", "SCRAM-SHA-256")
COPIED = (
    *("bootstrap.servers", "security.protocol", "ssl.truststore.location", "ssl.truststore.type"),
    "ssl.endpoint.identification.algorithm",
)
"""Options of this client that one with the token needs as well."""
HEADERS = ("TOKEN", "OWNER", "REQUESTER", "RENEWERS", "ISSUED", "EXPIRES", "LATEST")


def create_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--owner", metavar="NAME", help="whose it is; yours where left out")
    parser.add_argument(
        "--renewer", metavar="NAME", action="append", default=[], help="who else may renew and end it; repeatable"
    )
    parser.add_argument("--max-life", metavar="TIME", help="like 12h or 7d; the brokers' limit where left out")
    parser.add_argument(
        "--mechanism", choices=MECHANISMS, type=str.upper, help="for --to; yours if it is SCRAM, or else SCRAM-SHA-512"
    )
    parser.add_argument(
        "--to", metavar="FILE", help="write options of a client that logs in with it there, and print no secret"
    )


def create(admin: "Admin", options: argparse.Namespace) -> "DelegationToken":
    if options.to is not None and os.path.exists(options.to):
        raise UsageError(f"{options.to} is there already; no token was created")
    max_life_ms = None if options.max_life is None else _positive(options.max_life, "--max-life")
    token = admin.create_delegation_token(owner=options.owner, renewers=options.renewer, max_lifetime_ms=max_life_ms)
    if options.to is not None:
        from barnabas.cli.connection import client_config

        _write(options.to, token, client_config(options), options.mechanism)
    return token


def render_created(options: argparse.Namespace, token: "DelegationToken") -> Output:
    document = _document(token)
    if options.to is not None:
        return Output({**document, "file": options.to}, [f"created {token.token_id}; {options.to} logs in with it"])
    fields = {
        "token": token.token_id,
        "hmac": token.password,
        "owner": token.owner,
        "renewers": ", ".join(token.renewers) or None,
        "expires": _time(token.expiry_timestamp),
        "latest": _time(token.max_timestamp),
    }
    return Output({**document, "hmac": token.password}, [fields])


def list_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("owners", metavar="OWNER", nargs="*", help="only what these own, asked for or may renew")


def list_tokens(admin: "Admin", options: argparse.Namespace) -> "Sequence[DelegationToken]":
    return admin.describe_delegation_tokens(options.owners or None)


def render_tokens(options: argparse.Namespace, tokens: "Sequence[DelegationToken]") -> Output:
    listed = sorted(tokens, key=lambda token: (token.owner, token.issue_timestamp, token.token_id))
    rows = [
        (
            token.token_id,
            token.owner,
            token.requester,
            ", ".join(token.renewers) or None,
            _time(token.issue_timestamp),
            _time(token.expiry_timestamp),
            _time(token.max_timestamp),
        )
        for token in listed
    ]
    return Output(list(map(_document, listed)), [Table(HEADERS, rows)])


def renew_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("token", metavar="TOKEN-ID")
    parser.add_argument("--for", metavar="TIME", dest="period", help="from now, like 12h; the brokers' default if not")


def renew(admin: "Admin", options: argparse.Namespace) -> int:
    period_ms = None if options.period is None else _positive(options.period, "--for")
    return admin.renew_delegation_token(_find(admin, options.token).hmac, period_ms=period_ms)


def expire_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("token", metavar="TOKEN-ID")
    parser.add_argument("--in", metavar="TIME", dest="period", help="from now, like 10m; at once where left out")


def expire(admin: "Admin", options: argparse.Namespace) -> int:
    period_ms = None if options.period is None else _positive(options.period, "--in")
    return admin.expire_delegation_token(_find(admin, options.token).hmac, period_ms=period_ms)


def render_changed(options: argparse.Namespace, expiry_timestamp: int) -> Output:
    document = {"token": options.token, "expiry_timestamp": expiry_timestamp}
    is_over = options.command.name == "expire" and options.period is None
    text = f"ended {options.token}" if is_over else f"{options.token} expires {_time(expiry_timestamp)}"
    return Output(document, [text])


def _find(admin: "Admin", token_id: str) -> "DelegationToken":
    for token in admin.describe_delegation_tokens():
        if token.token_id == token_id:
            return token
    raise Refused(f"there is no token {token_id} that you may see; `barnabas token list` shows those you may")


def _positive(text: str, option: str) -> int:
    period_ms = duration_ms(text, option)
    if period_ms <= 0:
        raise UsageError(f"{option} {text}: expected a time from now")
    return period_ms


def _write(path: str, token: "DelegationToken", own: Mapping[str, str], mechanism: str | None) -> None:
    """Readable by its owner alone."""
    if mechanism is None:
        mechanism = own["sasl.mechanism"] if own.get("sasl.mechanism") in MECHANISMS else MECHANISMS[0]
    copied = "".join(f"{name}={own[name]}\n" for name in COPIED if name in own)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(
            f"{copied}sasl.mechanism={mechanism}\n"
            "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required"
            f' username="{token.token_id}" password="{token.password}" tokenauth="true";\n'
        )


def _document(token: "DelegationToken") -> dict[str, object]:
    names = ("token_id", "owner", "requester", "renewers", "issue_timestamp", "expiry_timestamp", "max_timestamp")
    return {name: getattr(token, name) for name in names}


def _time(timestamp_ms: int) -> str:
    return f"{datetime.fromtimestamp(timestamp_ms / 1000, UTC):%Y-%m-%dT%H:%M:%SZ}"


VERBS = (
    Command("list", "tokens that you may see", list_arguments, with_admin(list_tokens), render_tokens),
    Command("create", "make a token", create_arguments, with_admin(create), render_created),
    Command("renew", "let a token live longer", renew_arguments, with_admin(renew), render_changed),
    Command("expire", "end a token", expire_arguments, with_admin(expire), render_changed),
)

main = noun_main("token", "Delegation tokens: log in for a while as a user, without the password.", VERBS)
