"""`barnabas console user`: the password file of the console's own users.

    barnabas console user add users.txt ann             # asks for the password, or reads it from stdin
    barnabas console user add users.txt bob --read-only
    barnabas console user list users.txt
    barnabas console user delete users.txt bob

A running console notices the change: who is gone or has another password is logged out.
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.cli.command import Command, Refused, UsageError, noun_main
from barnabas.cli.output import Output, rows_output
from barnabas.cli.password import add_password_options, password_of

if TYPE_CHECKING:
    from barnabas.console.login.password_file import PasswordEntry


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="made if it is not there")
    parser.add_argument("user", metavar="USER")
    parser.add_argument("--read-only", action="store_true", help="may look, and change nothing")
    parser.add_argument("--replace", action="store_true", help="give a user who is there another password")
    add_password_options(parser)


def add(options: argparse.Namespace) -> Output:
    from barnabas.console.login.password_file import ADMIN, LONGEST_PASSWORD, NAME, VIEWER, PasswordEntry

    if not NAME.fullmatch(options.user):
        raise UsageError(f"user {options.user!r}: a name has up to 64 letters, digits and . _ @ + -")
    entries = _entries(options.file, may_be_missing=True)
    if options.user in entries and not options.replace:
        raise Refused(f"user {options.user} is there already; --replace gives another password")
    password = password_of(options)
    if len(password) > LONGEST_PASSWORD:
        raise UsageError(f"a password has at most {LONGEST_PASSWORD} characters")
    role = VIEWER if options.read_only else ADMIN
    done = "changed" if options.user in entries else "added"
    entries[options.user] = PasswordEntry.make(options.user, role, password)
    _write(options.file, entries)
    return Output({"user": options.user, "role": role, done: True}, [f"{done} {options.user} ({role})"])


def list_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE")


def list_users(options: argparse.Namespace) -> Output:
    entries = _entries(options.file)
    return rows_output(("user", "role"), [(name, entries[name].role) for name in sorted(entries)])


def delete_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE")
    parser.add_argument("users", metavar="USER", nargs="+")


def delete(options: argparse.Namespace) -> Output:
    entries = _entries(options.file)
    missing = [name for name in options.users if name not in entries]
    if missing:
        raise Refused(f"there is no user {', '.join(missing)}; nothing was changed")
    _write(options.file, {name: each for name, each in entries.items() if name not in options.users})
    return Output(
        [{"user": name, "deleted": True} for name in options.users], [f"deleted {name}" for name in options.users]
    )


def render(options: argparse.Namespace, output: Output) -> Output:
    return output


def _entries(file: str, *, may_be_missing: bool = False) -> "dict[str, PasswordEntry]":
    from barnabas.console.login.password_file import PasswordFileError, read_entries

    try:
        return read_entries(Path(file))
    except FileNotFoundError:
        if may_be_missing:
            return {}
        raise UsageError(f"there is no file {file}") from None
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from None
    except PasswordFileError as error:
        raise UsageError(str(error)) from None


def _write(file: str, entries: "dict[str, PasswordEntry]") -> None:
    from barnabas.console.login.password_file import write_entries

    try:
        write_entries(Path(file), entries)
    except OSError as error:
        raise Refused(f"cannot write {file}: {error.strerror}") from None


VERBS = (
    Command("add", "add a user with a password", add_arguments, add, render, connects=False),
    Command("list", "users and what they may do", list_arguments, list_users, render, connects=False),
    Command("delete", "remove users", delete_arguments, delete, render, connects=False),
)
main = noun_main("console user", "Users of the web console, in a password file.", VERBS)
