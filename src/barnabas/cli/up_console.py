"""The console beside the brokers of `barnabas up`, and how it gets into a cluster that asks for a login.

Called by `up` alone. The console connects as the brokers connect to each other, with the same settings, and may
therefore do everything. So it never serves that to whoever opens the page: with SASL its users log in as users of the
cluster and have their own rights there, and where certificates say who a client is, it needs a password file.
"""

import argparse
import os
import re
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.config.broker import BrokerConfig

READY = re.compile(r"console on \S+")
HISTORY_FILE = "console-history.sqlite"
LOGIN_FILE = "console-login.properties"
BY_HAND = "start one with `barnabas console -b {} --command-config FILE`"
TLS_SETTINGS = (
    "ssl.truststore.location",
    "ssl.truststore.certificates",
    "ssl.keystore.location",
    "ssl.keystore.key",
    "ssl.keystore.certificate.chain",
    "ssl.key.password",
    "ssl.endpoint.identification.algorithm",
)


class NoConsoleError(Exception):
    """Why there is none, and what to do."""


class UpConsole:
    """The console's process. It is never waited for: the brokers serve without it. Raises NoConsoleError."""

    def __init__(self, options: argparse.Namespace, bootstrap: str, folder: Path) -> None:
        from barnabas.child_process import ChildProcess

        words = ["console", "-b", bootstrap, "--listen", options.console]
        words += ["--history", str(folder / HISTORY_FILE), "--until-stdin-ends"]
        # It runs in the data directory, so a relative path would be another one there.
        words += ["--users", str(Path(options.console_users).absolute())] if options.console_users else []
        self._login_file = folder / LOGIN_FILE
        self._who_logs_in = ""
        login = _login(options, bootstrap)
        if login:
            words += ["--command-config", str(self._login_file)]
            _write_secret(self._login_file, login)
        if "sasl.mechanism" in login and not options.console_users:
            words += ["--cluster-login"]
            self._who_logs_in = f" (log in as a user of the cluster, {login['sasl.mechanism']})"
        self.process = ChildProcess("console", words, folder, signal.SIGTERM, holds_stdin=True)
        self._is_settled = False

    def watch(self) -> None:
        """Print once where it serves, or why it does not."""
        from barnabas.child_process import ProcessError

        if self._is_settled:
            return
        try:
            if not self.process.has_printed(READY):
                return
            found = READY.search(self.process.printed)
            print(f"{found.group(0) if found else ''}{self._who_logs_in}", flush=True)
        except ProcessError:
            why = self.process.printed.strip().removeprefix("barnabas console: ")
            print(f"no console: {why}", flush=True)
        self._settle()

    def stop(self, patience_s: float) -> None:
        self.process.stop(patience_s)
        self._settle()

    def _settle(self) -> None:
        """It has read its login, or never will."""
        self._is_settled = True
        self._login_file.unlink(missing_ok=True)


def _login(options: argparse.Namespace, bootstrap: str) -> Mapping[str, str]:
    """Client options to connect as brokers do. Raises NoConsoleError."""
    from barnabas.config.inter_broker import broker_login, why_unusable
    from barnabas.config.oauth import OAUTHBEARER

    protocol = options.protocol
    if protocol == "PLAINTEXT":
        return {}
    config = _broker_config(options)
    own = config.for_listener(protocol)
    login = {"security.protocol": protocol}
    if protocol.endswith("SSL"):
        login |= _tls_options(own)
    if protocol == "SSL" and own.ssl_client_auth != "none" and not options.console_users:
        raise NoConsoleError(
            "with the brokers' certificate it may do everything, so it needs a login of its own:"
            " --console-users FILE (`barnabas console user add FILE NAME`)"
        )
    if protocol.startswith("SASL_"):
        if why := why_unusable(config):
            raise NoConsoleError(f"it logs in as brokers do, which the settings do not say: {why}")
        account = broker_login(config)
        if account is None or account.mechanism == OAUTHBEARER:
            raise NoConsoleError(f"brokers log in by OAUTHBEARER, it by a password only: {BY_HAND.format(bootstrap)}")
        login |= {
            "sasl.mechanism": account.mechanism,
            "sasl.username": account.username,
            "sasl.password": account.password,
        }
    return login


def _broker_config(options: argparse.Namespace) -> "BrokerConfig":
    """The settings that the brokers have started with. Raises NoConsoleError if the file has changed since."""
    from barnabas.cli.command import UsageError
    from barnabas.cli.server_config import config_of

    words = [*options.set, f"listeners={options.protocol}://127.0.0.1:0"]
    given = argparse.Namespace(config=options.config, set=words, listen=None, data_dir=None, node_id="0")
    try:
        return config_of(given, "the settings are no longer valid")
    except UsageError as error:
        raise NoConsoleError(str(error)) from None


def _tls_options(own: "BrokerConfig") -> dict[str, str]:
    values = {name: getattr(own, name.replace(".", "_")) for name in TLS_SETTINGS}
    return {name: str(value) for name, value in values.items() if value is not None}


def _write_secret(path: Path, values: Mapping[str, str]) -> None:
    """Readable by its owner alone."""
    from barnabas.config.properties import write_properties

    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
        file.write(write_properties(values))
