"""Secured listeners for tests: throw-away certificates and users, shared by all brokers of a cluster."""

import hashlib
import os
import secrets
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from barnabas.certificates import Authority
from barnabas.config.jaas import quoted
from barnabas.config.listeners import MQTT_PROTOCOLS, MQTTS, PROTOCOLS
from barnabas.machines.sasl.scram import HASHES, LEAST_ITERATIONS, SALT_BYTES
from barnabas.machines.sasl.scram_server import ScramCredential
from barnabas.metadata.image import ConfigResource
from barnabas.metadata.store import Create, NodeExistsError
from barnabas.metadata.stores.memory import MemoryTree
from barnabas.metadata.tree import config_path, encode_config

HOSTS = ("localhost", "127.0.0.1")
ENABLED = "sasl.enabled.mechanisms"
MECHANISMS = ("PLAIN", *HASHES)
BROKER = "broker"
"""Who brokers are to each other."""


class Security:
    """`listeners` are Kafka's security protocols, MQTT and MQTTS, `users` names with their passwords.

    The users may log in by PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512, and to MQTT listeners by name and password.
    Raises ValueError, MissingToolsError.
    """

    def __init__(self, listeners: Sequence[str], users: Mapping[str, str] | None = None) -> None:
        possible = (*PROTOCOLS, *MQTT_PROTOCOLS)
        unknown = [each for each in listeners if each not in possible]
        if unknown or not listeners:
            raise ValueError(f"listeners: {', '.join(unknown) or 'none'}; each is one of {', '.join(possible)}")
        self.listeners = tuple(dict.fromkeys(listeners))
        self.users = dict(users or {})
        self.uses_sasl = any(each.startswith("SASL_") for each in self.listeners)
        self.uses_tls = any(each.endswith("SSL") or each == MQTTS for each in self.listeners)
        if self.uses_sasl and not self.users:
            raise ValueError("users: missing, nobody could log in")
        self._broker_password = secrets.token_urlsafe(16)
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._lock = threading.RLock()
        """Brokers of a cluster start at the same time."""
        self._authority = Authority.create("barnabas.testing") if self.uses_tls else None

    @property
    def brokers(self) -> tuple[str, ...]:
        """Who brokers are to each other, by SASL and by their certificate: they may do everything."""
        return (f"User:{BROKER}", f"User:CN={BROKER}")

    def settings(self, own: Mapping[str, str]) -> dict[str, str]:
        """Of every broker, with the test's own settings, which override them."""
        with self._lock:
            settings = self._settings()
        mechanisms = [each.strip() for each in own.get(ENABLED, "PLAIN").upper().split(",")]
        if "PLAIN" not in mechanisms:
            # Brokers log in to each other by PLAIN: where the test does without it, it says how else.
            settings.pop("sasl.mechanism.inter.broker.protocol", None)
        return settings | dict(own)

    def _settings(self) -> dict[str, str]:
        settings = {"listeners": ",".join(f"{each}://127.0.0.1:0" for each in self.listeners)}
        if self.uses_tls:
            settings |= {
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": self._store(BROKER, HOSTS),
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": self.authority_file,
            }
        if self.uses_sasl:
            settings[ENABLED] = ",".join(MECHANISMS)
            users = {BROKER: self._broker_password, **self.users}
            options = " ".join(f"{quoted(f'user_{name}')}={quoted(password)}" for name, password in users.items())
            own = f"username={quoted(BROKER)} password={quoted(self._broker_password)}"
            settings["sasl.mechanism.inter.broker.protocol"] = "PLAIN"
            for each in self.listeners:
                if each.startswith("SASL_"):
                    settings[f"listener.name.{each.lower()}.plain.sasl.jaas.config"] = (
                        f"PlainLoginModule required {own} {options};"
                    )
        return settings

    def add_users(self, tree: MemoryTree) -> None:
        """The users for SCRAM are in the metadata, from before the first start."""
        with self._lock:
            self._add_users(tree)

    def _add_users(self, tree: MemoryTree) -> None:
        for name, password in self.users.items():
            path = config_path(ConfigResource.user(name))
            if path not in tree.nodes:
                credentials = {mechanism: _credential(mechanism, password) for mechanism in HASHES}
                # Brokers of a cluster start side by side: another one may have been first.
                with suppress(NodeExistsError):
                    tree.commit(0, [Create(path, encode_config(credentials))])

    @property
    def authority_file(self) -> str:
        """PEM file with the certificate of the authority, for ssl.truststore.location or ssl.ca.location."""
        if self._authority is None:
            raise RuntimeError("no listener of the broker uses TLS")
        path = Path(self._directory(), "authority.pem")
        if not path.exists():
            path.write_text(self._authority.pair.certificate)
        return str(path)

    def client_options(self, user: str | None, mechanism: str, listener: str | None) -> dict[str, str]:
        """For our own clients. Raises KeyError for a user that is not there."""
        protocol = self.listeners[0] if listener is None else listener
        if protocol not in self.listeners:
            raise ValueError(f"the broker has no listener {protocol}")
        options = {"security_protocol": protocol}
        if protocol.endswith("SSL"):
            options["ssl_truststore_location"] = self.authority_file
            if user is not None and protocol == "SSL":
                options["ssl_keystore_location"] = self._store(user, ())
        if protocol.startswith("SASL_"):
            name = next(iter(self.users)) if user is None else user
            options |= {"sasl_mechanism": mechanism, "sasl_username": name, "sasl_password": self.users[name]}
        return options

    def close(self) -> None:
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def _store(self, name: str, hosts: Sequence[str]) -> str:
        assert self._authority is not None
        # A name may hold what a file name may not.
        digest = hashlib.sha256(name.encode()).hexdigest()[:16]
        path = Path(self._directory(), f"{'broker' if hosts else 'client'}-{digest}.pem")
        if not path.exists():
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w") as file:
                file.write(self._authority.issue(name, hosts).store)
        return str(path)

    def _directory(self) -> str:
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="barnabas-certificates-", ignore_cleanup_errors=True)
        return self._folder.name


def _credential(mechanism: str, password: str) -> str:
    salt = secrets.token_bytes(SALT_BYTES)
    salted = hashlib.pbkdf2_hmac(HASHES[mechanism], password.encode(), salt, LEAST_ITERATIONS)
    return ScramCredential.of(mechanism, salt, salted, LEAST_ITERATIONS).text()
