"""The keys of an identity provider (JWKS), from its address or a file: kept, and read again when they are old or when a
token names a key that is not among them.

Reading from the network happens in a thread; a login that needs it waits. After a try that did not help the next one
waits longer (`sasl.oauthbearer.jwks.endpoint.retry.backoff.ms` up to `.max.ms`), so that tokens with made-up keys
cannot turn this broker against the provider. Keys that were read stay in use while the provider cannot be reached.
"""

import asyncio
import json
import logging
import ssl
from collections.abc import Mapping
from typing import Any

from barnabas.clock import Clock
from barnabas.config.urls import file_of
from barnabas.net.deferred import Deferred
from barnabas.transport.https import HttpError, request

logger = logging.getLogger(__name__)

TIMEOUT_S = 10.0
SIGNATURES = {"RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), "EC": ("ES256", "ES384", "ES512")}
"""By kind of key. Never one that is the same for signing and checking, and never none."""


class Jwks:
    def __init__(
        self,
        url: str,
        clock: Clock,
        *,
        refresh_ms: int,
        backoff_ms: int,
        backoff_max_ms: int,
        truststore_location: str | None = None,
    ) -> None:
        self._url = url
        self._clock = clock
        self._refresh_ms = refresh_ms
        self._backoff_ms, self._backoff_max_ms = backoff_ms, backoff_max_ms
        self._truststore_location = truststore_location
        self._keys: dict[str, Any] = {}
        self._read_at_ms: int | None = None
        self._next_try_ms = 0
        self._pause_ms = backoff_ms
        self._reading: asyncio.Future[None] | None = None

    def find(self, key_id: str | None) -> Any:
        """The key that a token names (PyJWK), or the only one there is; None if there is none."""
        if key_id is None:
            return next(iter(self._keys.values())) if len(self._keys) == 1 else None
        return self._keys.get(key_id)

    def prepare(self, key_id: str | None) -> Deferred[None] | None:
        """Done when the keys are as new as they can be; None where there is nothing to wait for."""
        now_ms = self._clock.monotonic_ms()
        is_old = self._read_at_ms is None or now_ms - self._read_at_ms >= self._refresh_ms
        if (self.find(key_id) is not None and not is_old) or (self._reading is None and now_ms < self._next_try_ms):
            return None
        if self._reading is None:
            self._reading = asyncio.ensure_future(self._read())
        ready: Deferred[None] = Deferred()
        self._reading.add_done_callback(lambda _: ready.complete(None))
        return ready

    async def _read(self) -> None:
        known = set(self._keys)
        try:
            body = await asyncio.get_running_loop().run_in_executor(None, self._load)
            self._keys = parse_jwks(body)
            self._read_at_ms = self._clock.monotonic_ms()
        except (HttpError, OSError, ValueError) as error:
            logger.error("the keys of the identity provider cannot be read: %s", error)
        finally:
            self._reading = None
            if set(self._keys) - known:
                self._pause_ms = self._backoff_ms
            self._next_try_ms = self._clock.monotonic_ms() + self._pause_ms
            self._pause_ms = min(self._pause_ms * 2, self._backoff_max_ms)

    def _load(self) -> bytes:
        path = file_of(self._url)
        if path is not None:
            return path.read_bytes()
        context = ssl.create_default_context(cafile=self._truststore_location)
        return request(self._url, timeout_s=TIMEOUT_S, context=context)


def parse_jwks(body: bytes) -> dict[str, Any]:
    """Key id -> key. What cannot check signatures is left out. Raises ValueError."""
    import jwt

    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        raise ValueError("no JSON") from None
    listed = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(listed, list):
        raise ValueError("no list of keys")
    found: dict[str, Any] = {}
    for each in listed:
        if not isinstance(each, Mapping) or each.get("kty") not in SIGNATURES or each.get("use", "sig") != "sig":
            continue
        try:
            found[str(each.get("kid", ""))] = jwt.PyJWK(dict(each))
        except (jwt.PyJWTError, ValueError, TypeError):
            logger.warning("a key of the identity provider cannot be used (kid %r)", str(each.get("kid"))[:80])
    if not found:
        raise ValueError("no key that checks signatures")
    return found
