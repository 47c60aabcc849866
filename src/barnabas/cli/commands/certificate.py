"""`barnabas certificate`: an authority for development, and the certificates that it signs.

    barnabas certificate create certificates --host kafka.example --client alice

All files are PEM. `authority.pem` is what clients trust; `broker.pem` and `CLIENT.pem` hold a private key with its
certificate, as ssl.keystore.location wants it. The authority of a directory is made once and used again.
"""

import argparse
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.cli.command import Command, Refused, UsageError, noun_main
from barnabas.cli.numbers import int32
from barnabas.cli.output import Output

if TYPE_CHECKING:
    from barnabas.certificates import Authority

DEFAULT_HOSTS = ("localhost", "127.0.0.1", "::1")
AUTHORITY, AUTHORITY_KEY, BROKER = "authority.pem", "authority.key", "broker.pem"
NOTES = f"""\
for the broker:  ssl.keystore.type=PEM  ssl.keystore.location=DIRECTORY/{BROKER}
for clients:     ssl.truststore.type=PEM  ssl.truststore.location=DIRECTORY/{AUTHORITY}"""


def create_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", metavar="DIRECTORY", help="created if it is not there")
    parser.add_argument(
        "--host",
        metavar="NAME",
        action="append",
        default=[],
        help=f"name or address at which clients find the broker; repeatable (default: {', '.join(DEFAULT_HOSTS)})",
    )
    parser.add_argument(
        "--client", metavar="NAME", action="append", default=[], help="a client certificate for CN=NAME; repeatable"
    )
    parser.add_argument("--days", metavar="N", type=int32, default=365, help="how long they are valid (default: 365)")
    parser.add_argument("--replace", action="store_true", help="replace certificates that are there already")


def create(options: argparse.Namespace) -> list[Path]:
    from barnabas.certificates import MissingToolsError

    if options.days < 1:
        raise UsageError("--days must be 1 or more")
    for name in options.client:
        if not re.fullmatch(r"[\w.@-]{1,64}", name) or f"{name}.pem" in (AUTHORITY, BROKER):
            raise UsageError(
                f"--client {name!r}: use 1 to 64 letters, digits and . _ @ -, and neither authority nor broker"
            )
    try:
        return _create(Path(options.directory), options)
    except MissingToolsError as error:
        raise Refused(str(error)) from None
    except OSError as error:
        raise Refused(f"{error.filename}: {error.strerror}") from None


def _create(directory: Path, options: argparse.Namespace) -> list[Path]:
    # A directory that has a broker's certificate and is given clients alone gets those alone.
    wants_broker = bool(options.host) or not (options.client and (directory / BROKER).exists())
    names = [*([BROKER] if wants_broker else []), *(f"{name}.pem" for name in options.client)]
    existing = [name for name in names if (directory / name).exists()]
    if existing and not options.replace:
        raise Refused(f"{directory / existing[0]} exists; --replace makes another one")
    directory.mkdir(parents=True, exist_ok=True)
    authority, written = _authority(directory)
    if wants_broker:
        hosts = options.host or DEFAULT_HOSTS
        written.append(_write(directory / BROKER, authority.issue(hosts[0], hosts, options.days).store))
    for name in dict.fromkeys(options.client):
        written.append(_write(directory / f"{name}.pem", authority.issue(name, (), options.days).store))
    return written


def _authority(directory: Path) -> "tuple[Authority, list[Path]]":
    from barnabas.certificates import Authority, KeyPair

    key, certificate = directory / AUTHORITY_KEY, directory / AUTHORITY
    if key.exists() and certificate.exists():
        try:
            return Authority(KeyPair(key.read_text(), certificate.read_text())), []
        except ValueError as fault:
            raise Refused(f"{key} and {certificate} cannot be used: {fault}") from None
    if key.exists() or certificate.exists():
        raise Refused(f"{directory} has only one of {AUTHORITY_KEY} and {AUTHORITY}: give both, or another directory")
    authority = Authority.create()
    return authority, [_write(key, authority.pair.key), _write(certificate, authority.pair.certificate, 0o644)]


def _write(path: Path, text: str, mode: int = 0o600) -> Path:
    """Whole or not at all; nobody else may read a key."""
    temporary = path.with_name(path.name + ".new")
    temporary.unlink(missing_ok=True)
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w") as file:
        file.write(text)
    temporary.replace(path)
    return path


def render_created(options: argparse.Namespace, written: list[Path]) -> Output:
    paths = list(map(str, written))
    return Output({"directory": options.directory, "created": paths}, [f"created {path}" for path in paths])


VERBS = (
    Command(
        "create",
        "make an authority, a broker's certificate and clients' certificates",
        create_arguments,
        create,
        render_created,
        connects=False,
        notes=NOTES,
    ),
)

main = noun_main("certificate", "Certificates for development. They are signed by an authority of your own.", VERBS)
