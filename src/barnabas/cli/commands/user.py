"""`barnabas user`: who can log in with a password (SCRAM), and how much clients may use up (quotas).

    barnabas user create alice                       # asks for the password, or reads it from stdin
    barnabas user create admin --data-dir DIR        # before the broker with that directory starts for the first time
    barnabas user password alice --password-file FILE
    barnabas user quota --user alice --set producer_byte_rate=1048576

A password is salted and hashed in this process; the brokers never see it, and nothing here prints it. With --data-dir,
--config or --metadata no broker is asked: the user is written into the metadata, where brokers find it at their start.
"""

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from barnabas.cli.command import Command, Refused, UsageError, noun_main, with_admin
from barnabas.cli.commands.user_quotas import quota, quota_arguments
from barnabas.cli.numbers import int32
from barnabas.cli.output import Output, rows_output
from barnabas.cli.password import add_password_options, password_of

if TYPE_CHECKING:
    from barnabas.client.admin import Admin
    from barnabas.client.admin.types import ScramCredential, ScramMechanism

MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
DEFAULT_ITERATIONS = LEAST_ITERATIONS = 4096
MOST_ITERATIONS = 16_384


def list_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("users", metavar="USER", nargs="*", help="only these")


def list_users(admin: "Admin", options: argparse.Namespace) -> "Mapping[str, Sequence[ScramCredential]]":
    return admin.describe_user_scram_credentials(options.users or None)


def render_users(options: argparse.Namespace, found: "Mapping[str, Sequence[ScramCredential]]") -> Output:
    rows = [
        (user, _mechanism_text(each.mechanism), each.iterations)
        for user in sorted(found)
        for each in sorted(found[user], key=lambda each: each.mechanism)
    ]
    return rows_output(("user", "mechanism", "iterations"), rows)


def _mechanism_argument(parser: argparse.ArgumentParser, default: str) -> None:
    parser.add_argument(
        "--mechanism",
        choices=MECHANISMS,
        type=str.upper,
        action="append",
        default=[],
        help=f"repeatable (default {default})",
    )


def _password_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("user", metavar="USER")
    add_password_options(parser)
    parser.add_argument("--iterations", metavar="N", type=int32, default=DEFAULT_ITERATIONS, help="4096 to 16384")


def create_arguments(parser: argparse.ArgumentParser) -> None:
    _password_arguments(parser)
    _offline_arguments(parser)
    _mechanism_argument(parser, f"{MECHANISMS[0]}; both while no broker runs")


def _offline_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("while no broker runs (instead of a connection)")
    group.add_argument("--data-dir", metavar="DIR", help="the data directory of the broker, as of `barnabas server`")
    group.add_argument("--config", metavar="FILE", help="the broker's server.properties")
    group.add_argument("--metadata", metavar="LOCATION", help="where the cluster keeps its metadata, if not there")


def online_or_offline(
    online: "Callable[[Admin, argparse.Namespace], Sequence[ScramMechanism]]", *, is_new: bool
) -> "Callable[[argparse.Namespace], Sequence[ScramMechanism]]":
    """By the brokers, or in the metadata while there are none."""

    def call(options: argparse.Namespace) -> "Sequence[ScramMechanism]":
        if not (options.data_dir or options.config or options.metadata):
            return with_admin(online)(options)
        if options.bootstrap_server is not None:
            raise UsageError("--bootstrap-server is for brokers that run, --data-dir, --config and --metadata are not")
        return _write_offline(options, is_new=is_new)

    return call


def _write_offline(options: argparse.Namespace, *, is_new: bool) -> "Sequence[ScramMechanism]":
    from barnabas.cli.first_users import credential_text, open_users
    from barnabas.cli.server_config import config_of

    if not LEAST_ITERATIONS <= options.iterations <= MOST_ITERATIONS:
        raise UsageError(f"--iterations {options.iterations}: expected {LEAST_ITERATIONS} to {MOST_ITERATIONS}")
    given = argparse.Namespace(
        config=options.config, listen=None, data_dir=options.data_dir, node_id=None, set=[], metadata=options.metadata
    )
    with open_users(config_of(given, f"{options.config} cannot be used"), options.metadata) as users:
        known = [each for each in users.credentials_of(options.user) if each in MECHANISMS]
        if is_new and known:
            raise Refused(f"user {options.user} has {', '.join(known)} already; `barnabas user password` changes it")
        if not is_new and not known:
            raise Refused(f"there is no user {options.user}; `barnabas user create` makes one")
        # Which mechanisms the listeners will have is not known here.
        chosen = list(dict.fromkeys(options.mechanism)) or known or list(MECHANISMS)
        password = password_of(options)
        users.put(options.user, {each: credential_text(each, password, options.iterations) for each in chosen})
    return _mechanisms(chosen)


def create(admin: "Admin", options: argparse.Namespace) -> "Sequence[ScramMechanism]":
    mechanisms = _mechanisms(options.mechanism or MECHANISMS[:1])
    existing = {each.mechanism for each in _credentials(admin, options.user)}.intersection(mechanisms)
    if existing:
        words = ", ".join(sorted(map(_mechanism_text, existing)))
        raise Refused(f"user {options.user} has {words} already; `barnabas user password` changes it")
    _set_password(admin, options, mechanisms)
    return mechanisms


def render_set(options: argparse.Namespace, mechanisms: "Sequence[ScramMechanism]") -> Output:
    done = "created" if options.command.name == "create" else "changed"
    words = list(map(_mechanism_text, mechanisms))
    document = {"user": options.user, "mechanisms": words, done: True}
    return Output([document], [f"{done} {options.user}: {', '.join(words)}"])


def alter_arguments(parser: argparse.ArgumentParser) -> None:
    _password_arguments(parser)
    _offline_arguments(parser)
    _mechanism_argument(parser, "all that the user has")


def alter(admin: "Admin", options: argparse.Namespace) -> "Sequence[ScramMechanism]":
    existing = sorted(each.mechanism for each in _credentials(admin, options.user))
    if not existing:
        raise Refused(f"there is no user {options.user}; `barnabas user create` makes one")
    mechanisms = _mechanisms(options.mechanism) or existing
    _set_password(admin, options, mechanisms)
    return mechanisms


def delete_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("users", metavar="USER", nargs="+")
    _mechanism_argument(parser, "all that the user has")


def delete(admin: "Admin", options: argparse.Namespace) -> None:
    from barnabas.client.admin.types import ScramDeletion

    chosen = _mechanisms(options.mechanism)
    found = admin.describe_user_scram_credentials(options.users)
    admin.alter_user_scram_credentials(
        ScramDeletion(user=user, mechanism=each)
        for user in found
        for each in chosen or [credential.mechanism for credential in found[user]]
    )


def render_deleted(options: argparse.Namespace, credentials: "Iterable[tuple[str, ScramMechanism]] | None") -> Output:
    """The users; where some could not be deleted, the credentials that were."""
    if credentials is None:
        words = f": {', '.join(options.mechanism)}" if options.mechanism else ""
        document = [{"user": user, "deleted": True} for user in options.users]
        return Output(document, [f"deleted {user}{words}" for user in options.users])
    deleted = [(user, _mechanism_text(mechanism)) for user, mechanism in credentials]
    return Output(
        [{"user": user, "mechanism": mechanism, "deleted": True} for user, mechanism in deleted],
        [f"deleted {user}: {mechanism}" for user, mechanism in deleted],
    )


def _credentials(admin: "Admin", user: str) -> "tuple[ScramCredential, ...]":
    from barnabas.errors import ErrorCode, KafkaError

    try:
        return admin.describe_user_scram_credentials([user]).get(user, ())
    except KafkaError as error:
        if error.code is ErrorCode.RESOURCE_NOT_FOUND:
            return ()
        raise


def _set_password(admin: "Admin", options: argparse.Namespace, mechanisms: "Sequence[ScramMechanism]") -> None:
    from barnabas.client.admin.types import ScramUpsertion

    password = password_of(options)
    admin.alter_user_scram_credentials(
        ScramUpsertion(user=options.user, password=password, mechanism=each, iterations=options.iterations)
        for each in mechanisms
    )


def _mechanisms(words: Sequence[str]) -> "list[ScramMechanism]":
    from barnabas.client.admin.types import ScramMechanism

    return [ScramMechanism[word.replace("-", "_")] for word in dict.fromkeys(words)]


def _mechanism_text(mechanism: "ScramMechanism") -> str:
    return mechanism.name.replace("_", "-")


VERBS = (
    Command("list", "users that can log in with a password", list_arguments, with_admin(list_users), render_users),
    Command(
        "create", "add a user with a password", create_arguments, online_or_offline(create, is_new=True), render_set
    ),
    Command(
        "password",
        "give a user another password",
        alter_arguments,
        online_or_offline(alter, is_new=False),
        render_set,
    ),
    Command("alter", "the same as password", alter_arguments, online_or_offline(alter, is_new=False), render_set),
    Command("delete", "remove users", delete_arguments, with_admin(delete), render_deleted, partial=True),
    Command(
        "quota",
        "show quotas of users, clients and addresses, or change them",
        quota_arguments,
        with_admin(quota),
        lambda _, output: output,
    ),
)

main = noun_main("user", "Users with a password, and quotas.", VERBS)
