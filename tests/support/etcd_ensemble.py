"""etcd as real processes: Debian's etcd-server, or any etcd on the path."""

from __future__ import annotations

import json
import shutil
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engine_ensemble import HOME, EngineEnsemble, EngineNode, Home
from server_process import free_port


def why_no_etcd() -> str | None:
    return None if shutil.which("etcd") else "etcd is not installed (tests/foreign/install.sh does it, as root)"


class EtcdNode(EngineNode):
    def __init__(
        self, name: str, directory: Path, members: dict[str, str], certificate: Path | None, home: Home
    ) -> None:
        super().__init__(directory / name, free_port(), home)
        self.secure_port = free_port()
        """For TLS, if there is a certificate; the other port is there all the same."""
        self._name = name
        self._members = members
        self._certificate = certificate

    def command(self) -> Sequence[str]:
        peer, client = f"http://{self._members[self._name]}", f"http://{self.address}"
        members = ",".join(f"{name}=http://{address}" for name, address in self._members.items())
        listen, tls = client, []
        if self._certificate is not None:
            listen = f"{client},https://{self.home.host}:{self.secure_port}"
            tls = ["--cert-file", str(self._certificate), "--key-file", str(self._certificate)]
        return [
            *("etcd", "--name", self._name, "--data-dir", str(self.directory / "data"), "--log-level", "warn"),
            *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer),
            *("--listen-client-urls", listen, "--advertise-client-urls", client),
            *("--initial-cluster", members, "--initial-cluster-state", "new", *tls),
        ]

    def serves(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://{self.address}/health", timeout=2) as response:
                return bool(json.load(response)["health"] == "true")
        except OSError:
            return False

    def is_leader(self) -> bool:
        try:
            status = self.call("maintenance/status", {})
        except OSError:
            return False
        return bool(status.get("leader") == status["header"]["member_id"])

    def call(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """etcd's JSON, past our own client."""
        request = urllib.request.Request(f"http://{self.address}/v3/{path}", json.dumps(body).encode())
        with urllib.request.urlopen(request, timeout=5) as response:
            answer: dict[str, Any] = json.load(response)
            return answer


class EtcdEnsemble(EngineEnsemble[EtcdNode]):
    scheme = "etcd"

    def __init__(
        self, directory: Path, size: int = 3, certificate: Path | None = None, homes: Sequence[Home] | None = None
    ) -> None:
        """`certificate` is a PEM file with the key."""
        at = {f"etcd{number}": home for number, home in enumerate(homes or [HOME] * size)}
        members = {name: f"{home.host}:{free_port()}" for name, home in at.items()}
        super().__init__([EtcdNode(name, directory, members, certificate, home) for name, home in at.items()])
