"""The admin client of a command, made from its options. Imports the clients, so only a verb that runs imports this."""

import argparse
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

from barnabas.cli.command import UsageError, default_bootstrap, key_values
from barnabas.cli.known_options import Kind, known_options
from barnabas.cli.log_level import log_level
from barnabas.client.admin import Admin
from barnabas.client.options import AdminOptions
from barnabas.config.properties import parse_properties

NOTHING: Mapping[str, str | None] = MappingProxyType({})


def client_config(
    options: argparse.Namespace,
    kind: Kind | None = None,
    own: Mapping[str, str | None] = NOTHING,
    defaults: Mapping[str, str | None] = NOTHING,
) -> dict[str, str]:
    """Client options by Kafka's names: `defaults`, --command-config over them, then `own`, then -X.

    `own` is what the command's own flags say; None is not given. With a `kind`, what the file has for other kinds of
    clients is left out; what was typed stays, for the client to refuse. Addresses: -b, -X, the file, the default.
    """
    config = {key: value for key, value in defaults.items() if value is not None}
    file = file_options(options.command_config) if options.command_config else {}
    config.update(file if kind is None else known_options(kind, file, options.command_config))
    config.update({key: value for key, value in own.items() if value is not None})
    config.update(key_values(options.client_options, "-X"))
    if options.bootstrap_server is not None:
        config["bootstrap.servers"] = options.bootstrap_server
    config.setdefault("bootstrap.servers", default_bootstrap())
    return config


def file_options(path: str) -> dict[str, str]:
    try:
        return parse_properties(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else f"it is not a file of properties ({error})"
        raise UsageError(f"cannot read {path}: {reason}") from None


@contextmanager
def admin_client(options: argparse.Namespace) -> Iterator[Admin]:
    config = client_config(options, AdminOptions)
    if options.timeout is not None:
        config["default.api.timeout.ms"] = str(int(options.timeout * 1000))
    with log_level(logging.DEBUG if options.verbose else None), Admin.from_config(config) as admin:
        yield admin
