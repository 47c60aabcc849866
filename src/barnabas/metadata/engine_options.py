"""How to reach and log in to an engine that keeps the metadata: what etcd and ZooKeeper have in common."""

import ssl
from dataclasses import dataclass, field

DEFAULT_SESSION_TIMEOUT_MS = 2_500
DEFAULT_CALL_TIMEOUT_MS = 6_000


@dataclass(frozen=True, slots=True)
class EngineTls:
    """Files in PEM format. Without `ca_file` the system's certificate authorities are trusted."""

    ca_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None
    key_password: str | None = field(default=None, repr=False)
    verify_hostname: bool = True

    def context(self) -> ssl.SSLContext:
        """Raises OSError (of which ssl.SSLError is one) for files that cannot be used."""
        context = ssl.create_default_context(cafile=self.ca_file)
        context.check_hostname = self.verify_hostname
        if self.certificate_file is not None:
            context.load_cert_chain(self.certificate_file, self.key_file, self.key_password)
        return context


@dataclass(frozen=True, slots=True)
class EngineOptions:
    session_timeout_ms: int = DEFAULT_SESSION_TIMEOUT_MS
    """How long a broker may be silent before the others take it for dead."""
    call_timeout_ms: int = DEFAULT_CALL_TIMEOUT_MS
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    tls: EngineTls | None = None
    restrict_access: bool = False
    """ZooKeeper's nodes may be changed by this login alone (zookeeper.set.acl)."""
    multi_limit: int | None = None
    """Operations of a transaction, where the engine's own default is not in force (etcd's --max-txn-ops)."""


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
