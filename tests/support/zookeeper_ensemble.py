"""Apache ZooKeeper as real processes, from the jars that tests/foreign/install.sh fetched."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from engine_ensemble import HOME, EngineEnsemble, EngineNode, Home
from server_process import free_port

JARS = Path(__file__).resolve().parents[2] / ".build" / "zookeeper"
# Quick to start, small: nothing here measures ZooKeeper itself.
JVM = ("-Xmx128M", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")


def why_no_zookeeper() -> str | None:
    if shutil.which("java") is None:
        return "java is not installed"
    if not list(JARS.glob("zookeeper-3*.jar")):
        return "ZooKeeper's jars are not in .build/zookeeper (tests/foreign/install.sh gets them)"
    return None if find_spec("kazoo") else "kazoo is not installed (pip install barnabas[zookeeper])"


class ZooKeeperNode(EngineNode):
    def __init__(
        self, number: int, directory: Path, servers: Sequence[str], settings: dict[str, str], home: Home
    ) -> None:
        super().__init__(directory / f"zookeeper{number}", free_port(), home)
        self.secure_port = free_port()
        """For TLS, if the settings say with what; the other port is there all the same."""
        self._number = number
        self._servers = servers
        self._settings = settings

    def start(self) -> None:
        data = self.directory / "data"
        data.mkdir(parents=True, exist_ok=True)
        (data / "myid").write_text(f"{self._number}\n")
        settings = {
            "tickTime": "500",
            "initLimit": "20",
            "syncLimit": "10",
            "minSessionTimeout": "1000",
            "dataDir": str(data),
            "clientPort": str(self.client_port),
            "clientPortAddress": self.home.host,
            "admin.enableServer": "false",
            "4lw.commands.whitelist": "ruok,stat,srvr",
            "maxClientCnxns": "0",
            **self._settings,
        }
        if any(name.startswith("ssl.") for name in settings):
            settings["secureClientPort"] = str(self.secure_port)
            settings["serverCnxnFactory"] = "org.apache.zookeeper.server.NettyServerCnxnFactory"
        lines = [f"{name}={value}" for name, value in settings.items()] + list(self._servers)
        (self.directory / "zoo.cfg").write_text("\n".join(lines) + "\n")
        super().start()

    def command(self) -> Sequence[str]:
        server = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        return ["java", *JVM, "-cp", f"{JARS}/*", server, str(self.directory / "zoo.cfg")]

    def serves(self) -> bool:
        return b"Mode:" in self._ask(b"srvr")

    def is_leader(self) -> bool:
        return b"Mode: leader" in self._ask(b"srvr")

    def _ask(self, word: bytes) -> bytes:
        try:
            with socket.create_connection((self.home.host, self.client_port), 2) as connection:
                connection.sendall(word)
                return b"".join(iter(lambda: connection.recv(4096), b""))
        except OSError:
            return b""


class ZooKeeperEnsemble(EngineEnsemble[ZooKeeperNode]):
    scheme = "zookeeper"

    def __init__(
        self,
        directory: Path,
        size: int = 3,
        settings: dict[str, str] | None = None,
        homes: Sequence[Home] | None = None,
    ) -> None:
        at = dict(enumerate(homes or [HOME] * size, 1))
        servers = [f"server.{each}={home.host}:{free_port()}:{free_port()}" for each, home in at.items()]
        servers = servers if len(at) > 1 else []
        super().__init__([ZooKeeperNode(each, directory, servers, settings or {}, home) for each, home in at.items()])
