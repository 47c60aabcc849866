"""`barnabas console`: the web page of a cluster, for any Kafka."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.cli.command import Command, Refused, UsageError, command_main
from barnabas.cli.exit_status import OK, complain

if TYPE_CHECKING:
    from barnabas.console.settings import ConsoleSettings

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")

DEFAULT_ADDRESS = "127.0.0.1:9080"
NO_LOGIN = (
    "whoever reaches that address could change the cluster, so it needs a login: --users FILE"
    " (`barnabas console user add` makes one), or --cluster-login for users of the cluster; only loopback addresses do"
    " without"
)
NOTES = """\
On loopback nobody has to log in. Other addresses need --users or --cluster-login, and should have TLS.

examples:
  barnabas console                                     the cluster on localhost:9092, page on http://127.0.0.1:9080
  barnabas console -b kafka.example:9092 --read-only
  barnabas console user add users.txt ann              asks for a password
  barnabas console --listen 0.0.0.0:9080 --users users.txt --tls-certificate cert.pem --tls-key key.pem
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--listen", metavar="HOST:PORT", default=DEFAULT_ADDRESS, help=f"of the page (default {DEFAULT_ADDRESS})"
    )
    parser.add_argument("--read-only", action="store_true", help="refuse every change")
    parser.add_argument("--history", metavar="FILE", help="keep 90 days of history in it (default: an hour in memory)")
    parser.add_argument("--alarms", metavar="FILE", help="TOML file of alarms and where they are sent")
    parser.add_argument(
        "--pipeline", metavar="CHECKPOINT", action="append", default=[], help="show the pipeline of it (repeatable)"
    )
    parser.add_argument(
        "--until-stdin-ends", action="store_true", help="stop when the input ends, as it does with whoever started it"
    )
    login = parser.add_argument_group("login")
    who = login.add_mutually_exclusive_group()
    who.add_argument("--users", metavar="FILE", help="password file of the console's own users")
    who.add_argument(
        "--cluster-login", action="store_true", help="users of the cluster log in, and have their own rights there"
    )
    login.add_argument(
        "--login-mechanism", choices=MECHANISMS, help="by which they do (default: that of this console's connection)"
    )
    page = parser.add_argument_group("its address")
    page.add_argument("--tls-certificate", metavar="FILE", help="PEM with its certificate: the page is served by https")
    page.add_argument("--tls-key", metavar="FILE", help="PEM with the private key (default: in the same file)")
    page.add_argument(
        "--host-name", metavar="NAME", action="append", default=[], help="a further name browsers use (repeatable)"
    )
    page.add_argument("--trusted-proxy", metavar="ADDRESS", help="a proxy that says for whom it asks")


def console(options: argparse.Namespace) -> int:
    host, _, port = options.listen.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65_535:
        raise UsageError(f"--listen {options.listen}: expected HOST:PORT, such as {DEFAULT_ADDRESS}")
    try:
        from barnabas.console.alarms.rules import AlarmFileError
        from barnabas.console.database import DatabaseError
        from barnabas.console.login.password_file import PasswordFileError
        from barnabas.console.process import CertificateError, serve
    except ImportError as error:
        raise Refused(f"the console needs {error.name}: pip install 'barnabas[console]'") from None
    from barnabas.cli.connection import client_config

    config = client_config(options)
    _check_login(options, host, config)
    try:
        serve(
            config,
            host,
            int(port),
            lambda address: print(f"console on {address}", flush=True),
            settings=_settings(options),
            until_stdin_ends=options.until_stdin_ends,
        )
    except (AlarmFileError, PasswordFileError) as error:
        raise UsageError(str(error)) from None
    except (DatabaseError, CertificateError) as error:
        raise Refused(str(error)) from None
    except OSError as error:
        raise Refused(f"cannot listen on {options.listen}: {error.strerror}") from None
    return OK


def _check_login(options: argparse.Namespace, host: str, config: Mapping[str, str]) -> None:
    """A door that lacks its lock is not opened."""
    from barnabas.console.security import is_loopback

    if not is_loopback(host) and not options.users and not options.cluster_login:
        raise UsageError(f"--listen {options.listen}: {NO_LOGIN}")
    if options.cluster_login and not config.get("security.protocol", "").startswith("SASL_"):
        raise UsageError(
            "--cluster-login: the brokers would not ask for a password: connect to a listener with SASL"
            " (security.protocol=SASL_SSL, by -X or --command-config)"
        )
    if options.login_mechanism and not options.cluster_login:
        raise UsageError("--login-mechanism: without effect unless --cluster-login is given")
    if options.tls_key and not options.tls_certificate:
        raise UsageError("--tls-key: --tls-certificate is missing")
    if not is_loopback(host) and not options.tls_certificate and not options.trusted_proxy:
        complain("barnabas console: passwords travel unencrypted to this address: --tls-certificate gives it TLS")


def _settings(options: argparse.Namespace) -> "ConsoleSettings":
    from barnabas.cli.commands.pipeline_topics import absolute
    from barnabas.console.alarms.rules import AlarmSettings, read_alarm_file
    from barnabas.console.settings import ConsoleSettings

    return ConsoleSettings(
        read_only=options.read_only,
        history=_path(options.history),
        pipelines=tuple(map(absolute, options.pipeline)),
        alarms=read_alarm_file(Path(options.alarms)) if options.alarms else AlarmSettings(),
        users=_path(options.users),
        cluster_login=options.cluster_login,
        login_mechanism=options.login_mechanism,
        host_names=tuple(options.host_name),
        certificate=_path(options.tls_certificate),
        private_key=_path(options.tls_key),
        trusted_proxy=options.trusted_proxy,
    )


def _path(text: str | None) -> Path | None:
    return Path(text) if text else None


COMMAND = Command("console", "serve the web page of a cluster until Ctrl-C", add_arguments, console, notes=NOTES)


def main(arguments: Sequence[str]) -> int:
    """`barnabas console user ...` is about the password file, anything else serves the page."""
    if arguments[:1] == ["user"]:
        from barnabas.cli.commands import console_user

        return console_user.main(arguments[1:])
    return command_main(COMMAND)(arguments)
