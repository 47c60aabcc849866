"""The admin client of a command, made from its options. Imports the clients, so only a verb that runs imports this."""

import argparse
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from barnabas.cli.command import UsageError, default_bootstrap, key_values
from barnabas.cli.log_level import log_level
from barnabas.client.admin import Admin
from barnabas.config.properties import parse_properties


def client_config(options: argparse.Namespace) -> dict[str, str]:
    """Client options by Kafka's names: --command-config, then -X over it. Addresses: -b, -X, the file, the default."""
    config: dict[str, str] = {}
    if options.command_config:
        try:
            config.update(parse_properties(Path(options.command_config).read_text(encoding="utf-8")))
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else f"it is not a file of properties ({error})"
            raise UsageError(f"cannot read {options.command_config}: {reason}") from None
    config.update(key_values(options.client_options, "-X"))
    if options.bootstrap_server is not None:
        config["bootstrap.servers"] = options.bootstrap_server
    config.setdefault("bootstrap.servers", default_bootstrap())
    return config


@contextmanager
def admin_client(options: argparse.Namespace) -> Iterator[Admin]:
    config = client_config(options)
    if options.timeout is not None:
        config["default.api.timeout.ms"] = str(int(options.timeout * 1000))
    with log_level(logging.DEBUG if options.verbose else None), Admin.from_config(config) as admin:
        yield admin
