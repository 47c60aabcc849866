"""Bearer tokens of an identity provider: read from a file or requested by client credentials, and kept while they last.

For clients that log in by OAUTHBEARER, and for brokers that do so at other brokers. A token is kept until four fifths
of its life have passed; one whose expiry cannot be read is used once. What blocks runs in a thread.
"""

import asyncio
import base64
import json
import ssl
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from barnabas.config.urls import file_of
from barnabas.transport.https import HttpError, request

TIMEOUT_S = 10.0
USED_SHARE = 0.8


class TokenClient(NamedTuple):
    """Who asks an identity provider for a token."""

    client_id: str
    secret: str
    scope: str
    truststore: str | None

    def __repr__(self) -> str:
        return f"TokenClient({self.client_id})"


class KeptToken:
    """`fetch` gives a new token; it is called in a thread, and what it raises is raised by `get`."""

    def __init__(self, fetch: Callable[[], str]) -> None:
        self._fetch = fetch
        self._lock = asyncio.Lock()
        self._token = ""
        self._renew_at = 0.0

    async def get(self) -> str:
        async with self._lock:
            if time.time() >= self._renew_at:
                token = await asyncio.get_running_loop().run_in_executor(None, self._fetch)
                self._token, self._renew_at = token, time.time() + USED_SHARE * life_s(token)
            return self._token


def request_token(url: str, client: TokenClient) -> str:
    """RFC 6749, 4.4: the client's id and secret for a token; or what a file holds.

    Raises HttpError, OSError, ValueError.
    """
    path = file_of(url)
    if path is not None:
        return path.read_text(encoding="ascii").strip()
    pair = base64.b64encode(f"{client.client_id}:{client.secret}".encode()).decode()
    form = {"grant_type": "client_credentials", **({"scope": client.scope} if client.scope else {})}
    context = None if client.truststore is None else ssl.create_default_context(cafile=client.truststore)
    headers = {"Authorization": f"Basic {pair}"}
    document = _object(request(url, timeout_s=TIMEOUT_S, form=form, headers=headers, context=context))
    token = document.get("access_token", document.get("id_token"))
    if not isinstance(token, str) or not token:
        raise HttpError(f"{url}: the response has no access_token")
    return token


def life_s(token: str) -> float:
    """How long a JWT is still valid; 0 where that cannot be read."""
    parts = token.split(".")
    if len(parts) != 3:
        return 0.0
    try:
        expires = _object(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))).get("exp")
    except ValueError:
        return 0.0
    return max(0.0, expires - time.time()) if isinstance(expires, int | float) else 0.0


def _object(body: bytes) -> dict[str, Any]:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise ValueError("the response is not a JSON object")
    return document
