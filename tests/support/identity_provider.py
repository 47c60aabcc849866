"""A small identity provider for tests: keys at /keys, tokens for client credentials at /token."""

from __future__ import annotations

import base64
import json
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, rsa

ISSUER, AUDIENCE = "https://issuer.example", "barnabas"
CLIENT_ID, CLIENT_SECRET = "app", "client-secret-8890"


class IdentityProvider:
    """Listens on loopback as a context manager. `key_reads` and `token_reads` count what it was asked for."""

    def __init__(self) -> None:
        self._keys: dict[str, Any] = {}
        self.key_reads = 0
        self.token_reads = 0
        self.life_s = 3600
        self.add_key("first")
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                provider.key_reads += 1
                self._respond(200 if self.path == "/keys" else 404, provider.jwks())

            def do_POST(self) -> None:
                provider.token_reads += 1
                form = urllib.parse.parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
                expected = base64.b64encode(f"{CLIENT_ID}:{CLIENT_SECRET}".encode()).decode()
                if self.headers["Authorization"] != f"Basic {expected}" or form["grant_type"] != ["client_credentials"]:
                    self._respond(401, {"error": "invalid_client"})
                else:
                    self._respond(200, {"access_token": provider.token(sub=CLIENT_ID), "expires_in": provider.life_s})

            def _respond(self, status: int, document: dict[str, Any]) -> None:
                body = json.dumps(document).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                """Not in the output of the tests."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> IdentityProvider:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def add_key(self, name: str, kind: str = "EC") -> None:
        self._keys[name] = (
            ec.generate_private_key(ec.SECP256R1()) if kind == "EC" else rsa.generate_private_key(65537, 2048)
        )

    def remove_key(self, name: str) -> None:
        del self._keys[name]

    def jwks(self) -> dict[str, Any]:
        listed = []
        for name, key in self._keys.items():
            kind = jwt.algorithms.ECAlgorithm if isinstance(key, ec.EllipticCurvePrivateKey) else None
            kind = kind or jwt.algorithms.RSAAlgorithm
            listed.append({**json.loads(kind.to_jwk(key.public_key())), "kid": name, "use": "sig"})
        return {"keys": listed}

    def token(self, key: str = "first", headers: dict[str, Any] | None = None, **claims: Any) -> str:
        """Claims that are None are left out."""
        now = int(time.time())
        given = {"iss": ISSUER, "aud": AUDIENCE, "sub": "alice", "iat": now, "exp": now + self.life_s, **claims}
        signer = self._keys[key]
        algorithm = "ES256" if isinstance(signer, ec.EllipticCurvePrivateKey) else "RS256"
        present = {name: value for name, value in given.items() if value is not None}
        return jwt.encode(present, signer, algorithm, {"kid": key, **(headers or {})})

    def broker_settings(self, **more: object) -> dict[str, object]:
        return {
            "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            "sasl.oauthbearer.jwks.endpoint.url": f"{self.url}/keys",
            "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms": "0",
            "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms": "0",
            "sasl.oauthbearer.expected.issuer": ISSUER,
            "sasl.oauthbearer.expected.audience": f"other,{AUDIENCE}",
            "connection.failed.authentication.delay.ms": "10",
            **more,
        }
