"""Where a command gets a password from, for `options.user`: never printed, and not on the command line if avoidable."""

import argparse
import os
import sys

from barnabas.cli.command import UsageError


def add_password_options(parser: argparse.ArgumentParser) -> None:
    given = parser.add_mutually_exclusive_group()
    given.add_argument("--password", help="others can see it in the list of processes: rather use a file or stdin")
    given.add_argument("--password-file", metavar="FILE", help="its first line; - is stdin")
    given.add_argument("--password-env", metavar="NAME", help="an environment variable that holds it")


def password_of(options: argparse.Namespace) -> str:
    """From the option, a file, the terminal, or the first line of stdin."""
    password: str
    if options.password is not None:
        password = options.password
    elif options.password_env is not None:
        password = os.environ.get(options.password_env, "")
    elif options.password_file not in (None, "-"):
        try:
            with open(options.password_file, encoding="utf-8") as file:
                password = file.readline().rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"cannot read {options.password_file}: {error}") from None
    elif sys.stdin is None:
        raise UsageError("stdin is closed: give --password-file")
    elif options.password_file is None and sys.stdin.isatty():
        from getpass import getpass

        password = getpass(f"Password of {options.user}: ")
        if getpass("Again: ") != password:
            raise UsageError("the two passwords differ; nothing was changed")
    else:
        password = sys.stdin.readline().rstrip("\r\n")
    if not password:
        raise UsageError("the password is empty; nothing was changed")
    return password
