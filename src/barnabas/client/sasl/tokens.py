"""Tokens for OAUTHBEARER: from the user's callback, from a file, or from an identity provider (client credentials).

A token is kept until four fifths of its life have passed, for all connections of a client. Sessions are renewed later
in their life than that (`RENEWED_SHARE` in `machines/sasl/login`), so a renewed one has a new token. A token whose
expiry cannot be read is used once. What blocks runs in a thread: heartbeats must not wait for it.
"""

import asyncio
import base64
import json
import ssl
import time
from typing import Any

from barnabas.client.errors import AuthenticationError
from barnabas.client.options.security import SecurityOptions
from barnabas.config.urls import file_of
from barnabas.transport.https import HttpError, request

TIMEOUT_S = 10.0
USED_SHARE = 0.8


class TokenSource:
    """One per client."""

    def __init__(self, options: SecurityOptions) -> None:
        self._options = options
        self._lock = asyncio.Lock()
        self._token = ""
        self._renew_at = 0.0

    async def get(self) -> str:
        """Raises AuthenticationError."""
        async with self._lock:
            if time.time() >= self._renew_at:
                try:
                    token, life_s = await asyncio.to_thread(self._fetch)
                except AuthenticationError:
                    raise
                except Exception as error:
                    # Of the user's callback, among others. Its text may hold the token.
                    raise AuthenticationError(f"no token for OAUTHBEARER: {type(error).__name__}") from error
                self._token, self._renew_at = token, time.time() + USED_SHARE * life_s
            return self._token

    def _fetch(self) -> tuple[str, float]:
        options = self._options
        if options.sasl_oauthbearer_token_callback is not None:
            token = options.sasl_oauthbearer_token_callback()
            if not isinstance(token, str) or not token:
                raise AuthenticationError("sasl_oauthbearer_token_callback must return a token (text)")
            return token, _life_s(token)
        url = options.sasl_oauthbearer_token_endpoint_url or ""
        path = file_of(url)
        try:
            token = self._ask(url) if path is None else path.read_text(encoding="ascii").strip()
        except (HttpError, OSError, ValueError) as error:
            raise AuthenticationError(f"no token for OAUTHBEARER: {error}") from error
        return token, _life_s(token)

    def _ask(self, url: str) -> str:
        """RFC 6749, 4.4: the client's id and secret for a token."""
        client = self._options.oauth_client()
        pair = base64.b64encode(f"{client.client_id}:{client.secret}".encode()).decode()
        form = {"grant_type": "client_credentials", **({"scope": client.scope} if client.scope else {})}
        context = None if client.truststore is None else ssl.create_default_context(cafile=client.truststore)
        headers = {"Authorization": f"Basic {pair}"}
        body = request(url, timeout_s=TIMEOUT_S, form=form, headers=headers, context=context)
        document = _object(body)
        token = document.get("access_token", document.get("id_token"))
        if not isinstance(token, str) or not token:
            raise HttpError(f"{url}: the response has no access_token")
        return token


def _life_s(token: str) -> float:
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
