"""How to reach and log in to an engine that keeps the metadata: what etcd and ZooKeeper have in common."""

import ssl
from dataclasses import dataclass, field
from typing import Self

from barnabas.config.metadata_engine import MetadataEngineConfig
from barnabas.metadata.store import MetadataStoreError

DEFAULT_SESSION_TIMEOUT_MS = 2_500
DEFAULT_CALL_TIMEOUT_MS = 6_000
DEFAULT_CONNECT_TIMEOUT_MS = 15_000


@dataclass(frozen=True, slots=True)
class EngineTls:
    """Files in PEM format. Without `ca_file` the system's certificate authorities are trusted."""

    ca_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None
    key_password: str | None = field(default=None, repr=False)
    verify_hostname: bool = True

    def context(self) -> ssl.SSLContext:
        """Raises MetadataStoreError for files that cannot be used."""
        try:
            context = ssl.create_default_context(cafile=self.ca_file)
            context.check_hostname = self.verify_hostname
            if self.certificate_file is not None:
                # Without a password a key that needs one would have it asked for on the terminal.
                context.load_cert_chain(self.certificate_file, self.key_file, self.key_password or "")
        except OSError as error:  # ssl.SSLError is one
            files = ", ".join(each for each in (self.ca_file, self.certificate_file, self.key_file) if each)
            raise MetadataStoreError(f"TLS with the metadata engine: {error} ({files})") from error
        return context


@dataclass(frozen=True, slots=True)
class EngineOptions:
    session_timeout_ms: int = DEFAULT_SESSION_TIMEOUT_MS
    """How long a broker may be silent before the others take it for dead."""
    call_timeout_ms: int = DEFAULT_CALL_TIMEOUT_MS
    connect_timeout_ms: int = DEFAULT_CONNECT_TIMEOUT_MS
    """How long `open` waits for the engine."""
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    tls: EngineTls | None = None
    restrict_access: bool = False
    """ZooKeeper's nodes may be changed by this login alone (zookeeper.set.acl)."""
    multi_limit: int | None = None
    """Operations of a transaction, where the engine's own default is not in force (etcd's --max-txn-ops)."""

    @classmethod
    def of(cls, config: MetadataEngineConfig) -> Self:
        """Those of Kafka for ZooKeeper override ours, where they are given."""
        connect_ms = config.zookeeper_connection_timeout_ms or config.zookeeper_session_timeout_ms
        return cls(
            session_timeout_ms=config.zookeeper_session_timeout_ms or config.barnabas_metadata_session_timeout_ms,
            call_timeout_ms=config.barnabas_metadata_request_timeout_ms,
            connect_timeout_ms=connect_ms or config.barnabas_metadata_connection_timeout_ms,
            username=config.barnabas_metadata_username,
            password=config.barnabas_metadata_password,
            tls=_tls_of(config),
            restrict_access=config.zookeeper_set_acl,
            multi_limit=config.barnabas_metadata_transaction_max_operations,
        )


def _tls_of(config: MetadataEngineConfig) -> EngineTls | None:
    if config.zookeeper_ssl_client_enable:
        store = config.zookeeper_ssl_keystore_location
        return EngineTls(
            ca_file=config.zookeeper_ssl_truststore_location,
            certificate_file=store,
            key_file=store,
            key_password=config.zookeeper_ssl_keystore_password,
            verify_hostname=bool(config.zookeeper_ssl_endpoint_identification_algorithm),
        )
    if not config.barnabas_metadata_ssl_enable:
        return None
    return EngineTls(
        ca_file=config.barnabas_metadata_ssl_ca_location,
        certificate_file=config.barnabas_metadata_ssl_certificate_location,
        key_file=config.barnabas_metadata_ssl_key_location,
        key_password=config.barnabas_metadata_ssl_key_password,
    )


Address = tuple[str, int]


def parse_addresses(text: str, default_port: int) -> tuple[Address, ...]:
    """`h:1,h:2`; brackets around an IPv6 address. Raises ValueError."""
    found = []
    for part in text.split(","):
        part = part.strip()
        host, colon, port = part.rpartition(":")
        if not colon or port.endswith("]"):
            host, port = part, str(default_port)
        host = host.removeprefix("[").removesuffix("]")
        if not host or not port.isdecimal() or not 0 < int(port) < 65536:
            raise ValueError(f"{part!r} is not HOST:PORT")
        found.append((host, int(port)))
    return tuple(found)
