"""Certificates for tests of TLS, made with the openssl command: an authority, a server, a client, and a stranger.

All files are PEM; a `...store.pem` holds a private key with its certificate, as ssl.keystore.location wants it.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

KEY_PASSWORD = "key-secret"
NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")


def why_no_certificates() -> str | None:
    return None if shutil.which("openssl") else "openssl is not installed"


class Certificates:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.authority = self._authority("authority")
        self.other_authority = self._authority("other")
        self.server_store = self._signed("server", "subjectAltName=DNS:localhost,IP:127.0.0.1")
        self.client_store = self._signed("client", "subjectAltName=DNS:client")
        self.encrypted_client_store = self._encrypted(self.client_store)
        self.misnamed_server_store = self._signed("misnamed", "subjectAltName=DNS:elsewhere.example")

    def _authority(self, name: str) -> Path:
        key, certificate = self._directory / f"{name}.key", self._directory / f"{name}.pem"
        _openssl(
            *("req", "-x509", *NEW_KEY, "-nodes", "-days", "2", "-subj", f"/CN={name}"),
            *("-keyout", str(key), "-out", str(certificate)),
        )
        return certificate

    def _signed(self, name: str, extension: str) -> Path:
        base = self._directory / name
        key, request, certificate, extensions = (base.with_suffix(end) for end in (".key", ".csr", ".crt", ".ext"))
        store = self._directory / f"{name}store.pem"
        extensions.write_text(extension + "\n")
        _openssl(*("req", *NEW_KEY, "-nodes", "-subj", f"/CN={name}", "-keyout", str(key), "-out", str(request)))
        _openssl(
            *("x509", "-req", "-days", "2", "-in", str(request), "-out", str(certificate)),
            *("-CA", str(self.authority), "-CAkey", str(self.authority.with_suffix(".key")), "-CAcreateserial"),
            *("-extfile", str(extensions)),
        )
        store.write_text(key.read_text() + certificate.read_text())
        return store

    def _encrypted(self, store: Path) -> Path:
        encrypted = self._directory / f"encrypted-{store.name}"
        key = self._directory / "encrypted.key"
        _openssl("pkcs8", "-topk8", "-in", str(store), "-out", str(key), "-passout", f"pass:{KEY_PASSWORD}")
        _, start, chain = store.read_text().partition("-----BEGIN CERTIFICATE-----")
        encrypted.write_text(key.read_text() + start + chain)
        return encrypted


def _openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)
