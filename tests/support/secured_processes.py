"""Three `barnabas server` processes that reach each other, and are reached, only in a secured way."""

from __future__ import annotations

import hashlib
import os
import re
import sys
import time
from pathlib import Path
from typing import Self

from cluster_processes import SOURCES, ClusterProcesses
from secured_cluster import KINDS, SETTINGS, USERS
from server_process import ServerFailed, ServerProcess, free_port

from barnabas import Admin
from barnabas.config.jaas import quoted
from barnabas.machines.sasl.scram_server import ScramCredential
from barnabas.metadata.engine_options import EngineOptions
from barnabas.metadata.image import ConfigResource
from barnabas.metadata.registry import store_at
from barnabas.metadata.store import Create
from barnabas.metadata.tree import config_path, encode_config
from barnabas.testing.security import Security

READY = re.compile(r" ready on (\S+) \(")
MECHANISM = "SCRAM-SHA-512"
ITERATIONS = 4096


class SecuredProcess(ServerProcess):
    """Nobody gets metadata without a login, so it is ready when it says so."""

    def wait_until_ready(self, timeout: float = 120.0) -> Self:
        assert self.process is not None, "not started"
        ends = time.monotonic() + timeout
        while READY.search(self.printed()) is None:
            if self.process.poll() is not None or time.monotonic() > ends:
                raise ServerFailed(f"not serving:\n{self.output_tail()}")
            time.sleep(0.01)
        return self


class SecuredProcesses(ClusterProcesses):
    """`kind` is one of `secured_cluster.KINDS`; `engine` has the settings that lead to the metadata."""

    def __init__(
        self, directory: Path, kind: str, metadata: str | None = None, engine: dict[str, str] | None = None
    ) -> None:
        self.kind = KINDS[kind]
        self.security = Security([self.kind.listener], USERS)
        settings = {**self.security.settings(), **SETTINGS, **self.kind.settings, **(engine or {})}
        brokers = ";".join((settings["super.users"], *self.security.brokers))
        super().__init__(directory, metadata=metadata, settings={**settings, "super.users": brokers})
        self._engine = engine or {}

    @property
    def options(self) -> dict[str, str]:
        """Of a client that may do everything."""
        return self.security.client_options("admin", MECHANISM, None)

    @property
    def admin(self) -> Admin:
        if self._admin is None:
            self._admin = Admin(self.bootstrap, request_timeout_ms=5000, retry_backoff_ms=50, **self.options)
        return self._admin

    def start(self) -> Self:
        Path(self._directory).mkdir(parents=True, exist_ok=True)
        self._create_users()
        return super().start()

    def stop(self) -> None:
        super().stop()
        self.security.close()

    def _create_users(self) -> None:
        """Before the first start, as `barnabas user create --metadata` does."""
        store = store_at(self._metadata, engine_options(self._engine))
        store.open()
        try:
            store.multi(
                [
                    Create(config_path(ConfigResource.user(name)), encode_config({MECHANISM: _credential(password)}))
                    for name, password in USERS.items()
                ]
            )
        finally:
            store.close()

    def _broker(self, number: int) -> ServerProcess:
        port = free_port()
        command = [sys.executable, "-m", "barnabas", "server", "--data-dir", str(self.data(number))]
        command += ["--metadata", self._metadata, "--node-id", str(number)]
        for key, value in (self._settings | {"listeners": f"{self.kind.listener}://127.0.0.1:{port}"}).items():
            command += ["--set", f"{key}={value}"]
        environment = os.environ | {"PYTHONPATH": str(SOURCES), "PYTHONUNBUFFERED": "1"}
        return SecuredProcess(command, self._directory / f"process-{number}", "127.0.0.1", port, environment)


def engine_options(settings: dict[str, str]) -> EngineOptions:
    from barnabas.config.broker import BrokerConfig

    return EngineOptions.of(BrokerConfig.parse(settings).metadata_engine)


def _credential(password: str) -> str:
    salt = os.urandom(16)
    salted = hashlib.pbkdf2_hmac("sha512", password.encode(), salt, ITERATIONS)
    return ScramCredential.of(MECHANISM, salt, salted, ITERATIONS).text()


def java_properties(options: dict[str, str]) -> str:
    """The same options, for Kafka's own tools."""
    lines = [f"security.protocol={options['security_protocol']}"]
    lines += ["ssl.truststore.type=PEM", f"ssl.truststore.location={options['ssl_truststore_location']}"]
    if "ssl_keystore_location" in options:
        lines += ["ssl.keystore.type=PEM", f"ssl.keystore.location={options['ssl_keystore_location']}"]
    if "sasl_mechanism" in options:
        module = "scram.ScramLoginModule" if options["sasl_mechanism"].startswith("SCRAM") else "plain.PlainLoginModule"
        lines += [
            f"sasl.mechanism={options['sasl_mechanism']}",
            f"sasl.jaas.config=org.apache.kafka.common.security.{module} required"
            f" username={quoted(options['sasl_username'])} password={quoted(options['sasl_password'])};",
        ]
    return "\n".join(lines) + "\n"
